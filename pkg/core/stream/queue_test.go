package stream

import (
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

func TestQueuePanicsWhenAMessageIsGrantedTwice(t *testing.T) {
	for name, settle := range map[string]func(*driver, *delivery){
		"leased": func(*driver, *delivery) {},
		"acked":  func(d *driver, got *delivery) { d.ack(got, Run{1, 2}) },
	} {
		d := newDriver(4)
		r := d.addGroup(core.Queue, core.Latest)
		d.publish(message(t, 1), message(t, 1))
		settle(d, d.poll(r, 1, all(), time.Second))
		if !panics(func() { d.apply(r, Change{Kind: Granted, Delivery: 9, From: 1, To: 2}) }) {
			t.Errorf("a message that is %s was granted again", name)
		}
	}
}
