package enginetest

import (
	"slices"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

// compare holds everything that the engine shows against the twin, and that
// against G12 and G22.
func (t *trial) compare() {
	st := t.engine.Stats()
	if err := sound(st); err != nil {
		t.fail("%v", err)
	}
	leases := 0
	for _, g := range t.groups {
		for _, c := range g.cursors {
			switch {
			case g.queue():
				leases += int(c.inFlight())
			case c.lease() != nil:
				leases++
			}
		}
	}
	if st.LeasesOut != leases || st.MemoryBytes != t.held() {
		t.fail("%d leases are out and %d bytes held, want %d and %d", st.LeasesOut, st.MemoryBytes, leases, t.held())
	}
	if len(st.Topics) != 1 {
		t.fail("there are %d topics, want 1", len(st.Topics))
	}
	ts := st.Topics[0]
	if ts.Published != t.published || ts.WithoutGroup != t.unheard {
		t.fail("%d published, %d of them without a group; want %d and %d", ts.Published, ts.WithoutGroup, t.published, t.unheard)
	}
	for i, p := range t.parts {
		want := core.PartitionStats{Start: p.start, End: p.end(), Backlog: p.end() - p.start, Bytes: p.cost()}
		if ts.Partitions[i] != want {
			t.fail("partition %d is %+v, want %+v", i, ts.Partitions[i], want)
		}
	}
	if len(ts.Groups) != len(t.groups) {
		t.fail("there are %d groups, want %d", len(ts.Groups), len(t.groups))
	}
	for i, g := range t.groups {
		t.compareGroup(ts.Groups[i], g)
	}
	t.nobodyWaitsBesideAMessage()
}

func (t *trial) compareGroup(got core.GroupStats, g *twinGroup) {
	if got.Name != g.name || got.Settings != g.settings {
		t.fail("group %s is %+v, want %s, %+v", got.Name, got.Settings, g.name, g.settings)
	}
	var inFlight int64
	for p, c := range g.cursors {
		inFlight += c.inFlight()
		t.compareCursor(got.Cursors[p], g, p, c)
	}
	parked := 0
	for _, p := range t.parked {
		if p.group == g {
			parked++
		}
	}
	if got.InFlight != inFlight || got.PollsWaiting != parked || got.Acked != g.acked {
		t.fail("%s: %d in flight, %d polls wait, %d acked; want %d, %d, %d", g.name, got.InFlight, got.PollsWaiting, got.Acked, inFlight, parked, g.acked)
	}
	again, want := got.Redelivered, g.redelivered
	if !g.queue() { // by how the partition's delivery before ended, be it another message's
		again, want = core.Redelivered{Nack: again.Nack + again.Lease + again.Leave}, core.Redelivered{Nack: want.Nack + want.Lease + want.Leave}
	}
	if !g.uncounted && (got.Delivered != g.delivered || again != want) {
		t.fail("%s: delivered %d, again %+v; want %d, %+v", g.name, got.Delivered, got.Redelivered, g.delivered, g.redelivered)
	}
	names := slices.EqualFunc(got.Members, g.members, func(a core.MemberStats, b *twinMember) bool { return a.Member == b.name })
	if !names {
		t.fail("%s has the members %q in that order, want others", g.name, assigned(got))
	}
}

func (t *trial) compareCursor(got core.CursorStats, g *twinGroup, p int, c *twinCursor) {
	committed := c.committed()
	if got.Committed != committed || got.Lag != c.lag() {
		t.fail("%s in partition %d: committed %d, lag %d; want %d, %d", g.name, p, got.Committed, got.Lag, committed, c.lag())
	}
	if g.queue() {
		return // next and leases are of single messages
	}
	var left time.Duration
	var member string
	if l := c.lease(); l != nil {
		left, member = l.until.Sub(t.now), l.member
	}
	want := core.CursorStats{Committed: committed, Next: committed + c.inFlight(), Lag: c.lag(), Owner: g.holds(p), Lease: left, LeaseMember: member}
	if got != want {
		t.fail("%s in partition %d is %+v, want %+v", g.name, p, got, want)
	}
}

// nobodyWaitsBesideAMessage is G15.
func (t *trial) nobodyWaitsBesideAMessage() {
	for _, p := range t.parked {
		for i, c := range p.group.cursors {
			if p.group.offered(p.req.Member, p.req.Partition, i) && len(c.available(t.now)) > 0 {
				t.fail("a poll of %s by %s is parked though partition %d has %v for it", p.group.name, p.req.Member, i, c.available(t.now))
			}
		}
		if !t.now.Before(p.deadline) {
			t.fail("a poll of %s by %s is parked beyond its wait", p.group.name, p.req.Member)
		}
	}
}
