package client_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/podmq/podmq/pkg/core"
	"github.com/podmq/podmq/pkg/core/memory"
	"github.com/podmq/podmq/pkg/transport/client"
)

// A handler that fails once: what came before stays acked, the rest of the batch waits.
func TestSeedPushThroughConsume(t *testing.T) {
	t.Parallel()
	b := startBroker(t, one, "ledger")
	b.publish("pay-1", "pay-2", "pay-3")
	failed := false
	k := consume(t, b.Client, client.ConsumeConfig{Group: "ledger"}, func(_ context.Context, d *client.Delivery) error {
		if string(d.Payload) == "pay-2" && !failed {
			failed = true
			b.wantLedger(1, 3) // 0:pay-1 is acked before the next is attempted
			return errors.New("fails once")
		}
		return nil
	})
	for _, want := range []string{"0:pay-1 #1", "1:pay-2 #1", "1:pay-2 #2", "2:pay-3 #1"} {
		d := k.next()
		if got := fmt.Sprintf("%d:%s #%d", d.Offset, d.Payload, d.Attempt); got != want {
			t.Errorf("the handler got %s, want %s", got, want)
		}
	}
	k.told("handler failed on 0:1, attempt 1: fails once")
	k.end()
	b.wantCommitted("ledger", 3)
}

func (b *broker) wantLedger(committed, next int64) {
	b.t.Helper()
	g, err := b.engine.Group(context.Background(), "orders", "ledger")
	if err != nil || g.Cursors[0].Committed != committed || g.Cursors[0].Next != next {
		b.t.Errorf("the group is %+v, %v, want committed %d next %d", g, err, committed, next)
	}
}

func TestG9ARefusedAckDoesNotEndConsume(t *testing.T) {
	t.Parallel()
	b := startBroker(t, one, "billing")
	b.publish("a", "b", "c")
	var stolen core.Batch
	k := consume(t, b.Client, client.ConsumeConfig{Group: "billing", Member: "slow"}, func(ctx context.Context, d *client.Delivery) error {
		if d.Offset == 0 { // the others take over, as at the end of a lease
			if err := b.engine.Leave(ctx, "orders", "billing", "slow"); err != nil {
				return err
			}
			return b.engine.Poll(ctx, "orders", "billing", &core.PollRequest{Member: "quick", Max: 10, MaxBytes: 1 << 20, Partition: core.AnyPartition}, &stolen)
		}
		return nil
	})
	k.next()
	k.told("ack of 0:0 refused: ")
	if len(stolen.Deliveries) != 3 {
		t.Fatalf("the other member got %d messages, want all 3", len(stolen.Deliveries))
	}
	if _, err := b.engine.Ack(t.Context(), "orders", "billing", &core.AckRequest{Receipts: []core.Receipt{stolen.Receipt}}); err != nil {
		t.Fatal(err)
	}
	if err := b.engine.Leave(t.Context(), "orders", "billing", "quick"); err != nil {
		t.Fatal(err)
	}
	b.publish("d")
	if d := k.next(); string(d.Payload) != "d" {
		t.Errorf("after the refused ack the handler got %q, want d: the rest was another's", d.Payload)
	}
	k.end()
	b.wantCommitted("billing", 4)
}

func TestG3ConsumeLeavesItsGroupAndGivesBackWhatIsInHand(t *testing.T) {
	t.Parallel()
	b := startBroker(t, one, "billing")
	b.publish("a", "b", "c")
	started := make(chan struct{})
	k := consume(t, b.Client, client.ConsumeConfig{Group: "billing"}, func(ctx context.Context, _ *client.Delivery) error {
		close(started)
		<-ctx.Done()
		return nil // it was done all the same
	})
	<-started
	k.end()
	g, err := b.Group(t.Context(), "orders", "billing")
	if err != nil || len(g.Members) != 0 || g.Cursors[0].Committed != 1 || g.Cursors[0].Next != 1 {
		t.Errorf("the group is %+v, %v, want no members and the first message acked", g, err)
	}
	again := consume(t, b.Client, client.ConsumeConfig{Group: "billing"}, done)
	for _, want := range []string{"b", "c"} {
		if d := again.next(); string(d.Payload) != want || d.Attempt != 1 {
			t.Errorf("the next consumer got %q, attempt %d, want %q at its first", d.Payload, d.Attempt, want)
		}
	}
}

func TestConsumeLeavesWhileItsPollIsParked(t *testing.T) {
	t.Parallel()
	b := startBroker(t, one, "billing")
	b.publish("a")
	k := consume(t, b.Client, client.ConsumeConfig{Group: "billing"}, done)
	k.next()
	k.end() // in the moment in which its next poll is made, or is parked
	g, err := b.Group(t.Context(), "orders", "billing")
	if err != nil || len(g.Members) != 0 {
		t.Errorf("the group is %+v, %v, want no members", g, err)
	}
	b.wantCommitted("billing", 1)
}

// An extending engine counts the leases that were renewed.
type extending struct {
	core.Engine
	extended chan struct{}
}

func (e *extending) Extend(ctx context.Context, topic, group string, r *core.ExtendRequest) (core.Settled, error) {
	s, err := e.Engine.Extend(ctx, topic, group, r)
	if err == nil {
		e.extended <- struct{}{}
	}
	return s, err
}

func TestConsumeKeepsItsLeaseWhileTheHandlerRuns(t *testing.T) {
	t.Parallel()
	for _, kind := range []core.GroupType{core.Ordered, core.Queue} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			b := startBroker(t, one)
			b.stop()
			short := one
			short.AckTimeout = time.Second
			e := &extending{memory.New(memory.Options{Topic: short, MaxBytes: 1 << 20}), make(chan struct{}, 100)}
			b.run(e)
			if _, err := b.CreateGroup(t.Context(), "orders", "billing", core.GroupSpec{Type: core.Some(kind)}); err != nil {
				t.Fatal(err)
			}
			b.publish("a", "b")
			k := consume(t, b.Client, client.ConsumeConfig{Group: "billing"}, func(_ context.Context, d *client.Delivery) error {
				for range 4 { // longer than a lease, which is renewed at each third
					<-e.extended
				}
				return nil
			})
			for _, want := range []string{"a", "b"} {
				if d := k.next(); string(d.Payload) != want || d.Attempt != 1 {
					t.Errorf("the handler got %q, attempt %d, want %q, attempt 1", d.Payload, d.Attempt, want)
				}
			}
			b.publish("c")
			if d := k.next(); string(d.Payload) != "c" {
				t.Errorf("the handler got %q, want c: the lease of what came before was lost", d.Payload)
			}
		})
	}
}

func TestConsumeGoesOnWithAnotherBroker(t *testing.T) {
	t.Parallel()
	b := startBroker(t, one, "billing")
	b.publish("a", "b", "c")
	handling, release := make(chan struct{}, 1), make(chan struct{})
	k := consume(t, b.Client, client.ConsumeConfig{Group: "billing"}, func(_ context.Context, d *client.Delivery) error {
		if d.Offset == 0 && string(d.Payload) == "a" {
			handling <- struct{}{}
			<-release
		}
		return nil
	})
	<-handling
	epoch := b.Epoch()
	b.stop()
	b.run(memory.New(memory.Options{Topic: one, MaxBytes: 1 << 20})) // without the group
	close(release)
	k.told("poll failed: ")
	if _, err := b.CreateGroup(t.Context(), "orders", "billing", core.GroupSpec{}); err != nil {
		t.Fatal(err)
	}
	b.publish("d")
	// b and c were in hand, and no other broker has them.
	for _, want := range []string{"a", "b", "c", "d"} {
		if d := k.next(); string(d.Payload) != want {
			t.Errorf("the handler got %q, want %q", d.Payload, want)
		}
	}
	if b.Epoch() == epoch {
		t.Errorf("the epoch is still %q", epoch)
	}
	k.end()
	b.wantCommitted("billing", 1)
}

func TestConsumeOutlivesItsGroup(t *testing.T) {
	t.Parallel()
	b := startBroker(t, one, "billing")
	k := consume(t, b.Client, client.ConsumeConfig{Group: "billing"}, done)
	b.publish("a")
	k.next()
	if err := b.DeleteGroup(t.Context(), "orders", "billing"); err != nil {
		t.Fatal(err)
	}
	k.told("unknown_group")
	if _, err := b.CreateGroup(t.Context(), "orders", "billing", core.GroupSpec{}); err != nil {
		t.Fatal(err)
	}
	b.publish("b")
	if d := k.next(); string(d.Payload) != "b" {
		t.Errorf("the handler got %q, want b", d.Payload)
	}
}

// Members come and go while messages are published; nothing is lost, and in an
// ordered group no key goes back beyond what was acked.
func TestG1G6ConsumersComeAndGo(t *testing.T) {
	t.Parallel()
	for _, kind := range []core.GroupType{core.Ordered, core.Queue} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			const keys, each, members = 8, 60, 3
			b := startBroker(t, core.TopicSettings{Partitions: 4, Capacity: 1024, AckTimeout: time.Minute})
			if _, err := b.CreateGroup(t.Context(), "orders", "billing", core.GroupSpec{Type: core.Some(kind)}); err != nil {
				t.Fatal(err)
			}
			var seen tally
			var running sync.WaitGroup
			ctx, cancel := context.WithCancel(t.Context())
			var calls atomic.Int64
			for m := range members {
				running.Go(func() {
					for run := 0; ctx.Err() == nil; run++ {
						life, leave := context.WithCancel(ctx)
						_ = b.Consume(life, client.ConsumeConfig{
							Topic: "orders", Group: "billing", Member: fmt.Sprintf("m%d-%d", m, run), Max: 5,
							OnError: func(err error) { seen.note(err) },
						}, func(_ context.Context, d *client.Delivery) error {
							seen.add(string(d.Key), string(d.Payload))
							switch calls.Add(1) % 40 {
							case 7:
								leave()
							case 20:
								return errWork
							}
							return nil
						})
						leave()
					}
				})
			}
			for i := range each {
				ms := make([]client.Message, keys)
				for k := range ms {
					ms[k] = client.Message{Key: fmt.Appendf(nil, "key-%d", k), Payload: fmt.Appendf(nil, "%04d", i)}
				}
				if _, err := b.PublishBatch(t.Context(), "orders", ms, client.Wait(patience)); err != nil {
					t.Fatal(err)
				}
			}
			eventually(t, "all is acked", func() bool {
				topic, err := b.Topic(t.Context(), "orders")
				return err == nil && !slices.ContainsFunc(topic.Partitions, func(p client.Partition) bool { return p.Backlog > 0 })
			})
			cancel()
			running.Wait()
			seen.check(t, keys, each, kind == core.Ordered)
		})
	}
}

var errWork = errors.New("work failed")

// A tally notes what handlers got, by key.
type tally struct {
	mu    sync.Mutex
	byKey map[string][]string
	odd   []error // that no member's coming or going explains
}

func (s *tally) add(key, payload string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byKey == nil {
		s.byKey = map[string][]string{}
	}
	s.byKey[key] = append(s.byKey[key], payload)
}

func (s *tally) note(err error) {
	if errors.Is(err, errWork) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.odd = append(s.odd, err)
}

func (s *tally) check(t *testing.T, keys, each int, ordered bool) {
	t.Helper()
	for _, err := range s.odd {
		t.Errorf("OnError was told of %v", err)
	}
	if len(s.byKey) != keys {
		t.Errorf("%d keys were seen, want %d", len(s.byKey), keys)
	}
	for key, got := range s.byKey {
		first := slices.Clone(got)
		if ordered { // a message may come again; the first time each comes is in order
			first = nil
			for _, p := range got {
				if !slices.Contains(first, p) {
					first = append(first, p)
				}
			}
		} else {
			slices.Sort(first)
			first = slices.Compact(first)
		}
		want := make([]string, each)
		for i := range want {
			want[i] = fmt.Sprintf("%04d", i)
		}
		if !slices.Equal(first, want) {
			t.Errorf("%s: the handlers got %q", key, got)
		}
	}
}
