package loadgen

import (
	"github.com/HdrHistogram/hdrhistogram-go"
)

// A Source is what one producer has to send.
type Source struct {
	tally     *Tally
	Batch     int // messages in one request
	Size      int // bytes of a payload
	latencies *hdrhistogram.Histogram

	number  uint64 // of the next message
	every   int64  // ns between the times when requests are due; 0: as soon as one is answered
	due     int64  // when the request that is out, or the next, is due
	sentSum uint64
	waiting bool // for an answer
	ended   bool
}

// NewSource makes the source of a producer, whose number tells its messages from
// those of others. rate is in messages a second, 0: no schedule. Latencies of
// its requests go to h.
func NewSource(t *Tally, producer, batch, size int, rate float64, h *hdrhistogram.Histogram) *Source {
	s := &Source{tally: t, Batch: batch, Size: max(size, MinPayload), latencies: h, number: uint64(producer) << 40}
	if rate > 0 {
		s.every = int64(float64(batch) / rate * 1e9)
		// Producers do not speak in chorus.
		s.due = s.every * int64(producer%64) / 64
	}
	t.sources.Add(1)
	return s
}

// Next reports whether a request of Batch messages is to be sent now, and, if
// none, when to ask again.
func (s *Source) Next(now int64) (yes bool, again int64) {
	switch {
	case s.waiting || s.ended:
		return false, Never
	case now >= s.tally.endAt.Load():
		s.ended = true
		s.tally.sources.Add(-1)
		return false, Never
	case s.every > 0 && now < s.due:
		return false, s.due
	case !s.tally.room(s.Batch):
		return false, Soon
	}
	if s.every == 0 {
		s.due = now
	}
	s.waiting = true
	s.sentSum = 0
	s.tally.published.Add(uint64(s.Batch))
	return true, Never
}

// AppendPayload appends the payload of the request's next message.
func (s *Source) AppendPayload(b []byte) []byte {
	s.number++
	s.sentSum += s.number
	return appendPayload(b, s.number, s.due, s.Size)
}

// Sent must follow when the request is complete.
func (s *Source) Sent() { s.tally.sentSum.Add(s.sentSum) }

// Stored says that the request was answered, and well.
func (s *Source) Stored(now int64) {
	_ = s.latencies.RecordValue(now - s.due) // what is beyond its range counts nowhere: Check finds a stall
	s.waiting = false
	s.due += s.every
	s.tally.stored.Add(uint64(s.Batch))
	latest(&s.tally.lastStored, now)
}
