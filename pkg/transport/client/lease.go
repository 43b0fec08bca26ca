package client

import (
	"context"
	"fmt"
	"time"
)

// keepLease renews a batch's lease until stop is called, which waits for the end
// of that. It outlives ctx: a handler may still be finishing.
func (k *consumer) keepLease(ctx context.Context, b *Batch) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		k.renew(ctx, b)
	}()
	return func() {
		cancel()
		<-done
	}
}

// renew extends the lease whenever a third of it has passed, which leaves room
// for one attempt to fail. It ends when there is nothing more to extend.
func (k *consumer) renew(ctx context.Context, b *Batch) {
	beat, wait := b.Lease/3, backoff{}
	timer := time.NewTimer(beat)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		s, err := k.c.Extend(ctx, k.cfg.Topic, k.cfg.Group, b.Receipt, 0)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && s.Lease == 0:
			return // all of it is settled
		case err == nil:
			wait.reset()
			beat = s.Lease / 3
			timer.Reset(beat)
		case passing(err):
			k.report(fmt.Errorf("renewing the lease failed: %w", err))
			timer.Reset(max(retryIn(err), min(wait.next(), beat)))
		default:
			k.report(fmt.Errorf("renewing the lease ended: %w", err))
			return
		}
	}
}
