package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"

	"golang.org/x/sys/unix"
)

// machine says what was measured, and where.
func machine(sidecar string) ([]fact, error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return nil, err
	}
	all := []fact{
		{"machine", fmt.Sprintf("%d cores, %s", runtime.NumCPU(), processor())},
		{"kernel", unix.ByteSliceToString(u.Release[:])},
		{"load", "in Go " + runtime.Version() + ", raw connections on epoll"},
	}
	for _, v := range []struct {
		name     string
		settings string
		command  []string
	}{
		{podmqFrames, strings.Join(podmqSettings, " "), []string{sidecar, "version"}},
		{redisName, strings.Join(redisSettings, " "), []string{"redis-server", "--version"}},
		{beanName, strings.Join(beanstalkdSettings, " "), []string{"beanstalkd", "-v"}},
	} {
		out, err := exec.Command(v.command[0], v.command[1:]...).Output()
		if err != nil {
			return nil, fmt.Errorf("cannot find out the version of %s: %w", v.name, err)
		}
		first, _, _ := strings.Cut(string(out), "\n")
		all = append(all, fact{v.name, fmt.Sprintf("%s; settings: `%s`", strings.TrimSpace(first), v.settings)})
	}
	return append(all, fact{natsName, moduleVersion("github.com/nats-io/nats-server/v2") + "; memory storage, explicit acks, over TCP"}), nil
}

func processor() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

func moduleVersion(path string) string {
	if b, ok := debug.ReadBuildInfo(); ok {
		for _, d := range b.Deps {
			if d.Path == path {
				return d.Version
			}
		}
	}
	return "unknown"
}
