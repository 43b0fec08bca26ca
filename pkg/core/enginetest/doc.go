// Package enginetest is the suite that every engine must pass.
//
// Run holds an engine against the contract of package core, one test for each
// guarantee G1 to G24 that concerns an engine, named for it: scripts that read
// as a conversation with the engine, the trace and the load of the seed, random
// operations beside a simple twin, concurrent histories checked for
// linearizability, and a run in which everything crashes now and then.
//
// Promises are portable apart from those that Features names: what an engine
// cannot keep it declares, and the tests that rest on it are skipped, by name.
//
// Tests run in testing/synctest bubbles, so that an hour passes at once and a
// goroutine that is left behind fails its test. An engine in a bubble must wait
// with channels and timers of its own only; one that does real I/O says
// Features.RealTime.
package enginetest
