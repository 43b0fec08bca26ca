package stream

import (
	"fmt"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

// ordered is the cursor of an ordered group: one batch at most is out, and it
// starts at committed.
//
// Invariants: committed <= next; out if and only if committed < next; while it
// is, next = deliveryTo; next <= handed.
type ordered struct {
	committed, next int64
	handed          int64 // one past the highest offset ever handed out
	handedBefore    int64 // the same before the latest delivery

	delivery   uint64 // the latest, 0 when there was none or it was fenced
	deliveryTo int64  // where it ended
	member     uint64 // who got it
	out        bool
	granted    Instant
	until      Instant
	notBefore  Instant // back-off: nothing is handed out before
	waitsFor   int64   // the message whose back-off that is
	cause      Cause   // why the latest delivery came back
	failures   failures
}

func newOrdered(at int64) *ordered { return &ordered{committed: at, next: at, handed: at} }

func (c *ordered) Committed() int64        { return c.committed }
func (c *ordered) Next() int64             { return c.next }
func (c *ordered) Unacked(end int64) int64 { return end - c.committed }
func (c *ordered) Fresh() int64            { return c.handed }
func (c *ordered) InFlight() int64         { return c.next - c.committed }

func (c *ordered) History(offset int64) (failures int, seen bool, ended Cause) {
	if offset >= c.handed {
		return 0, false, None
	}
	return c.failures.of(offset), true, c.cause
}

func (c *ordered) Lease() (member uint64, until Instant) {
	if !c.out {
		return 0, 0
	}
	return c.member, c.until
}

func (c *ordered) Available(end int64, now Instant) bool {
	return !c.out && c.next < end && now >= c.notBefore
}

func (c *ordered) Offer(dst []Run, log *Log, want *Want, now Instant) []Run {
	if !c.Available(log.End(), now) || want.Full() {
		return dst
	}
	return want.offer(dst, log, Run{c.next, log.End()}, c.failures.of)
}

func (c *ordered) Judge(dst []Part, delivery uint64, run Run) []Part {
	if run.Len() <= 0 {
		return dst
	}
	if run.To <= c.committed {
		return append(dst, Part{Run: run, Verdict: Done})
	}
	if delivery != c.delivery || delivery == 0 || run.To > c.deliveryTo {
		return append(dst, Part{Run: run, Verdict: Stale})
	}
	run.From = max(run.From, c.committed)
	if c.out {
		return append(dst, Part{run, Current, c.member, c.granted, c.until})
	}
	return append(dst, Part{Run: run, Verdict: Late})
}

func (c *ordered) Nack(dst []Change, part Part, failed int64, delay core.Opt[time.Duration], now Instant) []Change {
	wait := delay.Or(Backoff(c.failures.of(failed) + 1))
	return append(dst, Change{Kind: Returned, Cause: Nacked, Member: c.member, From: c.committed, To: c.next,
		FailedFrom: failed, FailedTo: failed + 1, At: now, Until: now.Add(wait)})
}

func (c *ordered) Unsent(dst []Change, _ Part, now Instant) []Change {
	return append(dst, Change{Kind: Returned, Cause: Unsent, Member: c.member, From: c.committed, To: c.next, At: now, Until: now})
}

// Expired counts an attempt for all that was out: nobody knows which of them
// the member died of. None of them waits, as the lease was a wait already.
func (c *ordered) Expired(dst []Change, now Instant) []Change {
	if !c.out || now < c.until {
		return dst
	}
	return append(dst, Change{Kind: Returned, Cause: Expired, Member: c.member, From: c.committed, To: c.next,
		FailedFrom: c.committed, FailedTo: c.next, At: now, Until: now})
}

func (c *ordered) Left(dst []Change, member uint64, now Instant) []Change {
	if !c.out || c.member != member {
		return dst
	}
	return append(dst, Change{Kind: Returned, Cause: Left, Member: member, From: c.committed, To: c.next, At: now, Until: now})
}

func (c *ordered) Due(now Instant) Instant {
	switch {
	case c.out:
		return c.until
	case c.notBefore > now:
		return c.notBefore
	}
	return Never
}

func (c *ordered) apply(ch Change) (ended int) {
	wasOut := c.out
	switch ch.Kind {
	case Granted:
		if c.out || ch.From != c.next || ch.From != c.committed || ch.To <= ch.From {
			panic(fmt.Sprintf("stream: granted [%d, %d) while [%d, %d) is out", ch.From, ch.To, c.committed, c.next))
		}
		c.next, c.out = ch.To, true
		c.delivery, c.deliveryTo, c.member = ch.Delivery, ch.To, ch.Member
		c.granted, c.until = ch.At, ch.Until
		c.handedBefore, c.handed = c.handed, max(c.handed, ch.To)
	case Acked:
		c.committed = max(c.committed, ch.To)
		c.next = max(c.next, c.committed)
		c.handed = max(c.handed, c.committed) // an answer that seemed unsent had arrived
		c.out = c.out && c.committed < c.next
		c.failures.forget(c.committed)
		if c.committed > c.waitsFor {
			c.notBefore = 0 // it was acked late: nothing is left to wait for
		}
	case Returned:
		for offset := ch.FailedFrom; offset < ch.FailedTo; offset++ {
			c.failures.add(offset, c.committed)
		}
		c.next, c.out = c.committed, false
		c.notBefore, c.waitsFor = ch.Until, ch.FailedFrom
		if ch.Cause == Unsent {
			c.handed = max(c.handedBefore, c.committed)
		} else {
			c.cause = ch.Cause
		}
	case Extended:
		c.until = ch.Until
	case Fenced:
		c.delivery = 0
	}
	if wasOut && !c.out {
		return 1
	}
	return 0
}
