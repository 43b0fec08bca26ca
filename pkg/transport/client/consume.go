package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

const (
	// DefaultConsumeWait is how long Consume lets one poll park.
	DefaultConsumeWait = 20 * time.Second

	// answerGrace is how much longer than its wait a poll may take before it is
	// given up and repeated: a stopped broker accepts connections and never
	// answers.
	answerGrace = 10 * time.Second
	// closeTimeout is what settling the last message and leaving the group may
	// take after the context has ended.
	closeTimeout = 3 * time.Second
	// pollGrace is how long a poll may take to be answered after its member has
	// left: it may not have arrived yet by then.
	pollGrace = 250 * time.Millisecond
)

// ConsumeConfig says what to consume, and how.
type ConsumeConfig struct {
	Topic string
	Group string
	// Member names this consumer in its group. Two that run at once must have
	// different names. Empty: the host's name and something random. A name that
	// a restarted process has again gets its partitions back at once; with a
	// random one they wait for the group's session timeout when it crashed.
	Member   string
	Max      int           // messages a poll; 0: core.DefaultPollMax
	MaxBytes int           // bytes a poll; 0: core.DefaultPollBytes
	Wait     time.Duration // how long one poll parks; 0: DefaultConsumeWait
	// OnError is told of everything that went wrong: a call that failed and is
	// repeated, an ack that was refused, an error of the handler. It is never
	// called twice at once, but not always by the same goroutine. nil: a warning
	// to slog.Default().
	OnError func(error)
}

// A Handler does the work of one message. nil says that it is done.
type Handler func(ctx context.Context, d *Delivery) error

// Consume polls and calls handler for one message after the other until ctx
// ends; then it leaves the group and returns the cause. Only a cfg that can never
// work ends it before that. For more messages at once, run it several times.
//
// Where handler returns nil the message is acked at once, the last one of a batch
// by the next poll. Where it returns an error the message is nacked and comes
// again, at once the first time and later after a growing delay; in an ordered
// group the rest of its partition's batch is not attempted, because it comes
// again behind it. Messages that come with it from other partitions, or in a
// queue group, are not held up.
//
// Leases are renewed while handler runs, for as long as the group's max-lease
// allows; handler is never interrupted because of a lease. Its context is ctx.
// When that ends, handler may finish: what it returns nil for is still acked, and
// an error then counts as no attempt.
//
// A broker that is away, draining or restarted, and a topic or group that is not
// there (yet, or any more), are waited for with growing pauses of up to 5 s. An
// ack may be refused, because the messages were handed out again since: then the
// rest of that partition's batch is left to whoever got it. After a restart of
// the broker nobody else can have the messages in hand, so they are still
// handled.
//
// A panic of handler is not recovered: it goes through Consume. The messages in
// hand come back when their lease ends, which counts as an attempt; so a message
// that crashes its consumer does not go round for ever uncounted.
func (c *Client) Consume(ctx context.Context, cfg ConsumeConfig, handler Handler) error {
	k, err := newConsumer(c, cfg, handler)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		if b := k.poll(ctx); b != nil && len(b.Messages) > 0 {
			k.work(ctx, b)
		}
	}
	if k.leaveErr == nil {
		k.leaveErr = k.leave(ctx)
	}
	if k.leaveErr != nil {
		k.report(k.leaveErr)
	}
	return context.Cause(ctx)
}

// A consumer is one run of Consume.
type consumer struct {
	c       *Client
	cfg     ConsumeConfig
	handler Handler

	instance string   // makes poll ids this run's own
	polls    uint64   // answered; the next one's id is made of it
	acks     []string // receipts that the next poll settles
	wait     backoff  // between polls that fail
	leaveErr error    // of leaving while a poll was in flight: not tried twice

	mu sync.Mutex // held while OnError runs
}

func newConsumer(c *Client, cfg ConsumeConfig, handler Handler) (*consumer, error) {
	if handler == nil {
		return nil, core.Invalid("handler", "cannot consume without a handler")
	}
	if _, err := groupPath(cfg.Topic, cfg.Group); err != nil {
		return nil, err
	}
	if cfg.Max < 0 || cfg.Max > core.MaxPollMessages {
		return nil, core.Invalid("max", "cannot poll %d messages at once: it is 1 to %d", cfg.Max, core.MaxPollMessages)
	}
	if cfg.MaxBytes < 0 || cfg.MaxBytes > core.MaxPollBytes {
		return nil, core.Invalid("max-bytes", "cannot poll %d bytes at once: it is 1 to %d", cfg.MaxBytes, core.MaxPollBytes)
	}
	cfg.Wait = cmp.Or(cfg.Wait, DefaultConsumeWait)
	if cfg.Wait < 0 || cfg.Wait > core.MaxWait {
		return nil, core.Invalid("wait", "cannot let a poll wait %v: it is up to %v", cfg.Wait, core.MaxWait)
	}
	k := &consumer{c: c, cfg: cfg, handler: handler, instance: random()}
	k.cfg.Member = cmp.Or(cfg.Member, memberName(k.instance))
	return k, core.CheckMember(k.cfg.Member)
}

func random() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // crypto/rand never fails
	return hex.EncodeToString(b[:])
}

// memberName is the host's name and the suffix; all containers of a pod have the
// same host name, and often the same process id.
func memberName(suffix string) string {
	host, _ := os.Hostname()
	if name := host + "-" + suffix; core.CheckMember(name) == nil {
		return name
	}
	return "consumer-" + suffix
}

// poll makes one poll. nil says that it failed: that was reported then, and
// waited for where waiting helps.
func (k *consumer) poll(ctx context.Context) *Batch {
	b, err := k.ask(ctx)
	if err == nil {
		k.polls++
		k.acks = nil
		k.wait.reset()
		k.reportLosses(b)
		return b
	}
	if ctx.Err() != nil {
		return nil
	}
	var refused *core.Error
	if errors.As(err, &refused) && refused.Code == core.CodeStaleReceipt && len(k.acks) > 0 {
		k.report(fmt.Errorf("ack refused: %w", err))
		k.acks = nil // so that this cannot go round in a circle
		return nil
	}
	k.report(fmt.Errorf("poll failed: %w", err))
	_ = k.wait.sleep(ctx, retryIn(err)) // an end of ctx ends Consume's loop
	return nil
}

// ask polls once. An end of ctx does not cut it off but leaves the group, upon
// which the broker answers: so no poll can arrive late and make a member again
// of one who has left.
func (k *consumer) ask(ctx context.Context) (*Batch, error) {
	most := k.cfg.Wait + answerGrace + max(k.c.dialRetry, 0)
	limited, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), most, errNoAnswer)
	defer cancel()
	left := make(chan error, 1)
	unless := context.AfterFunc(ctx, func() {
		err := k.leave(ctx)
		if err != nil {
			cancel()
		} else {
			time.AfterFunc(pollGrace, cancel)
		}
		left <- err
	})
	b, err := k.c.Poll(limited, k.cfg.Topic, k.cfg.Group, PollRequest{
		Member: k.cfg.Member, Max: k.cfg.Max, MaxBytes: k.cfg.MaxBytes, Wait: k.cfg.Wait, Acks: k.acks,
		// The same id until there is an answer: a lost one costs nothing.
		PollID: k.instance + "-" + strconv.FormatUint(k.polls, 10),
	})
	if !unless() {
		k.leaveErr = <-left
	}
	return b, err
}

// reportLosses tells of what a poll lost that went well otherwise.
func (k *consumer) reportLosses(b *Batch) {
	for _, s := range b.Stale {
		k.report(fmt.Errorf("ack of %d:%d to %d refused: handed out again since", s.Partition, s.From, s.To-1))
	}
	for _, s := range b.Skipped {
		k.report(fmt.Errorf("%d:%d to %d are lost: retention passed them before this group read them", s.Partition, s.From, s.To-1))
	}
}

var errNoAnswer = errors.New("the broker does not answer")

// retryIn is how long the broker asked to wait before trying again.
func retryIn(err error) time.Duration {
	var refused *core.Error
	if errors.As(err, &refused) {
		return refused.RetryAfter
	}
	return 0
}

// leave settles what is done and gives the rest back, so that others need not
// wait for a lease to end. It may be called while a poll is parked, and again.
func (k *consumer) leave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	path, err := memberPath(k.cfg.Topic, k.cfg.Group, k.cfg.Member)
	if err != nil {
		return err
	}
	var ackErr error
	if len(k.acks) > 0 {
		if _, ackErr = k.c.Ack(ctx, k.cfg.Topic, k.cfg.Group, k.acks...); ackErr != nil {
			ackErr = fmt.Errorf("last ack failed: %w", ackErr)
		}
	}
	// One dial: nobody to leave is no reason to stay.
	if _, err = k.c.once(ctx, &call{method: http.MethodDelete, path: path}); err != nil {
		err = fmt.Errorf("leaving the group failed: %w", err)
	}
	return errors.Join(ackErr, err)
}

func (k *consumer) report(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	err = fmt.Errorf("consume %s/%s: %w", k.cfg.Topic, k.cfg.Group, err)
	if k.cfg.OnError != nil {
		k.cfg.OnError(err)
		return
	}
	slog.Warn("podmq consumer goes on after an error", "topic", k.cfg.Topic, "group", k.cfg.Group, "member", k.cfg.Member, "error", err)
}
