package main

import (
	"math"
	"runtime"
	"runtime/debug"
	"testing"
)

// gcPercent is the garbage collector's percentage now.
func gcPercent() int {
	p := debug.SetGCPercent(100)
	debug.SetGCPercent(p)
	return p
}

func TestTheRuntimeIsTunedUnlessToldOtherwise(t *testing.T) {
	for name, c := range map[string]struct {
		limit    int64
		maxBytes int64
		env      map[string]string
		already  int64 // the memory limit in force
		memory   int64
		gc       int
		allProcs bool
	}{
		"no limit":           {maxBytes: 100 << 20, memory: 620 << 20, gc: relaxedGC},
		"little to hold":     {maxBytes: 1 << 20, memory: 323 << 20, gc: relaxedGC},
		"all one can ask":    {maxBytes: math.MaxInt64 / 2, memory: math.MaxInt64, gc: 100},
		"a container's":      {limit: 100 << 20, maxBytes: 50 << 20, memory: 90 << 20, gc: relaxedGC},
		"GOMEMLIMIT is kept": {limit: 100 << 20, env: map[string]string{"GOMEMLIMIT": "1GiB"}, already: 1 << 30, memory: 1 << 30, gc: relaxedGC},
		"GOMEMLIMIT is off":  {limit: 100 << 20, env: map[string]string{"GOMEMLIMIT": "off"}, memory: math.MaxInt64, gc: 100},
		"GOGC is kept":       {limit: 100 << 20, env: map[string]string{"GOGC": "50"}, memory: 90 << 20, gc: 100},
		"GOMAXPROCS is kept": {limit: 100 << 20, env: map[string]string{"GOMAXPROCS": "7"}, memory: 90 << 20, gc: relaxedGC, allProcs: true},
	} {
		t.Run(name, func(t *testing.T) {
			memory, gc, procs := debug.SetMemoryLimit(math.MaxInt64), debug.SetGCPercent(100), runtime.GOMAXPROCS(7)
			defer func() {
				debug.SetMemoryLimit(memory)
				debug.SetGCPercent(gc)
				runtime.GOMAXPROCS(procs)
			}()
			for _, name := range []string{"GOMEMLIMIT", "GOGC", "GOMAXPROCS"} {
				t.Setenv(name, c.env[name]) // what it says is for the start of a program: here only that it is set counts
			}

			if c.already > 0 {
				debug.SetMemoryLimit(c.already)
			}
			tuneRuntime(c.limit, c.maxBytes)
			if got := debug.SetMemoryLimit(-1); got/1024 != c.memory/1024 {
				t.Errorf("the memory limit is %d, want %d", got, c.memory)
			}
			if got := gcPercent(); got != c.gc {
				t.Errorf("the garbage collector's percentage is %d, want %d", got, c.gc)
			}
			want := fairShare(7, runtime.NumCPU())
			if c.allProcs {
				want = 7
			}
			if got := runtime.GOMAXPROCS(0); got != want {
				t.Errorf("GOMAXPROCS is %d, want %d", got, want)
			}
		})
	}
}

func TestTheBrokerLeavesHalfOfTheCores(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ usable, cores, want int }{{1, 1, 1}, {2, 2, 1}, {3, 3, 2}, {4, 4, 2}, {64, 64, 32}, {1, 64, 1}, {2, 64, 2}} {
		if got := fairShare(c.usable, c.cores); got != c.want {
			t.Errorf("of %d cores, %d usable: %d, want %d", c.cores, c.usable, got, c.want)
		}
	}
}
