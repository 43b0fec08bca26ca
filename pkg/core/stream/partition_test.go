package stream

import (
	"slices"
	"testing"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

func TestPartitionPanicsRatherThanHoldMoreThanItsCapacity(t *testing.T) {
	d := newDriver(3)
	d.addGroup(core.Ordered, core.Latest)
	m := message(t, 1)
	d.publish(m, m)
	if !panics(func() { d.publish(m, m) }) || d.part.Room() != 1 {
		t.Errorf("2 messages were appended where 1 had room; now for %d", d.part.Room())
	}
}

func TestPartitionPanicsForAGroupThatItDoesNotHave(t *testing.T) {
	d := newDriver(3)
	d.addGroup(core.Ordered, core.Latest)
	if !panics(func() { d.part.Replay(Change{Kind: Fenced, Group: 7}) }) {
		t.Error("a change of group 7 was applied")
	}
	if !panics(func() { d.part.RemoveGroup(7) }) {
		t.Error("group 7 was removed")
	}
}

// G23: a group that was deleted must not stay in memory with all that it had.
func TestPartitionForgetsARemovedGroup(t *testing.T) {
	d := newDriver(3)
	d.addGroup(core.Queue, core.Latest)
	d.addGroup(core.Queue, core.Latest)
	d.removeGroup(0)
	d.removeGroup(0)
	for i, c := range d.part.cursors[:cap(d.part.cursors)] {
		if c.Cursor != nil {
			t.Errorf("place %d still points to the cursor of group %d", i, c.group)
		}
	}
}

// A receipt can be forged, and then says anything. Nothing it says may take
// longer than what the partition holds, or count for what it does not.
func TestForgedReceiptsAreJudgedAtOnce(t *testing.T) {
	const most = 1<<63 - 1
	for _, typ := range []core.GroupType{core.Ordered, core.Queue} {
		d := newDriver(100)
		r := d.addGroup(typ, core.Latest)
		d.publish(slices.Repeat([]core.Message{message(t, 1)}, 20)...)
		first := d.poll(r, 1, Want{Messages: 10, Bytes: 100, Runs: 1}, time.Second)
		d.ack(first, Run{0, 3})
		for _, run := range []Run{{0, most}, {0, 1 << 62}, {3, most}, {5, 11}, {10, 12}, {15, most}, {most - 1, most}, {1 << 40, 1 << 41}} {
			for delivery := range uint64(3) {
				for _, part := range r.cursor.Judge(nil, delivery, run) {
					counts := part.Verdict == Current || part.Verdict == Late
					if part.From < run.From || part.To > run.To || part.Len() <= 0 || counts && (delivery != first.number || part.To > 10) {
						t.Errorf("%s group, delivery %d, %v: part %+v", typ, delivery, run, part)
					}
				}
			}
		}
	}
}

// What comes from nowhere covers nothing, whoever asks.
func TestEmptyRunsAreWorthNothing(t *testing.T) {
	for _, typ := range []core.GroupType{core.Ordered, core.Queue} {
		d := newDriver(100)
		r := d.addGroup(typ, core.Latest)
		d.publish(slices.Repeat([]core.Message{message(t, 1)}, 20)...)
		got := d.poll(r, 1, Want{Messages: 10, Bytes: 100, Runs: 1}, time.Second)
		d.ack(got, Run{0, 3})
		for _, run := range []Run{{5, 5}, {5, 4}, {5, -1}, {0, 0}, {-1, -1}, {0, -5}, {1 << 62, 0}, {30, 20}} {
			if parts := r.cursor.Judge(nil, got.number, run); len(parts) != 0 {
				t.Errorf("%s group, %v: %+v", typ, run, parts)
			}
		}
	}
}
