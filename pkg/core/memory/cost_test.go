package memory_test

import (
	"context"
	"testing"

	"github.com/podmq/podmq/pkg/core"
)

// What a message costs is counted in objects, never in time.

func TestCostOfPublishPollAndAckIsNoAllocation(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates: counted in the run without it")
	}
	for _, batch := range []int{1, 100} {
		for _, kind := range []core.GroupType{core.Ordered, core.Queue} {
			broker := open(t, 0)
			must(t, created(broker.CreateGroup(context.Background(), "t", "g0", core.GroupSpec{Type: core.Some(kind)})))
			round := rounds(t, broker, batch)
			for range 200 { // beyond the first chunks of the log, and into the steady state
				round()
			}
			if n := testing.AllocsPerRun(500, round); n != 0 {
				t.Errorf("a round of %d in a group of kind %s: %v allocations, want none", batch, kind, n)
			}
		}
	}
}

// rounds returns what publishes, polls and acks a batch.
func rounds(t *testing.T, broker core.Engine, batch int) func() {
	pub := core.PublishRequest{Partition: core.AnyPartition}
	for range batch {
		pub.Messages = append(pub.Messages, message(t))
	}
	req := core.PollRequest{Member: "m", Max: batch, MaxBytes: core.MaxPollBytes, Partition: core.AnyPartition}
	ack := core.AckRequest{Receipts: make([]core.Receipt, 1)}
	var got core.Batch
	var placed []core.Placement
	return func() {
		var err error
		placed, err = broker.Publish(context.Background(), "t", &pub, placed[:0])
		must(t, err)
		must(t, broker.Poll(context.Background(), "t", "g0", &req, &got))
		if len(got.Deliveries) != batch {
			t.Fatalf("a poll brought %d messages, want %d", len(got.Deliveries), batch)
		}
		ack.Receipts[0] = got.Receipt
		settled, err := broker.Ack(context.Background(), "t", "g0", &ack)
		must(t, err)
		ack.Buffer = settled.Cursors
	}
}

// A consumer that always waits is given each message by the publisher.
func TestCostOfAHandOverToAParkedPollIsNoAllocation(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates: counted in the run without it")
	}
	const runs = 500
	broker := open(t, 1)
	taken := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		drainEach(t, broker, 200+runs+1, taken)
	}()
	pub := core.PublishRequest{Partition: core.AnyPartition, Messages: []core.Message{message(t)}}
	var placed []core.Placement
	round := func() {
		var err error
		placed, err = broker.Publish(context.Background(), "t", &pub, placed[:0])
		must(t, err)
		<-taken
	}
	for range 200 {
		round()
	}
	if n := testing.AllocsPerRun(runs, round); n != 0 {
		t.Errorf("%v allocations a message, want none", n)
	}
	<-done
}

// drainEach consumes n messages one by one, acking each with the next poll, and
// says when it has one.
func drainEach(t *testing.T, broker core.Engine, n int, taken chan<- struct{}) {
	req := core.PollRequest{Member: "m", Max: 1, MaxBytes: core.MaxPollBytes, Wait: core.MaxWait, Partition: core.AnyPartition}
	var got core.Batch
	acks := make([]core.Receipt, 1)
	for range n {
		if err := broker.Poll(context.Background(), "t", "g0", &req, &got); err != nil {
			t.Error(err)
			return
		}
		ranges := append(acks[0].Ranges[:0], got.Receipt.Ranges...)
		acks[0] = got.Receipt
		acks[0].Ranges = ranges
		req.Acks = acks
		taken <- struct{}{}
	}
}
