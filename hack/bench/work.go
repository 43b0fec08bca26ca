package main

import (
	"context"
	"time"

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

// A system is a broker, or the bare exchange, that can be put to work.
type system interface {
	// prepare makes everything for a turn from nothing.
	prepare(ctx context.Context, w *work) error
	// talks are the connections of a turn, consumers first.
	talks(ctx context.Context, w *work, m *loadgen.Meter) ([]loadgen.Talk, error)
	// left is how many messages are not acknowledged, as the broker says itself.
	left(ctx context.Context, w *work) (int, error)
	// pid is of the server's process.
	pid() int
	stop()
}

// load is the part of the work that is the same for every protocol.
func (w *work) load(d time.Duration) loadgen.Work {
	return loadgen.Work{
		Producers: w.producers, Consumers: w.consumers, Groups: w.groups,
		Batch: w.batch, Size: w.size, Rate: w.rate, Duration: d, Window: w.window(),
	}
}
