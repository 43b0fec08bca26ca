package transport

import (
	"context"
	"sync"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

const (
	// freeOfBudget is what a body or an answer may have without asking: the
	// connections are bounded, and so is what they take this way.
	freeOfBudget = 64 << 10

	leastAdmission = time.Second
	mostAdmission  = 5 * time.Second
)

// A budget bounds the memory of large bodies being received and large answers
// being written, over all connections. Who gets none waits, first come first
// served, so that a large one is not starved by small ones. What is larger than
// the whole budget takes all of it: it passes alone.
type budget struct {
	size int64

	mu     sync.Mutex
	free   int64 // 0 <= free <= size
	queue  []*admission
	joined chan struct{} // for tests: gets a token, if it has room, when one starts to wait
}

type admission struct {
	n       int64
	granted chan struct{} // closed when n is taken
}

func newBudget(size int64) *budget { return &budget{size: size, free: size} }

// tryTake takes n bytes if nobody waits and they are free, and returns how many
// it took.
func (b *budget) tryTake(n int64) (taken int64, ok bool) {
	n = min(n, b.size)
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) > 0 || n > b.free {
		return 0, false
	}
	b.free -= n
	return n, true
}

// take takes n bytes, waiting at most wait for them, and returns how many it
// took. The error is the context's or CodeMemoryFull.
func (b *budget) take(ctx context.Context, n int64, wait time.Duration) (taken int64, err error) {
	a := &admission{n: min(n, b.size), granted: make(chan struct{})}
	b.mu.Lock()
	b.queue = append(b.queue, a)
	b.grantLocked()
	b.mu.Unlock()
	if b.joined != nil {
		select {
		case b.joined <- struct{}{}:
		default:
		}
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-a.granted:
		return a.n, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-t.C:
		full := core.Errorf(core.CodeMemoryFull, "cannot take %d bytes now: requests and answers in flight use up their budget of %d bytes; try again", n, b.size).
			With("bytes", n).With("budget_bytes", b.size)
		full.RetryAfter = time.Second
		err = full
	}
	if !b.leave(a) {
		return a.n, nil // granted at the last moment
	}
	return 0, err
}

// leave ends a's waiting and reports whether it was still waiting.
func (b *budget) leave(a *admission) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.queue {
		if b.queue[i] == a {
			b.queue = append(b.queue[:i], b.queue[i+1:]...)
			b.grantLocked() // those behind it may fit
			return true
		}
	}
	return false
}

// give gives n bytes back.
func (b *budget) give(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free += n
	b.grantLocked()
}

func (b *budget) grantLocked() {
	for len(b.queue) > 0 && b.queue[0].n <= b.free {
		a := b.queue[0]
		b.free -= a.n
		close(a.granted)
		b.queue[0] = nil
		b.queue = b.queue[1:]
	}
}

// admissionWait is how long a request waits for the budget: what it waits for
// anyway, within bounds.
func admissionWait(wait time.Duration) time.Duration {
	return min(max(wait, leastAdmission), mostAdmission)
}
