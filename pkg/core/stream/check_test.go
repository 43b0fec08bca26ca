package stream

import (
	"fmt"
	"slices"
	"strings"
)

// check holds a partition against the invariants that its structs name.
func check(p *Partition) error {
	l := &p.log
	if err := l.check(); err != nil {
		return err
	}
	if l.end-l.start > int64(p.capacity) {
		return fmt.Errorf("[%d, %d) is held, more than the capacity %d", l.start, l.end, p.capacity)
	}
	start, slowest := l.end, 0
	for _, c := range p.cursors {
		start = min(start, c.Committed())
	}
	for _, c := range p.cursors {
		if c.Committed() == start {
			slowest++
		}
		if c.Committed() > c.Next() || c.Next() > l.end {
			return fmt.Errorf("group %d: committed %d, next %d, end %d", c.group, c.Committed(), c.Next(), l.end)
		}
		if err := c.Cursor.(interface{ check() error }).check(); err != nil {
			return fmt.Errorf("group %d: %w", c.group, err)
		}
	}
	if start != l.start || slowest != p.slowest {
		return fmt.Errorf("start is %d with %d cursors there, want %d with %d", l.start, p.slowest, start, slowest)
	}
	return nil
}

func (l *Log) check() error {
	if l.start > l.end {
		return fmt.Errorf("the log is [%d, %d)", l.start, l.end)
	}
	chunks := 0
	if l.start < l.end {
		chunks = int((l.end-1)>>chunkBits-l.start>>chunkBits) + 1
	}
	if l.chunks.len() != chunks {
		return fmt.Errorf("[%d, %d) is in %d chunks, want %d", l.start, l.end, l.chunks.len(), chunks)
	}
	bytes, first := int64(0), l.start&^(chunkLen-1)
	for i := range int64(chunks * chunkLen) {
		e := (*l.chunks.at(int(i >> chunkBits)))[i&(chunkLen-1)]
		held := first+i >= l.start && first+i < l.end
		if held != !e.IsZero() {
			return fmt.Errorf("offset %d of [%d, %d) is there: %v", first+i, l.start, l.end, !e.IsZero())
		}
		if held {
			bytes += e.Cost()
		}
	}
	if bytes != l.bytes {
		return fmt.Errorf("the log holds %d bytes and says %d", bytes, l.bytes)
	}
	return nil
}

func (c *ordered) check() error {
	switch {
	case c.out != (c.committed < c.next):
		return fmt.Errorf("out is %v with [%d, %d) handed out", c.out, c.committed, c.next)
	case c.next > c.handed || c.handedBefore > c.handed:
		return fmt.Errorf("next %d, handed %d, before that %d", c.next, c.handed, c.handedBefore)
	case c.out && c.next != c.deliveryTo:
		return fmt.Errorf("[%d, %d) is out, the delivery ends at %d", c.committed, c.next, c.deliveryTo)
	case c.failures.counts.len() > 0 && c.failures.base != c.committed:
		return fmt.Errorf("failures are counted from %d on, committed is %d", c.failures.base, c.committed)
	}
	return c.failures.counts.check()
}

func (c *queue) check() error {
	if int64(c.window.len()) != c.next-c.committed {
		return fmt.Errorf("the window of [%d, %d) has %d", c.committed, c.next, c.window.len())
	}
	if c.window.len() > 0 && c.at(c.committed).state == acked {
		return fmt.Errorf("the first message, %d, is acked", c.committed)
	}
	var out, done int64
	var pending runs
	for offset := c.committed; offset < c.next; offset++ {
		m, covered := c.at(offset), false
		switch m.state {
		case leased:
			out++
			covered = c.leases.covers(timed{m.until, m.delivery, Run{offset, offset + 1}})
		case acked:
			done++
			covered = true
		case waiting:
			covered = c.delayed.covers(timed{m.until, 0, Run{offset, offset + 1}})
			if !covered {
				pending.add(Run{offset, offset + 1})
				covered = true
			}
		}
		if !covered {
			return fmt.Errorf("nothing will remind of %d: %+v", offset, *m)
		}
		if m.state != waiting && c.ready.has(offset) {
			return fmt.Errorf("%d is ready: %+v", offset, *m)
		}
	}
	if out != c.out || done != c.acked {
		return fmt.Errorf("out %d and acked %d, want %d and %d", c.out, c.acked, out, done)
	}
	for _, run := range pending {
		for offset := run.From; offset < run.To; offset++ {
			if !c.ready.has(offset) {
				return fmt.Errorf("%d is waiting, but neither ready nor delayed", offset)
			}
		}
	}
	for _, run := range c.ready {
		if run.From < c.committed || run.To > c.next {
			return fmt.Errorf("[%d, %d) is ready, outside [%d, %d)", run.From, run.To, c.committed, c.next)
		}
	}
	for _, err := range []error{c.ready.check(), c.leases.check(), c.delayed.check(), c.window.check()} {
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *ring[T]) check() error {
	if size := len(r.buf); size&(size-1) != 0 || r.n > size || size > ringKept && r.n <= size/8 {
		return fmt.Errorf("a ring of %d elements in a slice of %d", r.n, size)
	}
	return nil
}

func (s runs) has(offset int64) bool {
	return slices.ContainsFunc(s, func(r Run) bool { return r.From <= offset && offset < r.To })
}

func (s runs) check() error {
	for i, r := range s {
		if r.Len() <= 0 || i > 0 && r.From <= s[i-1].To {
			return fmt.Errorf("%v: run %d is empty, or touches the one before", s, i)
		}
	}
	return nil
}

// covers reports whether an entry of the schedule says the same as t for the
// offsets of t.
func (s schedule) covers(t timed) bool {
	return slices.ContainsFunc(s, func(e timed) bool {
		return e.at == t.at && e.delivery == t.delivery && e.From <= t.From && t.To <= e.To
	})
}

func (s schedule) check() error {
	for i := 1; i < len(s); i++ {
		if parent := (i - 1) / 2; s[parent].at > s[i].at {
			return fmt.Errorf("a heap with %d above %d", s[parent].at, s[i].at)
		}
	}
	return nil
}

// snapshot is all that decides how a partition goes on, as text. Reminders and what
// was moved from delayed to ready are left out: they follow from the rest.
func snapshot(p *Partition, now Instant) string {
	var b strings.Builder
	fmt.Fprintf(&b, "log [%d, %d) %d bytes, %d slowest\n", p.log.start, p.log.end, p.log.bytes, p.slowest)
	for offset := p.log.start; offset < p.log.end; offset++ {
		e := p.log.At(offset)
		fmt.Fprintf(&b, "  %d: %q at %d\n", offset, e.Block(), e.At)
	}
	for _, placed := range p.cursors {
		fmt.Fprintf(&b, "group %d, due %d, ", placed.group, placed.Due(now))
		switch c := placed.Cursor.(type) {
		case *ordered:
			plain := *c
			plain.failures = failures{}
			fmt.Fprintf(&b, "%+v, failures", plain)
			for offset := c.committed; offset < p.log.end; offset++ {
				fmt.Fprintf(&b, " %d", c.failures.of(offset))
			}
		case *queue:
			fmt.Fprintf(&b, "[%d, %d), out %d, acked %d, ready %v", c.committed, c.next, c.out, c.acked, c.ready)
			for offset := c.committed; offset < c.next; offset++ {
				fmt.Fprintf(&b, "\n  %d: %+v", offset, *c.at(offset))
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}
