package memory

import (
	"context"
	"slices"
	"strings"

	"github.com/podmq/podmq/pkg/core"
	"github.com/podmq/podmq/pkg/core/balance"
	"github.com/podmq/podmq/pkg/core/stream"
)

// A member is one consumer of a group.
type member struct {
	group    *group
	name     string
	id       balance.MemberID
	lastSeen stream.Instant
	session  alarm
	out      int // leases: batches in an ordered group, messages in a queue group

	partitions []int         // assigned, ascending
	served     int           // the partition served last
	waiting    line[*poller] // of an ordered group: its parked polls
	parked     int           // polls
	replays    []replay      // batches that were asked for with a poll id
}

// join returns the member of that name, new or not, and notes that it was seen.
func (g *group) join(name string) (m *member, joined bool, err error) {
	t := g.topic
	if m := g.members[name]; m != nil {
		m.lastSeen = t.now
		return m, false, nil
	}
	if len(g.members) >= core.MaxMembers {
		return nil, false, core.Invalid("member", "cannot join group %s of topic %s: it has %d members, which is the most; let one leave, or wait for its session to end", g.name, t.name, len(g.members)).
			With("topic", t.name).With("group", g.name)
	}
	g.lastID++
	m = &member{group: g, name: strings.Clone(name), id: g.lastID, lastSeen: t.now, served: len(g.tracks) - 1}
	m.session.target = m
	g.members[m.name], g.byID[m.id] = m, m
	g.rebalance(g.share.Join(m.id, g.busy, t.scratch.moved[:0]))
	m.armSession()
	return m, true, nil
}

// leave ends a membership: what the member has unsettled comes back uncounted,
// its partitions move on, its polls end empty.
func (m *member) leave() {
	g, t := m.group, m.group.topic
	for m.parked > 0 {
		g.finishPoll(m.firstPoll(), nil)
	}
	if m.out > 0 {
		for i := range g.tracks {
			t.applyAll(&g.tracks[i], g.tracks[i].cursor.Left(t.scratch.changes[:0], uint64(m.id), t.now))
		}
	}
	t.alarms.remove(&m.session)
	delete(g.members, m.name)
	delete(g.byID, m.id)
	g.rebalance(g.share.Leave(m.id, g.busy, t.scratch.moved[:0]))
	if len(g.members) == 0 {
		g.emptySince = t.now
		g.armExpiry()
	}
}

// firstPoll is the member's poll that was parked first.
func (m *member) firstPoll() *poller {
	if !m.group.queue() {
		return m.waiting.first.who
	}
	for at := m.group.waiting.first; at != nil; at = at.next {
		if at.who.member == m {
			return at.who
		}
	}
	panic("memory: a member's parked poll is not in its group's line")
}

// ring ends the membership when nothing was seen of the member for long enough.
// A parked poll or a lease keeps it, and arms the session when it ends.
func (m *member) ring() {
	if m.parked > 0 || m.out > 0 {
		return
	}
	if m.group.topic.now < m.ends() {
		m.armSession()
		return
	}
	m.leave()
}

func (m *member) ends() stream.Instant { return m.lastSeen.Add(m.group.settings.SessionTimeout) }

// armSession sets the alarm for the end of the session, unless something keeps
// the member.
func (m *member) armSession() {
	if m.parked == 0 && m.out == 0 {
		m.group.topic.alarms.set(&m.session, max(m.ends(), m.group.topic.now))
	}
}

// Join implements core.Engine.
func (b *Broker) Join(_ context.Context, topic, group, name string) (core.Membership, bool, error) {
	if err := core.CheckMember(name); err != nil {
		return core.Membership{}, false, err
	}
	g, err := b.enterGroup(topic, group)
	if err != nil {
		return core.Membership{}, false, err
	}
	defer g.topic.leave()
	m, joined, err := g.join(name)
	if err != nil {
		return core.Membership{}, false, err
	}
	return core.Membership{Member: m.name, Generation: g.share.Generation(), Partitions: slices.Clone(m.partitions)}, joined, nil
}

// Leave implements core.Engine.
func (b *Broker) Leave(_ context.Context, topic, group, name string) error {
	if err := core.CheckMember(name); err != nil {
		return err
	}
	g, err := b.enterGroup(topic, group)
	if err != nil {
		return err
	}
	defer g.topic.leave()
	if m := g.members[name]; m != nil {
		m.leave()
	}
	return nil
}
