package main

import (
	"context"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/podmq/podmq/pkg/transport/loadgen"
)

// A work is what one turn does, the same for every system.
type work struct {
	producers int
	consumers int // in all groups together; 0: publish alone
	groups    int // that get every message; with no consumers they only keep what comes
	batch     int // messages in one request, or pipelined in one write
	size      int // bytes of a payload
	rate      float64
	// parts is how many partitions a PodMQ topic has; peers have no such thing.
	parts int
}

// window is how many messages may be on their way: no system may run away from
// its consumers and be slow later.
func (w *work) window() int { return max(10_000, 4*w.producers*w.batch) }

// turnTime is how long producers publish in one turn.
const defaultTurn = time.Second

// A system is a broker, or the bare exchange, that can be put to work.
type system interface {
	// prepare makes everything for a turn from nothing.
	prepare(ctx context.Context, w *work) error
	// talks are the connections of a turn, consumers first.
	talks(ctx context.Context, w *work, m *meter) ([]loadgen.Talk, error)
	// left is how many messages are not acknowledged, as the broker says itself.
	left(ctx context.Context, w *work) (int, error)
	// pid is of the server's process.
	pid() int
	stop()
}

// A meter is what a turn is measured with.
type meter struct {
	tally    *loadgen.Tally
	publish  []*hdrhistogram.Histogram // of each producer
	delivery []*hdrhistogram.Histogram // of each consumer
	w        *work
}

func newMeter(w *work, turn time.Duration) *meter {
	groups := w.groups
	if w.consumers == 0 {
		groups = 0
	}
	return &meter{w: w, tally: loadgen.NewTally(turn, groups, w.window())}
}

// source is for the next producer.
func (m *meter) source() *loadgen.Source {
	h := loadgen.NewHistogram()
	m.publish = append(m.publish, h)
	return loadgen.NewSource(m.tally, len(m.publish), m.w.batch, m.w.size, m.w.rate/float64(m.w.producers), h)
}

// sink is for the next consumer. Latencies of deliveries mean something only at
// a rate: else they are the length of the backlog.
func (m *meter) sink() *loadgen.Sink {
	if m.w.rate == 0 {
		return loadgen.NewSink(m.tally, nil)
	}
	h := loadgen.NewHistogram()
	m.delivery = append(m.delivery, h)
	return loadgen.NewSink(m.tally, h)
}

func merged(all []*hdrhistogram.Histogram) *hdrhistogram.Histogram {
	sum := loadgen.NewHistogram()
	for _, h := range all {
		sum.Merge(h)
	}
	return sum
}
