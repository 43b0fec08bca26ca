package stream

import (
	"testing"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

// G8
func TestOrderedPanicsWhenASecondBatchIsGranted(t *testing.T) {
	d := newDriver(4)
	r := d.addGroup(core.Ordered, core.Latest)
	d.publish(message(t, 1), message(t, 1))
	for name, ch := range map[string]Change{
		"empty":           {Kind: Granted, Delivery: 9},
		"not at the next": {Kind: Granted, Delivery: 9, From: 1, To: 2},
	} {
		if !panics(func() { d.apply(r, ch) }) {
			t.Errorf("a batch that is %s was granted: %+v", name, ch)
		}
	}
	d.poll(r, 1, Want{Messages: 1, Bytes: 1, Runs: 1}, time.Second)
	if !panics(func() { d.apply(r, Change{Kind: Granted, Delivery: 9, From: 1, To: 2}) }) {
		t.Error("a second batch was granted")
	}
}

// G11: no number of a delivery, not even that of none, passes a fence.
func TestOrderedJudgesNothingAsCurrentAfterAFence(t *testing.T) {
	d := newDriver(4)
	r := d.addGroup(core.Ordered, core.Latest)
	d.publish(message(t, 1), message(t, 1))
	got := d.poll(r, 1, all(), time.Second)
	d.ack(got, Run{0, 1})
	d.left(r, 1)
	d.fence(r)
	for delivery := range got.number + 2 {
		if parts := r.cursor.Judge(nil, delivery, Run{0, 2}); len(parts) != 1 || parts[0].Verdict != Stale {
			t.Errorf("delivery %d is judged %+v", delivery, parts)
		}
	}
	if parts := r.cursor.Judge(nil, got.number, Run{0, 1}); len(parts) != 1 || parts[0].Verdict != Done {
		t.Errorf("what was acked before is judged %+v", parts)
	}
}
