package memory

import (
	"time"

	"github.com/podmq/podmq/pkg/core"
)

func (t *topic) park(w *publisher, why refusal) {
	t.arrivals++
	w.arrival = t.arrivals
	w.since = time.Duration(t.now)
	t.publishing.push(&w.everyone)
	if w.only != core.AnyPartition {
		t.partitions[w.only].waiting.push(&w.turn)
	} else {
		t.floating.push(&w.turn)
	}
	t.block(w, why)
}

// block notes why w waits; waiting for shared memory is known to all topics.
func (t *topic) block(w *publisher, why refusal) {
	was := w.blocked.code
	w.blocked = why
	t.countWaiting(why.code, 1) // first, so that one who waits on is never out of sight
	t.countWaiting(was, -1)
	if why.code == core.CodeMemoryFull && was != core.CodeMemoryFull {
		// Memory that another topic gave back before it could see us wait.
		t.retryBytes = true
	}
}

func (t *topic) countWaiting(code core.Code, n int64) {
	switch code {
	case core.CodeMemoryFull:
		t.budget.waiting.Add(n)
		t.waitingForMemory.Add(n)
	case core.CodeTopicFull:
		t.waitingForMemory.Add(n)
	}
}

// unpark takes w out of every line, and counts how long it waited.
func (t *topic) unpark(w *publisher) {
	w.arrival = 0
	w.everyone.leave()
	w.turn.leave()
	t.block(w, refusal{})
	t.count.publishWait.Observe(time.Duration(t.now) - w.since)
}

// finishPublish ends the wait of w.
func (t *topic) finishPublish(w *publisher, err error) {
	t.unpark(w)
	if core.CodeOf(err) == core.CodeDraining {
		t.count.rejected[core.CodeDraining]++
	}
	w.done <- err
}

// giveUpPublish ends the wait of w from its own side: because it was long
// enough, or because the caller is gone.
func (t *topic) giveUpPublish(w *publisher, gone error) error {
	if t.enter() != nil {
		return <-w.done
	}
	if w.everyone.in == nil {
		t.leave()
		return <-w.done
	}
	why, only := w.blocked, w.only
	t.unpark(w)
	err := gone
	if gone == nil {
		err = t.refuse(w, why)
	}
	// Those behind may fit where this one did not.
	if only != core.AnyPartition {
		t.markRoomy(t.partitions[only])
	}
	t.leave()
	if core.CodeOf(err) == core.CodeMemoryFull {
		return t.nameHolder(err)
	}
	return err
}

// admitWaiting stores what waits for room in p, in the order of arrival: those
// who want p alone, and those for whom p is one of several. What wants p alone
// and does not fit stops those behind it.
func (t *topic) admitWaiting(p *partition) {
	full := false // a message without a key found no partition, and so will no other
	next := t.floating.first
	for {
		head := p.waiting.first
		for next != nil && (head == nil || next.who.arrival < head.who.arrival) {
			w := next.who
			next = next.next
			if full && w.unkeyed() {
				continue
			}
			full = !t.retry(w) && w.unkeyed() && w.blocked.code == core.CodePartitionFull || full
		}
		if head == nil || !t.retry(head.who) {
			return
		}
	}
}

// unkeyed reports whether w is one message that any partition can take.
func (w *publisher) unkeyed() bool { return len(w.placed) == 1 && w.only == core.AnyPartition }

// retry reports whether w no longer waits.
func (t *topic) retry(w *publisher) bool {
	if err := w.ctx.Err(); err != nil {
		t.finishPublish(w, err)
		return true
	}
	why := t.tryPublish(w)
	if why.code != "" {
		t.block(w, why)
		return false
	}
	t.finishPublish(w, nil)
	return true
}

// before reports whether somebody waits for p whom w would overtake.
func (p *partition) before(w *publisher) bool {
	if p.waiting.n == 0 {
		return false
	}
	first := p.waiting.first.who
	return first != w && (w.arrival == 0 || first.arrival < w.arrival)
}
