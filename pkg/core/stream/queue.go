package stream

import (
	"fmt"
	"math"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

// queue is the cursor of a queue group: each message has a lease and an ack of
// its own.
//
// Invariants: window holds the messages [committed, next), the first of which
// is not acked; out and acked count those of them that are leased and acked;
// ready and delayed hold, between them, all that is waiting.
type queue struct {
	committed, next int64
	window          ring[handed]
	out, acked      int64

	ready   runs     // waiting, and can be handed out
	delayed schedule // waiting for the end of a back-off
	leases  schedule // leased, by the end of the lease
}

// handed is one message that was handed out at least once.
type handed struct {
	delivery uint64 // the latest
	member   uint64 // who got it
	granted  Instant
	until    Instant // leased: the lease's end; waiting: the back-off's
	failures uint16
	state    state
	cause    Cause // why it came back last
}

type state uint8

const (
	leased state = iota + 1
	waiting
	acked
)

func newQueue(at int64) *queue { return &queue{committed: at, next: at} }

func (c *queue) Committed() int64         { return c.committed }
func (c *queue) Next() int64              { return c.next }
func (c *queue) Fresh() int64             { return c.next }
func (c *queue) Unacked(end int64) int64  { return end - c.committed - c.acked }
func (c *queue) InFlight() int64          { return c.out }
func (c *queue) Lease() (uint64, Instant) { return 0, 0 }

func (c *queue) at(offset int64) *handed { return c.window.at(int(offset - c.committed)) }

func (c *queue) failures(offset int64) int {
	if offset < c.committed || offset >= c.next {
		return 0
	}
	return int(c.at(offset).failures)
}

func (c *queue) History(offset int64) (failures int, seen bool, ended Cause) {
	if offset < c.committed || offset >= c.next {
		return 0, false, None
	}
	m := c.at(offset)
	return int(m.failures), m.cause != None, m.cause
}

func (c *queue) Available(end int64, now Instant) bool {
	c.wake(now)
	return len(c.ready) > 0 || c.next < end
}

// wake moves what has waited long enough from delayed to ready. It changes no
// message: one that waits until a moment that is past can be handed out.
func (c *queue) wake(now Instant) {
	for c.delayed.next() <= now {
		t := c.delayed[0]
		c.delayed.removeFirst()
		c.spans(t.Run, t.holds, c.ready.add)
	}
}

// remind schedules what will happen to a run, one of so many messages that a
// reminder in s can be about. When far more are in it, most of them no longer
// hold, because leases were extended or messages acked: these go.
func (c *queue) remind(s *schedule, t timed, messages int64) {
	if len(*s) >= 64+2*int(messages) {
		s.keep(c.holds)
	}
	s.add(t)
}

// nextIn drops reminders that no longer hold from the front of s, so that nobody
// is woken for them.
func (c *queue) nextIn(s *schedule) Instant {
	for len(*s) > 0 && !c.holds((*s)[0]) {
		s.removeFirst()
	}
	return s.next()
}

// holds reports whether a reminder still holds for one of its messages.
func (c *queue) holds(t timed) bool {
	for offset := max(t.From, c.committed); offset < min(t.To, c.next); offset++ {
		if t.holds(c.at(offset)) {
			return true
		}
	}
	return false
}

// spans calls yield for each longest run of messages within run for which match
// holds.
func (c *queue) spans(run Run, match func(*handed) bool, yield func(Run)) {
	run = Run{max(run.From, c.committed), min(run.To, c.next)}
	for from := run.From; from < run.To; {
		to := from
		for to < run.To && match(c.at(to)) {
			to++
		}
		if to > from {
			yield(Run{from, to})
		}
		from = to + 1
	}
}

func (c *queue) Offer(dst []Run, log *Log, want *Want, now Instant) []Run {
	c.wake(now)
	for _, run := range c.ready {
		if want.Full() {
			return dst
		}
		dst = want.offer(dst, log, run, c.failures)
	}
	return want.offer(dst, log, Run{c.next, log.End()}, c.failures)
}

func (c *queue) Judge(dst []Part, delivery uint64, run Run) []Part {
	if from := min(run.To, c.committed); run.From < from {
		dst = append(dst, Part{Run: Run{run.From, from}, Verdict: Done})
	}
	mine := len(dst)
	for offset := max(run.From, c.committed); offset < min(run.To, c.next); offset++ {
		m, part := c.at(offset), Part{Run: Run{offset, offset + 1}, Verdict: Stale}
		switch {
		case m.state == acked:
			part.Verdict = Done
		case m.delivery == delivery && m.state == leased:
			part = Part{part.Run, Current, m.member, m.granted, m.until}
		case m.delivery == delivery:
			part.Verdict = Late
		}
		// A delivery has one member and one beginning; its leases can end apart.
		if last := len(dst) - 1; last >= mine && dst[last].Verdict == part.Verdict && dst[last].Until == part.Until {
			dst[last].To++
			continue
		}
		dst = append(dst, part)
	}
	if from := max(run.From, c.next); from < run.To {
		dst = append(dst, Part{Run: Run{from, run.To}, Verdict: Stale})
	}
	return dst
}

func (c *queue) Nack(dst []Change, part Part, failed int64, delay core.Opt[time.Duration], now Instant) []Change {
	back := func(run Run, failed bool, wait time.Duration) {
		if run.Len() <= 0 {
			return
		}
		ch := Change{Kind: Returned, Cause: Nacked, Member: part.Member, From: run.From, To: run.To, At: now, Until: now.Add(delay.Or(wait))}
		if failed {
			ch.FailedFrom, ch.FailedTo = run.From, run.To
		}
		dst = append(dst, ch)
	}
	if failed < part.From || failed >= part.To {
		back(part.Run, false, 0)
		return dst
	}
	back(Run{part.From, failed}, false, 0)
	back(Run{failed, failed + 1}, true, Backoff(c.failures(failed)+1))
	back(Run{failed + 1, part.To}, false, 0)
	return dst
}

func (c *queue) Unsent(dst []Change, part Part, now Instant) []Change {
	return append(dst, Change{Kind: Returned, Cause: Unsent, Member: part.Member, From: part.From, To: part.To, At: now, Until: now})
}

// Expired may name a run twice, when its lease was extended and cut back to the
// same end; the second Change finds nothing to do.
func (c *queue) Expired(dst []Change, now Instant) []Change {
	if c.leases.next() > now {
		return dst
	}
	c.leases.due(now, func(t timed) {
		c.spans(t.Run, t.holds, func(run Run) {
			dst = append(dst, Change{Kind: Returned, Cause: Expired, Member: c.at(run.From).member, From: run.From, To: run.To,
				FailedFrom: run.From, FailedTo: run.To, At: now, Until: now})
		})
	})
	return dst
}

func (c *queue) Left(dst []Change, member uint64, now Instant) []Change {
	c.spans(Run{c.committed, c.next}, func(m *handed) bool { return m.state == leased && m.member == member }, func(run Run) {
		dst = append(dst, Change{Kind: Returned, Cause: Left, Member: member, From: run.From, To: run.To, At: now, Until: now})
	})
	return dst
}

func (c *queue) Due(now Instant) Instant {
	c.wake(now)
	return min(c.nextIn(&c.leases), c.nextIn(&c.delayed))
}

func (c *queue) apply(ch Change) (ended int) {
	before := c.out
	switch ch.Kind {
	case Granted:
		c.grant(ch)
		return 0
	case Acked:
		c.ack(Run{max(ch.From, c.committed), min(ch.To, c.next)})
	case Returned:
		c.giveBack(ch)
	case Extended:
		c.extend(ch)
	}
	return int(before - c.out)
}

func (c *queue) grant(ch Change) {
	run := Run{ch.From, ch.To}
	if run.From < c.committed || run.From > c.next {
		panic(fmt.Sprintf("stream: granted [%d, %d), committed is %d and next %d", run.From, run.To, c.committed, c.next))
	}
	for offset := run.From; offset < run.To; offset++ {
		if offset == c.next {
			c.window.push(handed{})
			c.next++
		}
		m := c.at(offset)
		if m.state == leased || m.state == acked {
			panic(fmt.Sprintf("stream: granted %d of [%d, %d), which is leased or acked", offset, run.From, run.To))
		}
		m.state, m.delivery, m.member = leased, ch.Delivery, ch.Member
		m.granted, m.until = ch.At, ch.Until
	}
	c.ready.remove(run)
	c.out += run.Len()
	c.remind(&c.leases, timed{ch.Until, ch.Delivery, run}, c.out)
}

func (c *queue) extend(ch Change) {
	other := func(m *handed) bool { return m.state == leased && m.delivery == ch.Delivery && m.until != ch.Until }
	c.spans(Run{ch.From, ch.To}, other, func(run Run) {
		for offset := run.From; offset < run.To; offset++ {
			c.at(offset).until = ch.Until
		}
		c.remind(&c.leases, timed{ch.Until, ch.Delivery, run}, c.out)
	})
}

func (c *queue) ack(run Run) {
	if run.Len() <= 0 {
		return
	}
	for offset := run.From; offset < run.To; offset++ {
		m := c.at(offset)
		if m.state == leased {
			c.out--
		}
		if m.state != acked {
			m.state = acked
			c.acked++
		}
	}
	c.ready.remove(run)
	done := 0
	for done < c.window.len() && c.window.at(done).state == acked {
		done++
	}
	c.window.drop(done)
	c.committed += int64(done)
	c.acked -= int64(done)
}

func (c *queue) giveBack(ch Change) {
	c.spans(Run{ch.From, ch.To}, func(m *handed) bool { return m.state == leased }, func(run Run) {
		for offset := run.From; offset < run.To; offset++ {
			m := c.at(offset)
			m.state, m.until = waiting, ch.Until
			if ch.Cause != Unsent {
				m.cause = ch.Cause
			}
			if offset >= ch.FailedFrom && offset < ch.FailedTo && m.failures < math.MaxUint16 {
				m.failures++
			}
		}
		c.out -= run.Len()
		if ch.Until > ch.At {
			c.remind(&c.delayed, timed{ch.Until, 0, run}, int64(c.window.len())-c.out-c.acked)
		} else {
			c.ready.add(run)
		}
	})
}
