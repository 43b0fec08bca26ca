package loadgen

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// A Work is what a run does, whatever the broker.
type Work struct {
	Producers int
	Consumers int // of all groups together; 0: nobody consumes
	Groups    int // that get every message
	Batch     int // messages in one request, or pipelined in one write
	Size      int // bytes of a payload, MinPayload at least
	Rate      float64
	Duration  time.Duration // how long producers publish
	Window    int           // messages on their way at most; 0: any number
}

// A Meter hands out the sources and sinks of a run, and has what they measured.
type Meter struct {
	Tally    *Tally
	work     Work
	publish  []*hdrhistogram.Histogram // of each producer
	delivery []*hdrhistogram.Histogram // of each consumer
}

// NewMeter makes a meter for one run.
func NewMeter(w Work) *Meter {
	groups := w.Groups
	if w.Consumers == 0 {
		groups = 0
	}
	return &Meter{Tally: NewTally(w.Duration, groups, w.Window), work: w}
}

// Source is for the next producer.
func (m *Meter) Source() *Source {
	h := newHistogram()
	m.publish = append(m.publish, h)
	return NewSource(m.Tally, len(m.publish), m.work.Batch, m.work.Size, m.work.Rate/float64(m.work.Producers), h)
}

// Sink is for the next consumer. It measures latencies only at a rate: without
// one, they are the length of the backlog.
func (m *Meter) Sink() *Sink {
	if m.work.Rate == 0 {
		return NewSink(m.Tally, nil)
	}
	h := newHistogram()
	m.delivery = append(m.delivery, h)
	return NewSink(m.Tally, h)
}

// Publish are the times, in ns, from when a request was due to its answer. It
// must not be called while the run goes on.
func (m *Meter) Publish() *hdrhistogram.Histogram { return merged(m.publish) }

// Delivery are the times, in ns, from when a message was due to its arrival at a
// consumer; empty without a rate.
func (m *Meter) Delivery() *hdrhistogram.Histogram { return merged(m.delivery) }

func merged(all []*hdrhistogram.Histogram) *hdrhistogram.Histogram {
	sum := newHistogram()
	for _, h := range all {
		sum.Merge(h)
	}
	return sum
}

// newHistogram makes a histogram of latencies in ns, from 1 µs to a minute, to
// two digits.
func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1000, int64(time.Minute), 2)
}
