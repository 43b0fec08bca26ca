package main

import (
	"bufio"
	"bytes"
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
)

// noLimit is from where on a cgroup's number means that there is none: version
// 1 shows the largest multiple of a page.
const noLimit = math.MaxInt64 / 2

// memoryLimit is what this process and its container may use, in bytes, 0 where
// nothing limits it: the least of the limits from its own cgroup up. root is the
// root directory.
func memoryLimit(root fs.FS) int64 {
	least := int64(0)
	for _, file := range limitFiles(root) {
		text, err := fs.ReadFile(root, file)
		if err != nil {
			continue // the container sees only its own part of the hierarchy
		}
		n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err != nil || n <= 0 || n >= noLimit { // "max" is not a number
			continue
		}
		if least == 0 || n < least {
			least = n
		}
	}
	return least
}

// limitFiles lists where a limit may be, by proc_pid_cgroup(5): lines of
// hierarchy:controllers:path, where version 2 has no controllers.
func limitFiles(root fs.FS) []string {
	const version1, version2 = "sys/fs/cgroup/memory", "sys/fs/cgroup"
	files := []string{version2 + "/memory.max", version1 + "/memory.limit_in_bytes"}
	own, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return files
	}
	for lines := bufio.NewScanner(bytes.NewReader(own)); lines.Scan(); {
		parts := strings.SplitN(lines.Text(), ":", 3)
		if len(parts) != 3 {
			continue
		}
		for dir := path.Clean("/" + parts[2]); dir != "/"; dir = path.Dir(dir) {
			switch {
			case parts[1] == "":
				files = append(files, version2+dir+"/memory.max")
			case strings.Contains(","+parts[1]+",", ",memory,"):
				files = append(files, version1+dir+"/memory.limit_in_bytes")
			}
		}
	}
	return files
}
