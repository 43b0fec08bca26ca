package memory

import "sync/atomic"

// A budget is the memory that all topics together may hold. A topic with a
// reservation keeps to that part of it and counts by itself; the others share
// the rest, which is what is counted here. It has no lock of its own.
type budget struct {
	limit    int64
	reserved atomic.Int64 // by topics; changed under Broker.mu
	used     atomic.Int64 // of what is left, by the others
	waiting  atomic.Int64 // publishers that wait for it
}

func (b *budget) shared() int64 { return b.limit - b.reserved.Load() }

// take takes n bytes, or nothing.
func (b *budget) take(n int64) bool {
	for {
		used := b.used.Load()
		if used+n > b.shared() {
			return false
		}
		if !b.used.CompareAndSwap(used, used+n) {
			continue
		}
		if used+n > b.shared() { // a reservation came in between
			b.give(n)
			return false
		}
		return true
	}
}

func (b *budget) give(n int64) { b.used.Add(-n) }

// reserve sets n bytes apart, or nothing.
func (b *budget) reserve(n int64) bool {
	b.reserved.Add(n)
	if b.used.Load() > b.shared() {
		b.reserved.Add(-n)
		return false
	}
	return true
}
