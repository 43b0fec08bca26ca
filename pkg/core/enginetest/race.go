//go:build race

package enginetest

// raceEnabled makes long runs shorter: the race detector is slow.
const raceEnabled = true
