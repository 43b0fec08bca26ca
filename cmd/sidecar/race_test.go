//go:build race

package main

// raceEnabled says that the tests run under the race detector; the program that
// they build then does as well.
const raceEnabled = true
