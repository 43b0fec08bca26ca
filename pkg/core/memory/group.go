package memory

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/podmq/podmq/pkg/core"
	"github.com/podmq/podmq/pkg/core/balance"
	"github.com/podmq/podmq/pkg/core/stream"
)

// A group is a consumer group of a topic, whose lock guards it.
//
// Invariants: parked is the sum of its members' parked; a queue group shares no
// partitions.
type group struct {
	name        string
	incarnation uint64
	settings    core.GroupSettings
	topic       *topic

	tracks  []track        // index is the partition
	share   *balance.Group // who owns which partition; of a queue group only who is a member
	members map[string]*member
	byID    map[balance.MemberID]*member
	lastID  balance.MemberID
	waiting line[*poller] // of a queue group: its parked polls
	served  int           // of a queue group: the partition served last
	parked  int           // polls

	emptySince stream.Instant // when the last member left
	expiry     alarm
	count      groupCounts
}

// A track is a group's place in one partition.
type track struct {
	group     *group
	partition int
	cursor    stream.Cursor
	holder    string // of an ordered group: who got the latest delivery
	due       alarm
	marked    bool // it is in topic.ready
}

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

// groupCounts are a group's counters.
type groupCounts struct {
	delivered, acked uint64
	redelivered      core.Redelivered
	latency          core.Histogram
}

func newGroup(t *topic, name string, settings core.GroupSettings, start core.Start) *group {
	shares := len(t.partitions)
	if settings.Type == core.Queue {
		shares = 0
	}
	g := &group{
		name:        name,
		incarnation: t.incarnations.Add(1),
		settings:    settings,
		topic:       t,
		tracks:      make([]track, len(t.partitions)),
		share:       balance.New(shares, settings.Strategy),
		members:     map[string]*member{},
		byID:        map[balance.MemberID]*member{},
		served:      len(t.partitions) - 1,
		emptySince:  t.now,
	}
	for i, p := range t.partitions {
		tr := &g.tracks[i]
		*tr = track{group: g, partition: i, cursor: p.AddGroup(g.incarnation, settings.Type, start)}
		tr.due.target = tr
	}
	g.expiry.target = g
	g.armExpiry()
	return g
}

func (g *group) queue() bool { return g.settings.Type == core.Queue }

// remove deletes the group: its backlog is released, and its polls end.
func (g *group) remove() {
	t := g.topic
	g.endPolls(unknownGroup(t.name, g.name))
	for i := range g.tracks {
		t.alarms.remove(&g.tracks[i].due)
		t.release(t.partitions[i], t.partitions[i].RemoveGroup(g.incarnation))
	}
	for _, m := range g.members {
		t.alarms.remove(&m.session)
		t.leases -= m.out
	}
	t.alarms.remove(&g.expiry)
	delete(t.groups, g.name)
	t.inOrder = slices.DeleteFunc(t.inOrder, func(other *group) bool { return other == g })
	if len(t.groups) == 0 {
		t.retryBytes = true // nothing is kept for nobody: want of memory stops no publisher any more
	}
}

// ring deletes the group when it had no members for long enough.
func (g *group) ring() {
	if len(g.members) > 0 {
		return
	}
	if g.topic.now < g.emptySince.Add(g.settings.Expires) {
		g.armExpiry()
		return
	}
	g.topic.notes = append(g.topic.notes, note{slog.LevelInfo, "group expired", g.name})
	g.remove()
}

func (g *group) armExpiry() {
	if g.settings.Expires > 0 {
		g.topic.alarms.set(&g.expiry, g.emptySince.Add(g.settings.Expires))
	}
}

// ring ends the leases of the track that are over, and lets polls look at what
// has waited long enough.
func (tr *track) ring() {
	t := tr.group.topic
	t.applyAll(tr, tr.cursor.Expired(t.scratch.changes[:0], t.now))
	t.markReady(tr)
	t.alarms.set(&tr.due, tr.cursor.Due(t.now))
}

// apply carries out a change and all that follows from it: leases that ended,
// memory that is free, a partition that can now change hands, polls that may
// find something.
func (t *topic) apply(tr *track, ch stream.Change) {
	g, p := tr.group, t.partitions[tr.partition]
	ch.Group = g.incarnation
	ended, freed := p.Apply(tr.cursor, ch)
	t.release(p, freed)
	if ended > 0 {
		t.leases -= ended
		if m := g.byID[balance.MemberID(ch.Member)]; m != nil {
			m.out -= ended
			m.armSession()
		}
		if !g.queue() && g.share.Release(tr.partition) {
			tr.handOver()
		}
	}
	if ch.Kind != stream.Granted {
		t.markReady(tr)
	}
	if ch.Kind != stream.Acked {
		t.alarms.set(&tr.due, tr.cursor.Due(t.now))
	}
}

// handOver makes the receipts of the old owner stale, now that the partition is
// another's. While it is nobody's, and when the same member comes back, the
// latest receipt stays as good as before.
func (tr *track) handOver() {
	g, t := tr.group, tr.group.topic
	if owner := g.byID[g.share.Owner(tr.partition)]; owner != nil && owner.name != tr.holder {
		t.apply(tr, stream.Change{Kind: stream.Fenced, At: t.now})
	}
	t.markReady(tr)
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

// busy reports whether a batch of the partition is out.
func (g *group) busy(partition int) bool { return g.tracks[partition].cursor.InFlight() > 0 }

// rebalance takes note of a new assignment, and of the partitions that changed
// hands with it at once.
func (g *group) rebalance(moved []int) {
	t := g.topic
	t.scratch.moved = moved
	for _, m := range g.members {
		m.partitions = m.partitions[:0]
	}
	if !g.queue() {
		for p := range g.tracks {
			if m := g.byID[g.share.Assigned(p)]; m != nil {
				m.partitions = append(m.partitions, p)
			}
		}
	}
	for _, p := range moved {
		g.tracks[p].handOver()
	}
	for _, m := range g.members {
		m.endLostPolls()
	}
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

// applyAll carries out changes that lie in scratch.changes.
func (t *topic) applyAll(tr *track, changes []stream.Change) {
	for i := range changes {
		t.apply(tr, changes[i])
	}
	t.scratch.changes = changes
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

// leaseTime is how long a new lease lasts.
func (g *group) leaseTime() time.Duration {
	return min(g.topic.settings.AckTimeout, g.settings.MaxLease)
}
