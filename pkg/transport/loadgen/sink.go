package loadgen

import (
	"fmt"
	"sync/atomic"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// A Sink counts what one consumer gets.
type Sink struct {
	tally     *Tally
	latencies *hdrhistogram.Histogram // nil: not measured

	got, sum uint64
}

// NewSink makes the sink of a consumer. The times from when a message was due to
// its arrival go to h, if it is not nil.
func NewSink(t *Tally, h *hdrhistogram.Histogram) *Sink { return &Sink{tally: t, latencies: h} }

// Got counts a message.
func (k *Sink) Got(now int64, payload []byte) error {
	if len(payload) < MinPayload {
		return fmt.Errorf("cannot use a message of %d bytes: it is not of this run", len(payload))
	}
	k.got++
	k.sum += readNumber(payload)
	if k.latencies != nil {
		_ = k.latencies.RecordValue(max(now-readDue(payload), 0))
	}
	return nil
}

// Heard adds what was got since the last time to the tally.
func (k *Sink) Heard(now int64) {
	if k.got == 0 {
		return
	}
	k.tally.deliveredSum.Add(k.sum)
	latest(&k.tally.lastDelivered, now)
	k.tally.delivered.Add(k.got)
	k.got, k.sum = 0, 0
}

// latest raises a to now.
func latest(a *atomic.Int64, now int64) {
	for {
		old := a.Load()
		if old >= now || a.CompareAndSwap(old, now) {
			return
		}
	}
}
