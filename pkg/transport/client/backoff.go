package client

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	backoffFirst = 50 * time.Millisecond
	// backoffMost keeps a consumer from sleeping long past the return of a
	// broker that was away for long.
	backoffMost = 5 * time.Second
)

// A backoff is how long to wait before the next attempt: doubling, and with
// jitter, so that the containers of a pod do not all come back at once. The zero
// backoff is at its start.
type backoff struct{ failures int }

// next is the next wait, between half of the step and all of it.
func (b *backoff) next() time.Duration {
	step := backoffMost
	if b.failures < 16 { // 50 ms << 16 is far beyond the cap
		step = min(backoffFirst<<b.failures, backoffMost)
	}
	b.failures++
	return step/2 + rand.N(step/2+1)
}

// sleep waits, at least as long as the broker asked for. It returns the cause
// when ctx ends first.
func (b *backoff) sleep(ctx context.Context, least time.Duration) error {
	t := time.NewTimer(max(b.next(), least))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (b *backoff) reset() { b.failures = 0 }
