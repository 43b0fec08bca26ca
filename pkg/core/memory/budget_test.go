package memory_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/podmq/podmq/pkg/core"
	"github.com/podmq/podmq/pkg/core/memory"
)

// What is never deleted is refused before it fills the memory, and what is
// deleted makes room.
func TestG21TopicsAndGroupsAreBoundedByTheMemoryTheyTake(t *testing.T) {
	const budget, most = 64 << 20, 16 << 20
	b := memory.New(memory.Options{MaxBytes: budget})
	defer b.Close()
	before := heapInUse()
	must(t, created(b.CreateTopic(t.Context(), "wide", core.TopicSpec{Partitions: core.Some(1000)})))
	fill := func() (n int) {
		for {
			_, err := b.CreateGroup(t.Context(), "wide", fmt.Sprint("g", n), core.GroupSpec{})
			if err != nil {
				if core.CodeOf(err) != core.CodeMemoryFull || n == 0 {
					t.Fatalf("group %d: %v", n, err)
				}
				return n
			}
			n++
		}
	}
	first := fill()
	if took := heapInUse() - before; took > most {
		t.Errorf("%d groups of 1000 partitions take %d bytes, want at most %d", first, took, most)
	}

	made := 0
	var refused error
	for ; refused == nil; made++ {
		_, refused = b.CreateTopic(t.Context(), fmt.Sprint("more", made), core.TopicSpec{Partitions: core.Some(1000)})
	}
	if core.CodeOf(refused) != core.CodeMemoryFull {
		t.Errorf("another topic: %v", refused)
	}
	for i := range made - 1 {
		must(t, b.DeleteTopic(t.Context(), fmt.Sprint("more", i)))
	}
	for range 3 {
		must(t, b.DeleteGroup(t.Context(), "wide", "g0"))
		must(t, created(b.CreateGroup(t.Context(), "wide", "g0", core.GroupSpec{})))
	}
	must(t, b.DeleteTopic(t.Context(), "wide"))
	must(t, created(b.CreateTopic(t.Context(), "wide", core.TopicSpec{Partitions: core.Some(1000)})))
	if again := fill(); again != first {
		t.Errorf("after the topic was deleted there is room for %d groups, before for %d", again, first)
	}
}

// A refused reservation leaves nothing taken.
func TestG21ARefusedTopicTakesNothing(t *testing.T) {
	b := memory.New(memory.Options{MaxBytes: 1 << 20})
	defer b.Close()
	must(t, created(b.CreateTopic(t.Context(), "half", core.TopicSpec{MaxBytes: core.Some[int64](600 << 10)})))
	for range 1000 {
		_, err := b.CreateTopic(t.Context(), "other", core.TopicSpec{Partitions: core.Some(1000), MaxBytes: core.Some[int64](600 << 10)})
		if core.CodeOf(err) != core.CodeMemoryFull {
			t.Fatal(err)
		}
	}
	must(t, created(b.CreateTopic(t.Context(), "other", core.TopicSpec{Partitions: core.Some(1000)})))
}

// The bounds of topics and groups do not come before those of their number.
func TestTheBoundsOfTopicsAndGroupsCanBeReached(t *testing.T) {
	b := memory.New(memory.Options{MaxBytes: 1 << 20})
	defer b.Close()
	for i := range core.MaxTopics {
		must(t, created(b.CreateTopic(t.Context(), fmt.Sprint("t", i), core.TopicSpec{Partitions: core.Some(1)})))
	}
	for i := range core.MaxGroups {
		must(t, created(b.CreateGroup(t.Context(), "t0", fmt.Sprint("g", i), core.GroupSpec{})))
	}
}

// A queue group that settles nothing is refused before it fills the memory, and
// stops nobody else.
func TestG21WhatQueueGroupsHaveOutIsBounded(t *testing.T) {
	const budget, most, messages = 20 << 20, 8 << 20, 140_000
	b := memory.New(memory.Options{MaxBytes: budget})
	defer b.Close()
	must(t, created(b.CreateTopic(t.Context(), "t", core.TopicSpec{Partitions: core.Some(2), Capacity: core.Some(messages), AckTimeout: core.Some(time.Hour)})))
	must(t, created(b.CreateGroup(t.Context(), "t", "keeper", core.GroupSpec{})))
	create := func(name string) {
		must(t, created(b.CreateGroup(t.Context(), "t", name, core.GroupSpec{Type: core.Some(core.Queue), Start: core.Some(core.Earliest)})))
	}
	create("q")
	create("other")
	m, err := core.NewMessage(&core.Content{}, 1)
	must(t, err)
	batch := core.PublishRequest{Partition: core.AnyPartition, Messages: slices.Repeat([]core.Message{m}, core.MaxBatchMessages)}
	for range messages / len(batch.Messages) {
		_, err := b.Publish(t.Context(), "t", &batch, nil)
		must(t, err)
	}

	var got core.Batch
	poll := func(group string, wait time.Duration) error {
		return b.Poll(t.Context(), "t", group, &core.PollRequest{Max: core.MaxPollMessages, MaxBytes: core.MaxPollBytes, Partition: core.AnyPartition, Member: "m", Wait: wait}, &got)
	}
	some := func(group string) core.Receipt {
		t.Helper()
		must(t, poll(group, 0))
		if len(got.Deliveries) == 0 {
			t.Fatalf("group %s got nothing", group)
		}
		r := got.Receipt
		r.Ranges = slices.Clone(r.Ranges)
		return r
	}
	ack := func(group string, receipts ...core.Receipt) {
		t.Helper()
		_, err := b.Ack(t.Context(), "t", group, &core.AckRequest{Receipts: receipts})
		must(t, err)
	}
	fill := func() (taken int, out []core.Receipt) {
		t.Helper()
		for {
			err := poll("q", 0)
			if core.CodeOf(err) == core.CodeMemoryFull {
				return taken, out
			}
			must(t, err)
			r := got.Receipt
			r.Ranges = slices.Clone(r.Ranges)
			taken, out = taken+len(got.Deliveries), append(out, r)
		}
	}

	before := heapInUse()
	taken, out := fill()
	if took := heapInUse() - before; took > most {
		t.Errorf("%d messages out take %d bytes, want at most %d", taken, took, most)
	}
	if err := poll("q", 10*time.Millisecond); core.CodeOf(err) != core.CodeMemoryFull {
		t.Errorf("who waited in vain got %v", err)
	}
	for range 3 {
		ack("other", some("other"))
	}
	_, err = b.Nack(t.Context(), "t", "q", &core.NackRequest{Receipt: out[1], Delay: core.Some(time.Duration(0))})
	must(t, err)
	out[1] = some("q") // what comes back is nothing fresh

	ack("q", out[:2]...)
	some("q")

	must(t, b.DeleteGroup(t.Context(), "t", "q"))
	create("q")
	if again, _ := fill(); again != taken {
		t.Errorf("after the group was deleted there is room for %d messages, before for %d", again, taken)
	}
	must(t, b.DeleteTopic(t.Context(), "t"))
}

// A poll that is parked while its group is full gets what came meanwhile as soon as
// the group has settled something.
func TestG15APollIsCalledWhenItsGroupIsNoLongerFull(t *testing.T) {
	b := memory.New(memory.Options{MaxBytes: 20 << 20})
	defer b.Close()
	queue := core.GroupSpec{Type: core.Some(core.Queue)}
	must(t, created(b.CreateTopic(t.Context(), "t", core.TopicSpec{Partitions: core.Some(2), AckTimeout: core.Some(time.Hour)})))
	must(t, created(b.CreateGroup(t.Context(), "t", "q", queue)))
	m, err := core.NewMessage(&core.Content{}, 1)
	must(t, err)
	publish := func(partition, n int) {
		t.Helper()
		_, err := b.Publish(t.Context(), "t", &core.PublishRequest{Partition: partition, Messages: slices.Repeat([]core.Message{m}, n)}, nil)
		must(t, err)
	}
	poll := func(batch *core.Batch, wait time.Duration) error {
		return b.Poll(t.Context(), "t", "q", &core.PollRequest{Max: core.MaxPollMessages, MaxBytes: core.MaxPollBytes, Partition: core.AnyPartition, Member: "m", Wait: wait}, batch)
	}
	publish(0, 200)
	var first core.Batch
	must(t, poll(&first, 0))
	must(t, created(b.CreateTopic(t.Context(), "wide", core.TopicSpec{Partitions: core.Some(1000)})))
	for i := 0; err == nil; i++ { // until nothing is left for anybody
		_, err = b.CreateGroup(t.Context(), "wide", fmt.Sprint(i), core.GroupSpec{})
	}
	for i := range core.MaxTopics - 2 {
		_, _ = b.CreateTopic(t.Context(), fmt.Sprint("u", i), core.TopicSpec{Partitions: core.Some(1)})
	}

	var second core.Batch
	done := make(chan error, 1)
	go func() { done <- poll(&second, time.Minute) }()
	parked := func() int { return b.Stats().Topics[0].Groups[0].PollsWaiting }
	for parked() == 0 {
		runtime.Gosched()
	}
	publish(1, 3)
	if parked() != 1 {
		t.Fatal("a full group handed out more")
	}
	_, err = b.Ack(t.Context(), "t", "q", &core.AckRequest{Receipts: []core.Receipt{first.Receipt}})
	must(t, err)
	if err := <-done; err != nil || len(second.Deliveries) != 3 {
		t.Errorf("%d messages, %v", len(second.Deliveries), err)
	}
}

func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
