package memory

import (
	"testing"

	"github.com/podmq/podmq/pkg/core"
)

// A client whose answer was late asks again under the same poll-id, and only then
// is the first answer seen to be lost.
func TestG8ALostAnswerTakesNothingFromTheOneThatRepeatsIt(t *testing.T) {
	b := New(Options{})
	defer b.Close()
	create(t, b, "orders", core.TopicSpec{})
	if _, err := b.Publish(t.Context(), "orders", request(t, 1<<10), nil); err != nil {
		t.Fatal(err)
	}
	poll := func(id string) *core.Batch {
		t.Helper()
		var batch core.Batch
		req := core.PollRequest{Member: "c1", Max: 1, MaxBytes: 1, Partition: core.AnyPartition, PollID: id}
		if err := b.Poll(t.Context(), "orders", "g", &req, &batch); err != nil {
			t.Fatal(err)
		}
		return &batch
	}
	lost := func(batch *core.Batch) {
		t.Helper()
		if err := b.Return(t.Context(), "orders", "g", &batch.Receipt); err != nil {
			t.Fatal(err)
		}
	}
	first, again := poll("1"), poll("1")
	if first.Receipt.Delivery != again.Receipt.Delivery {
		t.Fatal("the same poll-id brought another batch")
	}
	lost(first)
	if n := len(poll("").Deliveries); n != 0 {
		t.Error("what the second answer holds was handed out again")
	}
	lost(again)
	if n := len(poll("").Deliveries); n != 1 {
		t.Error("with the last answer lost, the batch did not come back")
	}
}
