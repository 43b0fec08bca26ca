package stream

import (
	"time"

	"github.com/podmq/podmq/pkg/core"
)

// A twin is a cursor kept the obvious way: one record for each offset since the
// group began, and every question answered by looking at all of them.
type twin struct {
	ordered bool
	first   int64
	fates   []fate // of [first, end)

	// Of an ordered group: nothing is handed out before pause, as pausedBy
	// failed.
	pause    Instant
	pausedBy int64
}

// A fate is what became of one message.
type fate struct {
	stage    stage
	delivery uint64 // the latest that handed it out
	member   uint64
	granted  Instant
	until    Instant // out: the lease's end; back: the back-off's
	failures int
	ended    Cause // how its deliveries ended so far
}

type stage int

const (
	fresh stage = iota
	out
	back
	done
)

func (w *twin) end() int64            { return w.first + int64(len(w.fates)) }
func (w *twin) at(offset int64) *fate { return &w.fates[offset-w.first] }

// each calls yield with the fates of [from, to).
func (w *twin) each(from, to int64, yield func(int64, *fate)) {
	for offset := max(from, w.first); offset < min(to, w.end()); offset++ {
		yield(offset, w.at(offset))
	}
}

func (w *twin) count(s stage) (n int64) {
	w.each(w.first, w.end(), func(_ int64, f *fate) {
		if f.stage == s {
			n++
		}
	})
	return n
}

// committed is the first that is not done.
func (w *twin) committed() int64 {
	offset := w.first
	for offset < w.end() && w.at(offset).stage == done {
		offset++
	}
	return offset
}

// next is one past the last that is out, or that was out once in a queue group.
func (w *twin) next() int64 {
	next := w.committed()
	w.each(next, w.end(), func(offset int64, f *fate) {
		if f.stage == out || !w.ordered && f.stage != fresh {
			next = offset + 1
		}
	})
	return next
}

// neverHanded is the first of those that were never handed out. An ordered group
// forgets a delivery that was given back unsent.
func (w *twin) neverHanded() int64 {
	first := w.next()
	w.each(first, w.end(), func(offset int64, f *fate) {
		if f.stage == back && f.ended != None {
			first = offset + 1
		}
	})
	return first
}

func (w *twin) inFlight() int64 { return w.count(out) }
func (w *twin) unacked() int64  { return int64(len(w.fates)) - w.count(done) }

// available are the runs from which something can be handed out.
func (w *twin) available(now Instant) (all runs) {
	if w.ordered {
		if w.inFlight() == 0 && now >= w.pause && w.committed() < w.end() {
			all = runs{{w.committed(), w.end()}}
		}
		return all
	}
	var last Run
	w.each(w.first, w.end(), func(offset int64, f *fate) {
		if f.stage == back && f.until <= now {
			all.add(Run{offset, offset + 1})
		}
		if f.stage == fresh && last == (Run{}) {
			last = Run{offset, w.end()}
		}
	})
	if last != (Run{}) {
		all = append(all, last) // apart from what was handed out before
	}
	return all
}

// verdict is what a delivery's run is worth at one of its offsets. An ordered
// group judges the run as a whole.
func (w *twin) verdict(number uint64, run Run, offset int64) Verdict {
	if w.ordered && run.To <= w.committed() {
		return Done
	}
	look := Run{offset, offset + 1}
	if w.ordered {
		look = run
	}
	v := Late
	w.each(look.From, look.To, func(_ int64, f *fate) {
		switch {
		case v == Stale:
		case !w.ordered && f.stage == done:
			v = Done
		case f.delivery != number:
			v = Stale
		case f.stage == out:
			v = Current
		}
	})
	return v
}

func (w *twin) grant(number, member uint64, run Run, now, until Instant) {
	w.each(run.From, run.To, func(_ int64, f *fate) {
		f.stage, f.delivery, f.member, f.granted, f.until = out, number, member, now, until
	})
}

// ack settles what a run that counts covers; in an ordered group also what lies
// below it.
func (w *twin) ack(run Run) {
	if w.ordered {
		run.From = w.first
	}
	w.each(run.From, run.To, func(_ int64, f *fate) { f.stage = done })
	if w.pausedBy < w.committed() {
		w.pause = 0
	}
}

// returned ends the delivery of those that are out and match: they can be handed
// out again at until.
func (w *twin) returned(match func(int64, *fate) bool, cause Cause, until func(int64, *fate) Instant, failed func(int64, *fate) bool) {
	ended := false
	w.each(w.first, w.end(), func(offset int64, f *fate) {
		if f.stage != out || !match(offset, f) {
			return
		}
		ended = true
		f.until = until(offset, f)
		f.stage = back
		if failed(offset, f) {
			f.failures++
		}
		if cause != Unsent {
			f.ended = cause
		}
	})
	if w.ordered && ended && cause != Unsent {
		// An ordered group remembers one reason for all that it handed out.
		w.each(w.committed(), w.end(), func(_ int64, f *fate) {
			if f.ended != None {
				f.ended = cause
			}
		})
	}
}

func (w *twin) nack(number uint64, runs []Run, failed int64, delay core.Opt[time.Duration], now Instant) {
	covered := func(offset int64, f *fate) bool {
		for _, run := range runs {
			if run.From <= offset && offset < run.To && w.verdict(number, run, offset) == Current {
				return true
			}
		}
		return false
	}
	if failed < 0 {
		w.each(w.first, w.end(), func(offset int64, f *fate) {
			if failed < 0 && f.stage == out && covered(offset, f) {
				failed = offset
			}
		})
	}
	if failed < 0 {
		return
	}
	wait := now.Add(delay.Or(backoffTable(w.at(failed).failures + 1)))
	if w.ordered {
		w.pause, w.pausedBy = wait, failed
	}
	w.returned(covered, Nacked,
		func(offset int64, f *fate) Instant {
			if w.ordered || offset == failed {
				return wait
			}
			return now.Add(delay.Or(0))
		},
		func(offset int64, f *fate) bool { return offset == failed })
}

// backoffTable is the contract's: at once, then 100 ms doubling to 30 s.
func backoffTable(failures int) time.Duration {
	if failures == 1 {
		return 0
	}
	d := 100 * time.Millisecond
	for range failures - 2 {
		d = min(2*d, 30*time.Second)
	}
	return d
}

func never(int64, *fate) bool { return false }

func (w *twin) unsent(number uint64, now Instant) {
	w.returned(func(_ int64, f *fate) bool { return f.delivery == number }, Unsent, func(int64, *fate) Instant { return now }, never)
}

func (w *twin) left(member uint64, now Instant) {
	w.returned(func(_ int64, f *fate) bool { return f.member == member }, Left, func(int64, *fate) Instant { return now }, never)
}

func (w *twin) expire(now Instant) {
	over := func(_ int64, f *fate) bool { return f.until <= now }
	w.returned(over, Expired, func(int64, *fate) Instant { return now }, func(int64, *fate) bool { return true })
}

func (w *twin) extend(number uint64, until Instant) {
	w.each(w.first, w.end(), func(_ int64, f *fate) {
		if f.stage == out && f.delivery == number {
			f.until = until
		}
	})
}

func (w *twin) fence() {
	w.each(w.committed(), w.end(), func(_ int64, f *fate) { f.delivery = 0 })
}

// due is when time changes something next.
func (w *twin) due(now Instant) Instant {
	due := Never
	w.each(w.first, w.end(), func(_ int64, f *fate) {
		if f.stage == out || !w.ordered && f.stage == back && f.until > now {
			due = min(due, f.until)
		}
	})
	if w.ordered && due == Never && w.pause > now {
		due = w.pause
	}
	return due
}
