package stream

import (
	"fmt"

	"github.com/podmq/podmq/pkg/core"
)

// chunkLen is how many messages a chunk of the log has room for. Small, so that
// a partition with few messages costs 2.5 KiB, and large enough that growing by
// a chunk is rare.
const (
	chunkBits = 6
	chunkLen  = 1 << chunkBits
)

// A chunk is the entries of chunkLen offsets, from a multiple of it on.
type chunk [chunkLen]Entry

// Chunks keeps chunks that a log no longer needs, up to 160 KiB of them, for
// the logs of one owner to use again: in a steady state nothing is allocated,
// and an empty log holds nothing. The zero value is ready to use.
type Chunks struct{ free []*chunk }

// chunksKept is room for 4,096 messages.
const chunksKept = 64

func (c *Chunks) get() *chunk {
	last := len(c.free) - 1
	if last < 0 {
		return new(chunk)
	}
	kept := c.free[last]
	c.free = c.free[:last]
	return kept
}

// put takes a chunk whose entries are zero.
func (c *Chunks) put(empty *chunk) {
	if len(c.free) < chunksKept {
		c.free = append(c.free, empty)
	}
}

// An Entry is one message in the log.
type Entry struct {
	core.Message
	At Instant // when it was appended
}

// A Log is the messages [start, end) of a partition. It grows and shrinks by
// chunks, so that neither moves what is held; capacity that is not used takes
// no memory.
//
// Invariants: start <= end; the first chunk holds start, and the last end-1.
type Log struct {
	start, end int64
	bytes      int64 // sum of Cost of what is held
	chunks     ring[*chunk]
	shared     *Chunks
}

// Start is the first offset held.
func (l *Log) Start() int64 { return l.start }

// End is the offset that the next message will get.
func (l *Log) End() int64 { return l.end }

// Bytes is what the held messages cost.
func (l *Log) Bytes() int64 { return l.bytes }

// At returns the entry at offset, which must be in [start, end).
func (l *Log) At(offset int64) *Entry {
	if offset < l.start || offset >= l.end {
		panic(fmt.Sprintf("stream: offset %d is not in the log [%d, %d)", offset, l.start, l.end))
	}
	in := *l.chunks.at(int(offset>>chunkBits - l.start>>chunkBits))
	return &in[offset&(chunkLen-1)]
}

// Span returns the entries from offset on that lie together: some of [from, to),
// and at least one. It is valid until the log changes.
func (l *Log) Span(from, to int64) []Entry {
	if from < l.start || from >= to || to > l.end {
		panic(fmt.Sprintf("stream: [%d, %d) is not in the log [%d, %d)", from, to, l.start, l.end))
	}
	in := *l.chunks.at(int(from>>chunkBits - l.start>>chunkBits))
	first := int(from & (chunkLen - 1))
	return in[first:min(int64(chunkLen), int64(first)+to-from)]
}

func (l *Log) append(ms []core.Message, unixNano int64, at Instant) int64 {
	first := l.end
	for len(ms) > 0 {
		if l.start == l.end || l.end&(chunkLen-1) == 0 {
			l.grow()
		}
		to := (*l.chunks.at(l.chunks.len() - 1))[l.end&(chunkLen-1):]
		n := min(len(to), len(ms))
		for i := range to[:n] {
			to[i].Message, to[i].At = ms[i].Published(unixNano), at
			l.bytes += ms[i].Cost()
		}
		l.end += int64(n)
		ms = ms[n:]
	}
	return first
}

// grow adds the chunk of l.end, unless it is there.
func (l *Log) grow() {
	if l.chunks.len() > int(l.end>>chunkBits-l.start>>chunkBits) {
		return
	}
	l.chunks.push(l.shared.get())
}

// trim forgets what lies below offset and returns what that cost.
func (l *Log) trim(to int64) (freed int64) {
	for l.start < to {
		gone := l.Span(l.start, to)
		for i := range gone {
			freed += gone[i].Cost()
		}
		clear(gone)
		l.start += int64(len(gone))
		if l.start&(chunkLen-1) == 0 {
			l.release()
		}
	}
	if l.start == l.end && l.chunks.len() > 0 {
		l.release()
	}
	l.bytes -= freed
	return freed
}

// release takes the first chunk, which is empty, out of the log.
func (l *Log) release() {
	l.shared.put(*l.chunks.at(0))
	l.chunks.drop(1)
}

// skip gives offsets to n messages that nobody will read, and returns the first.
func (l *Log) skip(n int) int64 {
	if l.start != l.end {
		panic(fmt.Sprintf("stream: cannot skip %d, [%d, %d) is held", l.end, l.start, l.end))
	}
	l.end += int64(n)
	l.start = l.end
	return l.end - int64(n)
}
