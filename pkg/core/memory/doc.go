// Package memory is the engine that keeps everything in memory: it owns the
// state that pkg/core/stream and pkg/core/balance decide about, under one lock a
// topic, and it knows who waits.
//
// Every call enters its topic, which takes the lock and lets time do what it
// has to do first (leases and sessions that ended, back-offs that are over). It
// changes what it is there for, and leaves. On leaving, and still under the
// lock, what became available is handed to those who wait for it: a message to
// the poll that was parked first, room to the publisher that came first. Nobody
// is woken who then finds nothing, nobody overtakes, and there is no moment
// between a wake-up and a look in which another could take what was meant.
//
// A topic is the unit of locking because it is the unit of what must happen at
// once: a batch is whole across partitions, a group starts at one instant in
// all of them, and a rebalance moves several.
//
// A Broker may be used by any number of goroutines. It runs no goroutine of its
// own; each topic has one timer, set to the next moment at which something is
// due.
package memory
