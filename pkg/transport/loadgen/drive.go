package loadgen

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"
)

// A Talk is a connection and what is said on it.
type Talk struct {
	Conn    net.Conn
	Session Session
}

// stallAfter is how long nothing may happen before a run is given up.
const stallAfter = 15 * time.Second

// Drive runs the talks on so many loops until the tally is over and settled,
// which it calls then, returns: while it waits for the broker to have heard all
// acknowledgements, the talks go on. It closes the connections. When ctx ends,
// producers stop and what is on its way is awaited. Consumers should come first,
// so that their polls are parked when the first message comes.
func Drive(ctx context.Context, t *Tally, loops int, talks []Talk, settled func() error) error {
	began := time.Now()
	driving, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	complete := make(chan struct{})
	var once sync.Once
	over := func() bool {
		if t.Over() {
			once.Do(func() { close(complete) })
		}
		return driving.Err() != nil
	}
	var running sync.WaitGroup
	for i := range loops {
		l, err := NewLoop(began)
		if err != nil {
			stop(err)
			break
		}
		defer l.Close()
		for j := i; j < len(talks); j += loops {
			if err := l.Add(talks[j].Conn, talks[j].Session); err != nil {
				stop(err)
			}
		}
		running.Go(func() {
			if err := l.Run(over); err != nil {
				stop(err)
			}
		})
	}
	running.Go(func() { stop(watch(ctx, driving, t, complete, settled)) })
	running.Wait()
	// A nil cause of a cancelled context is shown as context.Canceled.
	if err := context.Cause(driving); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// watch waits for the end of a run, and ends one that was interrupted or does not
// move.
func watch(ctx, driving context.Context, t *Tally, complete <-chan struct{}, settled func() error) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	interrupted := ctx.Done()
	var last uint64
	moved := time.Now()
	for {
		select {
		case <-complete:
			if err := t.Check(); err != nil {
				return err
			}
			return settled()
		case <-driving.Done():
			return nil
		case <-interrupted:
			interrupted = nil
			t.Stop()
		case now := <-tick.C:
			if done := t.Stored() + t.Delivered(); done != last || !t.pending() {
				last, moved = done, now
			}
			if now.Sub(moved) > stallAfter {
				return fmt.Errorf("cannot go on: nothing happened for %v; %d messages were confirmed and %d delivered", stallAfter, t.Stored(), t.Delivered())
			}
		}
	}
}

// DialAll opens n connections. On a Unix socket a full backlog is no refusal: it
// waits until the broker has accepted some.
func DialAll(ctx context.Context, network, address string, n int) ([]net.Conn, error) {
	conns := make([]net.Conn, 0, n)
	var d net.Dialer
	for range n {
		c, err := d.DialContext(ctx, network, address)
		for errors.Is(err, syscall.EAGAIN) && ctx.Err() == nil {
			<-time.After(time.Millisecond)
			c, err = d.DialContext(ctx, network, address)
		}
		if err != nil {
			for _, c := range conns {
				err = errors.Join(err, c.Close())
			}
			return nil, err
		}
		conns = append(conns, c)
	}
	return conns, nil
}
