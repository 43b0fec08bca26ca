package stream

import (
	"fmt"
	"slices"

	"github.com/podmq/podmq/pkg/core"
)

// A Partition is a log and the cursors of the groups that read it. With no
// group nothing is kept: a message is dropped once it is appended.
//
// Invariants: start is the least committed of all cursors, or end without any;
// start <= committed <= next <= end for each; end-start <= Capacity, which the
// caller keeps by asking Room first.
type Partition struct {
	capacity int
	log      Log
	cursors  []placed
	slowest  int // how many cursors stand at start
}

// placed is a cursor and the group that it belongs to.
type placed struct {
	group uint64
	Cursor
}

// NewPartition makes an empty partition, which shares chunks with others that
// have the same owner.
func NewPartition(capacity int, chunks *Chunks) *Partition {
	return &Partition{capacity: capacity, log: Log{shared: chunks}}
}

// Log is what the partition holds; it is to be read only.
func (p *Partition) Log() *Log { return &p.log }

// Backlog is end minus the slowest committed: what back-pressure watches.
func (p *Partition) Backlog() int64 { return p.log.end - p.log.start }

// Room is how many messages can be appended now.
func (p *Partition) Room() int { return p.capacity - int(p.Backlog()) }

// Append adds messages, published at that time by the wall clock and at by the
// engine's, and returns the offset of the first; the others follow it.
func (p *Partition) Append(ms []core.Message, unixNano int64, at Instant) int64 {
	if len(p.cursors) == 0 {
		return p.log.skip(len(ms))
	}
	if p.Room() < len(ms) {
		panic(fmt.Sprintf("stream: append of %d to a partition with a backlog of %d and a capacity of %d", len(ms), p.Backlog(), p.capacity))
	}
	return p.log.append(ms, unixNano, at)
}

// AddGroup gives a group a cursor, at the end of the log or at its start.
func (p *Partition) AddGroup(group uint64, typ core.GroupType, start core.Start) Cursor {
	at := p.log.end
	if start == core.Earliest {
		at = p.log.start
	}
	var c Cursor = newOrdered(at)
	if typ == core.Queue {
		c = newQueue(at)
	}
	p.cursors = append(p.cursors, placed{group, c})
	if at == p.log.start {
		p.slowest++
	}
	return c
}

// RemoveGroup takes a group's cursor away and returns the cost of what was kept
// for it alone.
func (p *Partition) RemoveGroup(group uint64) (freed int64) {
	for i, c := range p.cursors {
		if c.group == group {
			p.cursors = slices.Delete(p.cursors, i, i+1)
			return p.trim()
		}
	}
	panic(fmt.Sprintf("stream: there is no group %d to remove", group))
}

// Apply carries a change of a cursor out. It returns how many leases that
// ended, and the cost of what it freed.
func (p *Partition) Apply(c Cursor, ch Change) (ended int, freed int64) {
	before := c.Committed()
	ended = c.apply(ch)
	if after := c.Committed(); after != before && before == p.log.start {
		if p.slowest--; p.slowest == 0 {
			freed = p.trim()
		}
	}
	return ended, freed
}

// Replay applies a recorded change.
func (p *Partition) Replay(ch Change) {
	for _, c := range p.cursors {
		if c.group == ch.Group {
			p.Apply(c.Cursor, ch)
			return
		}
	}
	panic(fmt.Sprintf("stream: there is no group %d to change", ch.Group))
}

// trim drops what every group has acked.
func (p *Partition) trim() (freed int64) {
	start := p.log.end
	for _, c := range p.cursors {
		start = min(start, c.Committed())
	}
	freed = p.log.trim(start)
	p.slowest = 0
	for _, c := range p.cursors {
		if c.Committed() == start {
			p.slowest++
		}
	}
	return freed
}
