package stream

import (
	"slices"
	"testing"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

// G23: what no longer holds must not pile up behind a reminder that does.
func TestQueueRemindersAreInProportionToWhatTheyRemindOf(t *testing.T) {
	d := newDriver(2000)
	r := d.addGroup(core.Queue, core.Latest)
	c, m, one := r.cursor.(*queue), message(t, 1), Want{Messages: 1, Bytes: 1, Runs: 1}
	d.publish(m, m)
	d.poll(r, 1, one, time.Second)
	d.nack(d.poll(r, 1, one, time.Second), -1, core.Some(time.Second))
	for i := range 1000 {
		d.publish(m)
		got := d.poll(r, 2, one, time.Minute)
		d.extend(got, time.Hour)
		if i%2 == 0 {
			d.nack(got, -1, core.Some(time.Hour))
		}
		d.ack(got, got.runs...)
		if due := r.cursor.Due(d.now); due != Instant(time.Second) {
			t.Fatalf("due at %d, want that of the first two messages", due)
		}
		if len(c.leases) > 70 || len(c.delayed) > 70 {
			t.Fatalf("%d reminders of leases, %d of back-offs, and %d messages are not acked", len(c.leases), len(c.delayed), c.Unacked(d.part.Log().End()))
		}
		d.now++
	}
	if err := check(d.part); err != nil {
		t.Fatal(err)
	}
}

// G8
func TestQueuePanicsWhenWhatIsNotThereIsGranted(t *testing.T) {
	for name, run := range map[string]Run{"below committed": {0, 1}, "leased": {1, 2}, "acked": {2, 3}, "beyond next": {5, 6}} {
		d := newDriver(9)
		r := d.addGroup(core.Queue, core.Latest)
		d.publish(slices.Repeat([]core.Message{message(t, 1)}, 6)...)
		got := d.poll(r, 1, Want{Messages: 4, Bytes: 9, Runs: 1}, time.Second)
		d.ack(got, Run{0, 1}, Run{2, 3})
		if !panics(func() { d.apply(r, Change{Kind: Granted, Delivery: 9, From: run.From, To: run.To}) }) {
			t.Errorf("%v was granted, which is %s", run, name)
		}
	}
}

// What an ack says beyond that is passed over, whatever it is.
func TestQueueAppliesAnAckOnlyToWhatItHas(t *testing.T) {
	d := newDriver(9)
	r := d.addGroup(core.Queue, core.Latest)
	d.publish(slices.Repeat([]core.Message{message(t, 1)}, 6)...)
	got := d.poll(r, 1, Want{Messages: 4, Bytes: 9, Runs: 1}, time.Second)
	d.nack(got, 1, core.Opt[time.Duration]{})
	for _, run := range []Run{{5, 6}, {4, 2}, {3, 1}, {7, 9}, {0, 1}, {0, 1}} {
		d.apply(r, Change{Kind: Acked, From: run.From, To: run.To})
		if err := check(d.part); err != nil {
			t.Fatalf("after an ack of %v: %v", run, err)
		}
	}
	if c := r.cursor; c.Committed() != 1 || c.Next() != 4 {
		t.Errorf("committed %d and next %d, want 1 and 4", c.Committed(), c.Next())
	}
}
