package main

import (
	"testing"
	"testing/fstest"
)

func TestTheMemoryLimitIsTheContainers(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"no cgroups":      {nil, 0},
		"v2 in container": {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "134217728\n"}, 128 << 20},
		"v2 no limit":     {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, 0},
		"v2 least on the way up": {map[string]string{
			"proc/self/cgroup":                 "0::/pod/app\n",
			"sys/fs/cgroup/memory.max":         "max\n",
			"sys/fs/cgroup/pod/memory.max":     "1000000\n",
			"sys/fs/cgroup/pod/app/memory.max": "2000000\n",
		}, 1000000},
		"v1": {map[string]string{
			"proc/self/cgroup":                               "12:cpu,cpuacct:/pod\n5:memory:/pod\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":     "9223372036854771712\n",
			"sys/fs/cgroup/memory/pod/memory.limit_in_bytes": "67108864\n",
		}, 64 << 20},
		"v1 in container": {map[string]string{
			"proc/self/cgroup":                           "5:memory:/kubepods/abc\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "67108864\n",
		}, 64 << 20},
		"v1 no limit": {map[string]string{"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 0},
		"another controller": {map[string]string{
			"proc/self/cgroup": "5:cpu:/pod\nnonsense\n",
			"sys/fs/cgroup/memory/pod/memory.limit_in_bytes": "1\n",
		}, 0},
		"nonsense": {map[string]string{"sys/fs/cgroup/memory.max": "lots"}, 0},
		"zero":     {map[string]string{"sys/fs/cgroup/memory.max": "0"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			root := fstest.MapFS{}
			for file, text := range c.files {
				root[file] = &fstest.MapFile{Data: []byte(text)}
			}
			if got := memoryLimit(root); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}
