package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

// A batchInHand is a batch while its messages are handled.
type batchInHand struct {
	*consumer
	*Batch
	// left holds the partitions of an ordered batch whose rest is no longer this
	// consumer's: a message of it failed or was handed out again since.
	left map[int]bool
	// orphaned says that the broker which handed it out is gone. Nobody else has
	// these messages, and there is nothing left to settle.
	orphaned bool
}

// work handles a batch, and keeps its lease meanwhile.
func (k *consumer) work(ctx context.Context, b *Batch) {
	defer k.keepLease(ctx, b)()
	h := &batchInHand{consumer: k, Batch: b, left: map[int]bool{}}
	for i := range b.Messages {
		d := &b.Messages[i]
		if h.left[d.Partition] {
			continue
		}
		if ctx.Err() != nil {
			return
		}
		if err := k.handler(ctx, d); err != nil {
			k.report(fmt.Errorf("handler failed on %d:%d, attempt %d: %w", d.Partition, d.Offset, d.Attempt, err))
			if ctx.Err() != nil {
				return // leaving gives it back, and counts no attempt
			}
			h.nack(ctx, d)
			continue
		}
		h.ack(ctx, d, i == len(b.Messages)-1)
	}
}

// ack settles d, and in an ordered group what lies before it. The last message of
// a batch that went well needs no call of its own: the next poll acks it.
func (h *batchInHand) ack(ctx context.Context, d *Delivery, last bool) {
	queue := d.Receipt != ""
	switch {
	case h.orphaned:
	case last && queue:
		h.acks = []string{d.Receipt}
	case last && len(h.left) == 0:
		h.acks = []string{h.Receipt}
	case queue:
		h.settle(ctx, d, "ack", func(ctx context.Context) (Settled, error) {
			return h.c.Ack(ctx, h.cfg.Topic, h.cfg.Group, d.Receipt)
		})
	default:
		// Not the receipt alone: what was nacked of it is not done.
		h.settle(ctx, d, "ack", func(ctx context.Context) (Settled, error) {
			return h.c.AckUpto(ctx, h.cfg.Topic, h.cfg.Group, h.Receipt, d.Partition, d.Offset)
		})
	}
}

// nack hands d out again, and in an ordered group the rest of its partition.
func (h *batchInHand) nack(ctx context.Context, d *Delivery) {
	receipt, o := d.Receipt, NackOptions{}
	if receipt == "" {
		h.left[d.Partition] = true
		receipt, o = h.Receipt, NackOptions{Partition: core.Some(d.Partition), Offset: core.Some(d.Offset)}
	}
	if h.orphaned {
		return
	}
	h.settle(ctx, d, "nack", func(ctx context.Context) (Settled, error) {
		return h.c.Nack(ctx, h.cfg.Topic, h.cfg.Group, receipt, o)
	})
}

// settle repeats call until it is answered: settling twice does no harm. An end
// of ctx leaves it closeTimeout, so that what is done counts as done.
func (h *batchInHand) settle(ctx context.Context, d *Delivery, what string, call func(context.Context) (Settled, error)) {
	ctx, cancel := overtime(ctx, closeTimeout)
	defer cancel()
	for wait := (backoff{}); ; {
		_, err := call(ctx)
		if err == nil {
			return
		}
		if !passing(err) {
			h.refused(d, what, err)
			return
		}
		h.report(fmt.Errorf("%s of %d:%d failed: %w", what, d.Partition, d.Offset, err))
		if wait.sleep(ctx, retryIn(err)) != nil {
			return
		}
	}
}

// refused decides about the rest of the batch when a settlement no longer counts.
func (h *batchInHand) refused(d *Delivery, what string, err error) {
	h.report(fmt.Errorf("%s of %d:%d refused: %w", what, d.Partition, d.Offset, err))
	switch {
	case h.Epoch != h.c.Epoch():
		h.orphaned = true
	case d.Receipt == "":
		h.left[d.Partition] = true
	}
}

// passing reports whether the same call may succeed later. A refusal that says
// when to come back does, also one with a code that is younger than this client.
func passing(err error) bool {
	var refused *core.Error
	return !errors.As(err, &refused) || refused.Retryable() || refused.RetryAfter > 0
}

// overtime is a context that ends d after ctx does.
func overtime(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(d, cancel) })
	return longer, func() { stop(); cancel() }
}
