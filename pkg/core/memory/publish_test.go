package memory

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/podmq/podmq/pkg/core"
)

// request is for one message that costs so much, and waits.
func request(t *testing.T, cost int) *core.PublishRequest {
	t.Helper()
	m, err := core.NewMessage(&core.Content{Payload: []byte(strings.Repeat("x", cost-core.MessageOverhead))}, cost)
	if err != nil {
		t.Fatal(err)
	}
	return &core.PublishRequest{Messages: []core.Message{m}, Partition: core.AnyPartition, Wait: core.MaxWait}
}

func create(t *testing.T, b *Broker, topic string, spec core.TopicSpec) {
	t.Helper()
	if _, err := b.CreateTopic(t.Context(), topic, spec); err != nil {
		t.Fatal(err)
	}
	if _, err := b.CreateGroup(t.Context(), topic, "g", core.GroupSpec{}); err != nil {
		t.Fatal(err)
	}
}

// Between a publisher's try and its wait, another topic can give memory back and
// see nobody who waits for it.
func TestG13MemoryGivenBackBeforeAPublisherCouldBeSeenWaitingIsTriedAgain(t *testing.T) {
	b := New(Options{})
	defer b.Close()
	create(t, b, "orders", core.TopicSpec{})
	orders, err := b.find("orders")
	if err != nil {
		t.Fatal(err)
	}
	for _, before := range []core.Code{"", core.CodePartitionFull, core.CodeTopicFull} {
		w := newPublisher()
		w.ctx = t.Context()
		if err := orders.plan(w, request(t, 1<<10)); err != nil {
			t.Fatal(err)
		}
		if err := orders.enter(); err != nil {
			t.Fatal(err)
		}
		orders.park(w, refusal{before, 0})
		orders.block(w, refusal{core.CodeMemoryFull, 0}) // as it was a moment ago
		orders.leave()
		select {
		case err := <-w.done:
			if err != nil {
				t.Error(err)
			}
		default:
			t.Errorf("a publisher that waited for %q still waits", before)
		}
	}
}

func TestG13APublisherThatWaitsOnForMemoryIsAlwaysSeen(t *testing.T) {
	b := New(Options{})
	defer b.Close()
	create(t, b, "orders", core.TopicSpec{})
	orders, err := b.find("orders")
	if err != nil {
		t.Fatal(err)
	}
	w, full := newPublisher(), refusal{core.CodeMemoryFull, 0}
	orders.block(w, full)
	ctx, stop := context.WithCancel(t.Context())
	seen := make(chan int64)
	go func() {
		least := b.budget.waiting.Load()
		for ctx.Err() == nil {
			least = min(least, b.budget.waiting.Load())
		}
		seen <- least
	}()
	for range 100_000 {
		orders.block(w, full)
	}
	stop()
	// It is counted twice for a moment, while its reason changes, but never not at all.
	if least := <-seen; least < 1 {
		t.Errorf("%d publishers were seen waiting, want 1 at least all the time", least)
	}
	orders.block(w, refusal{})
	if n := b.budget.waiting.Load(); n != 0 {
		t.Errorf("%d publishers are seen waiting, want none", n)
	}
}

func TestG12WithTheLastGroupGoneNoPublisherWaitsForMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(Options{MaxBytes: 4 << 10})
		defer b.Close()
		create(t, b, "hog", core.TopicSpec{})
		create(t, b, "orders", core.TopicSpec{})
		if _, err := b.Publish(t.Context(), "hog", request(t, 4<<10), nil); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			_, err := b.Publish(t.Context(), "orders", request(t, 1<<10), nil)
			done <- err
		}()
		synctest.Wait()
		if err := b.DeleteGroup(t.Context(), "orders", "g"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		default:
			t.Error("the publisher still waits")
		}
	})
}

// A message without a key can go to any partition, so it stands in no partition's
// line; it has its place in all of them all the same.
func TestG16AMessageWithoutAKeyIsNotOvertakenByThoseThatCameLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(Options{})
		defer b.Close()
		create(t, b, "orders", core.TopicSpec{Partitions: core.Some(2), Capacity: core.Some(1)})
		order := make(chan string, 8)
		publish := func(name string, partition int) {
			req := request(t, 1<<10)
			req.Partition = partition
			go func() {
				if _, err := b.Publish(t.Context(), "orders", req, nil); err != nil {
					t.Error(err)
				}
				order <- name
			}()
			synctest.Wait()
		}
		publish("first", 0)
		publish("second", 1)
		publish("to 0, early", 0)
		publish("to any", core.AnyPartition)
		publish("to 0, late", 0)
		publish("to 1, late", 1)
		for _, want := range [][]string{{"first", "second"}, {"to 0, early", "to any"}, {"to 0, late", "to 1, late"}} {
			for range want {
				if got := <-order; !slices.Contains(want, got) {
					t.Fatalf("%q was stored now, want one of %q", got, want)
				}
			}
			var batch core.Batch
			req := core.PollRequest{Member: "c1", Max: 2, MaxBytes: 1 << 20, Partition: core.AnyPartition}
			if err := b.Poll(t.Context(), "orders", "g", &req, &batch); err != nil {
				t.Fatal(err)
			}
			if _, err := b.Ack(t.Context(), "orders", "g", &core.AckRequest{Receipts: []core.Receipt{batch.Receipt}}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
	})
}

// broken is an alarm's target that finds an invariant broken.
type broken struct{}

func (broken) ring() { panic("broken") }

func TestABrokenInvariantLeavesTheLockFree(t *testing.T) {
	b := New(Options{})
	defer b.Close()
	create(t, b, "orders", core.TopicSpec{})
	orders, err := b.find("orders")
	if err != nil {
		t.Fatal(err)
	}
	panics := func(call func()) {
		defer func() {
			if recover() == nil {
				t.Error("it does not panic")
			}
			if !orders.mu.TryLock() {
				t.Fatal("the lock is held")
			}
			orders.mu.Unlock()
		}()
		call()
	}
	enter := func() {
		if err := orders.enter(); err != nil {
			t.Fatal(err)
		}
	}
	enter()
	orders.alarms.set(&alarm{target: broken{}}, 0)
	orders.mu.Unlock()
	panics(enter)   // time finds it
	panics(func() { // the call finds it
		enter()
		defer orders.leave()
		panic("broken")
	})
	panics(func() { // serving those who wait finds it
		enter()
		orders.ready = append(orders.ready, nil)
		defer orders.leave()
	})
	orders.ready = nil
}
