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

// An upkeep is the memory that topics and groups may take for themselves, empty as
// they may be: a group for each process of a fleet that never deletes one would
// fill the container. It is a quarter of the budget, on top of it.
type upkeep struct {
	limit int64
	used  atomic.Int64
}

// Upkeep in bytes, measured on the heap and rounded up (amd64, Go 1.26). The least
// limit is enough for the bounds of topics and of groups, with a partition each.
const (
	topicUpkeep     = 1536
	partitionUpkeep = 256
	groupUpkeep     = 1024
	cursorUpkeep    = 384 // of a group, for each partition
	leastUpkeep     = 8 << 20
)

func upkeepOf(budget int64) (limit int64) { return max(leastUpkeep, budget/4) }

// take takes n bytes, or nothing.
func (u *upkeep) take(n int64) bool {
	if u.used.Add(n) > u.limit {
		u.used.Add(-n)
		return false
	}
	return true
}

func (u *upkeep) give(n int64) { u.used.Add(-n) }

func topicCost(partitions int) int64 { return topicUpkeep + int64(partitions)*partitionUpkeep }
func groupCost(partitions int) int64 { return groupUpkeep + int64(partitions)*cursorUpkeep }
