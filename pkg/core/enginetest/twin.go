package enginetest

import (
	"slices"
	"strings"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

// A twin is one topic, thought through slowly: plain slices, everything counted
// anew each time it is asked. It decides nothing that the contract leaves open,
// such as which partition is served first: there it takes the engine's answer
// and holds it against what is allowed.
type twin struct {
	settings core.TopicSettings
	budget   int64
	now      time.Time
	parts    []*twinPart
	groups   []*twinGroup // by name
}

// A twinPart is everything that was ever appended to a partition.
type twinPart struct {
	start int64
	log   []core.Message // index is the offset
}

func (p *twinPart) end() int64 { return int64(len(p.log)) }

func (p *twinPart) cost() (n int64) {
	for _, m := range p.log[p.start:] {
		n += m.Cost()
	}
	return n
}

type twinGroup struct {
	name       string
	settings   core.GroupSettings
	generation int64
	changes    int           // of the members, since the last look at the assignment
	shuffled   time.Time     // when several came or went at once
	members    []*twinMember // in the order of joining
	assigned   []string      // index is the partition
	cursors    []*twinCursor // index is the partition

	acked, delivered uint64
	redelivered      core.Redelivered
	uncounted        bool // a batch was given back, so the counters are open
}

func (g *twinGroup) queue() bool { return g.settings.Type == core.Queue }

func (g *twinGroup) member(name string) *twinMember {
	for _, m := range g.members {
		if m.name == name {
			return m
		}
	}
	return nil
}

// A twinMember is there until its session ends, which runs from its last call.
// What may count as one, such as a call that was refused or the end of a lease,
// is another moment from which it may run.
type twinMember struct {
	name string
	seen []time.Time // the last call, and what may count as one since
}

func (m *twinMember) called(now time.Time) { m.seen = append(m.seen[:0], now) }

func (m *twinMember) mayHaveCalled(now time.Time) {
	if m.latest().Before(now) {
		m.seen = append(m.seen, now)
	}
}

func (m *twinMember) sure() time.Time { return m.seen[0] }

func (m *twinMember) latest() time.Time { return m.seen[len(m.seen)-1] }

// A twinCursor is one group in one partition.
type twinCursor struct {
	ordered bool
	from    int64         // where the group began
	msgs    []twinMessage // of offset from+i
	holder  string        // who got the latest delivery
	waitFor int64         // ordered: nothing is handed out while this offset waits for due
	due     time.Time
}

// A twinMessage is one message to one group.
type twinMessage struct {
	acked  bool
	failed int
	lease  *twinLease // nil while it is not out
	due    time.Time  // queue: not handed out before
	latest uint64     // the delivery that counts, 0 for none
	seen   bool       // it was handed out before
	ended  cause      // how that ended
}

type cause int

const (
	byNack cause = iota + 1
	byLease
	byLeave
)

// A twinLease is of a batch's part in one partition of an ordered group, or of
// one message of a queue group.
type twinLease struct {
	delivery       uint64
	member         string
	granted, until time.Time
}

func (c *twinCursor) at(offset int64) *twinMessage { return &c.msgs[offset-c.from] }

func (c *twinCursor) end() int64 { return c.from + int64(len(c.msgs)) }

func (c *twinCursor) committed() int64 {
	for i := range c.msgs {
		if !c.msgs[i].acked {
			return c.from + int64(i)
		}
	}
	return c.end()
}

func (c *twinCursor) lag() (n int64) {
	for i := range c.msgs {
		if !c.msgs[i].acked {
			n++
		}
	}
	return n
}

func (c *twinCursor) inFlight() (n int64) {
	for i := range c.msgs {
		if c.msgs[i].lease != nil {
			n++
		}
	}
	return n
}

// lease is what is out of an ordered group's partition.
func (c *twinCursor) lease() *twinLease {
	if at := c.committed(); at < c.end() {
		return c.at(at).lease
	}
	return nil
}

// available lists what could be handed out now: of an ordered group a run from
// committed on, up to the first that must be alone.
func (c *twinCursor) available(now time.Time) (offsets []int64) {
	if c.ordered {
		first := c.committed()
		if c.lease() != nil || c.waitFor >= first && now.Before(c.due) {
			return nil
		}
		for o := first; o < c.end() && (o == first || !c.alone(o) && !c.alone(first)); o++ {
			offsets = append(offsets, o)
		}
		return offsets
	}
	for i := range c.msgs {
		if m := &c.msgs[i]; !m.acked && m.lease == nil && !now.Before(m.due) {
			offsets = append(offsets, c.from+int64(i))
		}
	}
	return offsets
}

// alone tells whether the message is handed out by itself: from its third
// attempt on.
func (c *twinCursor) alone(offset int64) bool { return c.at(offset).failed >= 2 }

// backoffAfter is how long a message waits after its n-th failure.
func backoffAfter(n int) time.Duration {
	if n < 2 {
		return 0
	}
	d := 100 * time.Millisecond
	for ; n > 2 && d < 30*time.Second; n-- {
		d *= 2
	}
	return min(d, 30*time.Second)
}

// holds tells who may be served from a partition: who has a batch of it, else
// who is assigned it.
func (g *twinGroup) holds(partition int) string {
	if l := g.cursors[partition].lease(); l != nil {
		return l.member
	}
	return g.assigned[partition]
}

// offered tells whether a poll could be served from a partition.
func (g *twinGroup) offered(member string, only, partition int) bool {
	return (only == core.AnyPartition || only == partition) && (g.queue() || g.holds(partition) == member)
}

// leased tells whether a member has anything out.
func (g *twinGroup) leased(member string) bool {
	for _, c := range g.cursors {
		for i := range c.msgs {
			if l := c.msgs[i].lease; l != nil && l.member == member {
				return true
			}
		}
	}
	return false
}

// expire ends the leases that are over, each message of which has failed, and
// waits for nothing more.
func (w *twin) expire() (ended int) {
	for _, g := range w.groups {
		for _, c := range g.cursors {
			for i := range c.msgs {
				m := &c.msgs[i]
				if m.lease == nil || m.lease.until.After(w.now) {
					continue
				}
				if of := g.member(m.lease.member); of != nil {
					of.mayHaveCalled(w.now)
				}
				m.lease, m.ended, m.due = nil, byLease, time.Time{}
				m.failed++
				c.due = time.Time{}
				ended++
			}
		}
	}
	w.tidy()
	return ended
}

// tidy does what follows from any change: receipts of a partition that went to
// another member are void, and what every group is done with is gone.
func (w *twin) tidy() {
	for _, g := range w.groups {
		for p, c := range g.cursors {
			if g.queue() || c.lease() != nil || g.assigned[p] == "" || g.assigned[p] == c.holder {
				continue
			}
			for i := range c.msgs {
				c.msgs[i].latest = 0
			}
			c.holder = g.assigned[p]
		}
	}
	for p, part := range w.parts {
		part.start = part.end()
		for _, g := range w.groups {
			part.start = min(part.start, g.cursors[p].committed())
		}
	}
}

func (w *twin) held() (n int64) {
	for _, p := range w.parts {
		n += p.cost()
	}
	return n
}

func (w *twin) group(name string) *twinGroup {
	for _, g := range w.groups {
		if g.name == name {
			return g
		}
	}
	return nil
}

func (w *twin) append(partition int, m core.Message) {
	w.parts[partition].log = append(w.parts[partition].log, m)
	for _, g := range w.groups {
		g.cursors[partition].msgs = append(g.cursors[partition].msgs, twinMessage{})
	}
}

func (w *twin) addGroup(name string, settings core.GroupSettings, earliest bool) {
	g := &twinGroup{name: name, settings: settings, assigned: make([]string, len(w.parts))}
	for _, p := range w.parts {
		c := &twinCursor{ordered: settings.Type == core.Ordered, from: p.end(), waitFor: -1}
		if earliest {
			c.from = p.start
			c.msgs = make([]twinMessage, p.end()-p.start)
		}
		g.cursors = append(g.cursors, c)
	}
	w.groups = append(w.groups, g)
	slices.SortFunc(w.groups, func(a, b *twinGroup) int { return strings.Compare(a.name, b.name) })
}

func (w *twin) removeGroup(g *twinGroup) {
	w.groups = slices.DeleteFunc(w.groups, func(other *twinGroup) bool { return other == g })
	w.tidy()
}

func (g *twinGroup) join(name string, now time.Time) {
	if m := g.member(name); m != nil {
		m.called(now)
		return
	}
	g.members = append(g.members, &twinMember{name, []time.Time{now}})
	g.changes++
}

// remove ends a membership: what the member had comes back, uncounted.
func (g *twinGroup) remove(name string) {
	g.members = slices.DeleteFunc(g.members, func(m *twinMember) bool { return m.name == name })
	g.changes++
	for _, c := range g.cursors {
		for i := range c.msgs {
			if m := &c.msgs[i]; m.lease != nil && m.lease.member == name {
				m.lease, m.ended, m.due = nil, byLeave, time.Time{}
				c.due = time.Time{}
			}
		}
	}
}
