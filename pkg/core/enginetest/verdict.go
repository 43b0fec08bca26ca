package enginetest

import (
	"time"

	"github.com/podmq/podmq/pkg/core"
)

// A verdict is what a twin thinks of a receipt, message by message.
type verdict struct {
	stale   []place // other incarnation, or handed out again since
	done    []place // acked already
	current []place // the latest delivery, and out
	late    []place // the latest delivery, ended, and nobody got it since
}

type place struct {
	partition int
	offset    int64
}

// judge looks at the ranges of a receipt that belongs to the group, or to
// another if own is false. In an ordered group one message that counts no more
// makes its whole range stale.
func (g *twinGroup) judge(own bool, delivery uint64, ranges []core.Range) (v verdict) {
	for _, r := range ranges {
		if !own {
			v.stale = places(v.stale, r.Partition, r.From, r.To)
			continue
		}
		c := g.cursors[r.Partition]
		if c.ordered {
			g.judgeRange(&v, c, delivery, r)
			continue
		}
		for o := r.From; o < r.To; o++ {
			at := place{r.Partition, o}
			switch m := c.at(o); {
			case m.acked:
				v.done = append(v.done, at)
			case m.latest != delivery:
				v.stale = append(v.stale, at)
			case m.lease != nil:
				v.current = append(v.current, at)
			default:
				v.late = append(v.late, at)
			}
		}
	}
	return v
}

func (g *twinGroup) judgeRange(v *verdict, c *twinCursor, delivery uint64, r core.Range) {
	committed := c.committed()
	if r.To <= committed {
		v.done = places(v.done, r.Partition, r.From, r.To)
		return
	}
	first := max(r.From, committed)
	for o := first; o < r.To; o++ {
		if c.at(o).latest != delivery {
			v.stale = places(v.stale, r.Partition, r.From, r.To)
			return
		}
	}
	if c.lease() != nil {
		v.current = places(v.current, r.Partition, first, r.To)
	} else {
		v.late = places(v.late, r.Partition, first, r.To)
	}
}

func places(dst []place, partition int, from, to int64) []place {
	for o := from; o < to; o++ {
		dst = append(dst, place{partition, o})
	}
	return dst
}

// ack settles messages as done.
func (g *twinGroup) ack(all ...[]place) {
	for _, ps := range all {
		for _, at := range ps {
			if m := g.cursors[at.partition].at(at.offset); !m.acked {
				m.acked, m.lease = true, nil
				g.acked++
			}
		}
	}
}

// nack hands messages out again; failed are those whose failure it was.
func (g *twinGroup) nack(back, failed []place, delay core.Opt[time.Duration], now time.Time) {
	for _, at := range back {
		m := g.cursors[at.partition].at(at.offset)
		m.lease, m.ended, m.due = nil, byNack, time.Time{}
	}
	for _, at := range failed {
		c := g.cursors[at.partition]
		m := c.at(at.offset)
		m.failed++
		due := now.Add(delay.Or(backoffAfter(m.failed)))
		if c.ordered {
			c.waitFor, c.due = at.offset, due
		} else {
			m.due = due
		}
	}
}

// firsts are the first of each partition, whose failure a nack is that names no
// offset.
func firsts(ps []place) (first []place) {
	least := make(map[int]int64)
	for _, at := range ps {
		if o, ok := least[at.partition]; !ok || at.offset < o {
			least[at.partition] = at.offset
		}
	}
	for p, o := range least {
		first = append(first, place{p, o})
	}
	return first
}

// extend gives new leases, and tells for how many it could and could not.
func (g *twinGroup) extend(current []place, by time.Duration, now time.Time) (extended, atLimit int) {
	seen := make(map[*twinLease]bool)
	for _, at := range current {
		l := g.cursors[at.partition].at(at.offset).lease
		if seen[l] {
			continue
		}
		seen[l] = true
		most := l.granted.Add(g.settings.MaxLease)
		until := now.Add(by)
		if until.After(most) {
			until = most
		}
		if until.Equal(most) && l.until.Equal(most) {
			atLimit++
			continue
		}
		l.until = until
		extended++
	}
	return extended, atLimit
}

// giveBack undoes a delivery.
func (g *twinGroup) giveBack(current []place) {
	for _, at := range current {
		c := g.cursors[at.partition]
		c.at(at.offset).lease = nil
		c.at(at.offset).latest = 0
		c.due = time.Time{}
	}
	g.uncounted = g.uncounted || len(current) > 0
}

// leaseLeft is how long the least of what is current stays out.
func (g *twinGroup) leaseLeft(current []place, now time.Time) (left time.Duration) {
	for _, at := range current {
		if l := g.cursors[at.partition].at(at.offset).lease; l != nil {
			if d := l.until.Sub(now); left == 0 || d < left {
				left = d
			}
		}
	}
	return left
}
