package memory

import (
	"log/slog"
	"slices"
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
	t.upkeep.give(groupCost(len(t.partitions)))
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

// leaseTime is how long a new lease lasts.
func (g *group) leaseTime() time.Duration {
	return min(g.topic.settings.AckTimeout, g.settings.MaxLease)
}
