package main

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
)

const (
	// relaxedGC is the garbage collector's percentage where a memory limit makes it
	// collect more often when that is needed. A broker's live heap is small as long
	// as its consumers keep up, so at Go's 100 it collected every few thousand
	// messages: a fifth of the CPU of batches (hack/bench, batches of 100 frames).
	relaxedGC = 400
	// besideBudgets is what the memory limit leaves for what no budget counts: 10,000
	// connections that wait, at 16 KiB, and as much again for garbage. With less a
	// small broker with many connections did hardly anything but collect garbage.
	besideBudgets = 320 << 20
)

// tuneRuntime sets what Go cannot know of a broker that shares its machine with
// those it serves. limit is the container's memory limit in bytes, 0 for none;
// maxBytes is PODMQ_MAX_BYTES. Whoever set GOMEMLIMIT, GOGC or GOMAXPROCS knows
// better.
func tuneRuntime(limit, maxBytes int64) {
	unset := func(name string) bool { return os.Getenv(name) == "" }
	switch {
	case !unset("GOMEMLIMIT"):
	case limit > 0:
		debug.SetMemoryLimit(limit / 10 * 9) // the rest is for what Go does not count
	case maxBytes < math.MaxInt64/4:
		// The budgets are one and three quarters of it: messages, requests and
		// answers in flight, topics and groups. The rest is for garbage.
		debug.SetMemoryLimit(besideBudgets + 3*maxBytes)
	}
	if unset("GOGC") && debug.SetMemoryLimit(-1) < math.MaxInt64 {
		debug.SetGCPercent(relaxedGC)
	}
	if unset("GOMAXPROCS") {
		runtime.GOMAXPROCS(fairShare(runtime.GOMAXPROCS(0), runtime.NumCPU()))
	}
}

// fairShare is how many threads run Go code: of the cores that Go would use, no
// more than half of the machine's. A message costs its producer and its consumer
// as much CPU as the broker, so there is no use for more, and threads without
// work look for some: with two instead of one on two cores, batches took a third
// more CPU and the slowest answers twice as long.
func fairShare(usable, cores int) int {
	return min(usable, max(1, (cores+1)/2))
}
