package enginetest

import (
	"context"
	"errors"
	"testing/synctest"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

// A call is one that runs beside the script, as a rule parked in the engine.
type call[T any] struct {
	*script
	cancel context.CancelFunc
	ended  chan struct{} // closed when the fields below are set

	value T
	err   error
	at    time.Time
}

func begin[T any](s *script, f func(ctx context.Context) (T, error)) *call[T] {
	ctx, cancel := context.WithCancel(s.Context())
	c := &call[T]{script: s, cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(c.ended)
		c.value, c.err = f(ctx)
		c.at = time.Now()
	}()
	s.Cleanup(func() { cancel(); <-c.ended })
	return c
}

// over reports whether the call has ended, once everything is at rest.
func (c *call[T]) over() bool {
	if !c.features.RealTime {
		synctest.Wait()
	}
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

func (c *call[T]) wait() (T, error) {
	<-c.ended
	return c.value, c.err
}

// parked checks that the call still waits.
func (c *call[T]) parked() {
	c.Helper()
	if c.over() {
		c.Fatalf("the call ended with %v, %v, it must wait", c.value, c.err)
	}
}

// result is what the call came to; it must have ended by itself.
func (c *call[T]) result() T {
	c.Helper()
	if !c.features.RealTime && !c.over() {
		c.Fatal("the call still waits, it must have ended")
	}
	v, err := c.wait()
	c.ok("the parked call", err)
	return v
}

// failed checks with which code the call ended.
func (c *call[T]) failed(code core.Code) error {
	c.Helper()
	if !c.features.RealTime && !c.over() {
		c.Fatalf("the call still waits, it must have ended with %s", code)
	}
	_, err := c.wait()
	c.refused(code, err)
	return err
}

// abandon ends the call as a caller does who went away.
func (c *call[T]) abandon() {
	c.Helper()
	c.cancel()
	if _, err := c.wait(); !errors.Is(err, context.Canceled) {
		c.Fatalf("an abandoned call ended with %v, want %v", err, context.Canceled)
	}
}

// park begins a poll and comes back when it waits in the engine.
func (g *group) park(member string, max int, wait time.Duration) *call[core.Batch] {
	g.Helper()
	req := ask(member, max)
	req.Wait = wait
	return g.parkLike(req)
}

func (g *group) parkLike(req core.PollRequest) *call[core.Batch] {
	g.Helper()
	waiting := g.look().PollsWaiting
	c := begin(g.script, func(ctx context.Context) (core.Batch, error) { return g.tryPoll(ctx, req) })
	g.until(func() bool { return g.look().PollsWaiting > waiting })
	return c
}

// parkPublish begins a publish and comes back when it waits in the engine.
func (s *script) parkPublish(partition int, wait time.Duration, payloads ...string) *call[[]core.Placement] {
	s.Helper()
	waiting := s.stats().Publishing
	c := begin(s, func(ctx context.Context) ([]core.Placement, error) {
		return s.tryPublish(ctx, wait, partition, payloads...)
	})
	s.until(func() bool { return s.stats().Publishing > waiting })
	return c
}

// until comes back when the engine has got so far: at once in virtual time,
// where all that can happen has happened.
func (s *script) until(ready func() bool) {
	s.Helper()
	if !s.features.RealTime {
		synctest.Wait()
		if !ready() {
			s.Fatal("the call does not wait in the engine")
		}
		return
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ready() {
		select {
		case <-tick.C:
		case <-s.Context().Done():
			s.Fatal("the call does not wait in the engine")
		}
	}
}
