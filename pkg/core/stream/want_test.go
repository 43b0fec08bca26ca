package stream

import (
	"slices"
	"testing"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

// G16: a poll goes round several partitions with one Want. When small messages
// could be taken past a large one, those of other partitions would keep it from
// ever being the first of a batch.
func TestWantEndsAtWhatDoesNotFit(t *testing.T) {
	small, large := newDriver(9), newDriver(9)
	a, b := small.addGroup(core.Ordered, core.Latest), large.addGroup(core.Queue, core.Latest)
	small.publish(message(t, 10))
	large.publish(message(t, 100), message(t, 10))

	w := Want{Messages: 10, Bytes: 100, Runs: 10}
	if got := a.cursor.Offer(nil, small.part.Log(), &w, 0); !slices.Equal(got, []Run{{0, 1}}) || w.Full() {
		t.Fatalf("offered %v, and %+v is left", got, w)
	}
	if got := b.cursor.Offer(nil, large.part.Log(), &w, 0); len(got) != 0 || !w.Full() {
		t.Errorf("offered %v after a message of 10 bytes, and %+v is left; want the batch to end", got, w)
	}
	w = Want{Messages: 10, Bytes: 100, Runs: 10}
	if got := b.cursor.Offer(nil, large.part.Log(), &w, 0); !slices.Equal(got, []Run{{0, 1}}) || !w.Full() {
		t.Errorf("offered %v to the next poll, and %+v is left; want the large one", got, w)
	}
}

// G18: neither do others overtake a message that must be handed out alone.
func TestWantEndsAtWhatMustStayAlone(t *testing.T) {
	d := newDriver(9)
	r := d.addGroup(core.Queue, core.Latest)
	d.publish(slices.Repeat([]core.Message{message(t, 1)}, 4)...)
	for range suspectAfter {
		d.nack(d.poll(r, 1, all(), time.Second), 1, core.Some(time.Duration(0)))
	}
	for _, want := range [][]Run{{{0, 1}}, {{1, 2}}, {{2, 4}}} {
		w := all()
		if got := r.cursor.Offer(nil, d.part.Log(), &w, d.now); !slices.Equal(got, want) {
			t.Errorf("offered %v, want %v", got, want)
		}
		d.poll(r, 1, all(), time.Second)
	}
}
