package memory

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/podmq/podmq/pkg/core"
	"github.com/podmq/podmq/pkg/core/balance"
)

func (t *topic) stats() core.TopicStats {
	s := core.TopicStats{
		Name:           t.name,
		Settings:       t.settings,
		Partitions:     make([]core.PartitionStats, len(t.partitions)),
		Groups:         make([]core.GroupStats, 0, len(t.inOrder)),
		Published:      t.count.published,
		PublishedBytes: t.count.publishedBytes,
		WithoutGroup:   t.count.withoutGroup,
		Publishing:     t.publishing.n,
		PublishWait:    t.count.publishWait,
	}
	for i, p := range t.partitions {
		log := p.Log()
		s.Partitions[i] = core.PartitionStats{Start: log.Start(), End: log.End(), Backlog: p.Backlog(), Bytes: log.Bytes()}
	}
	for _, code := range slices.Sorted(maps.Keys(t.count.rejected)) {
		s.Rejected = append(s.Rejected, core.Rejection{Reason: code, Count: t.count.rejected[code]})
	}
	for _, g := range t.inOrder {
		s.Groups = append(s.Groups, g.stats())
	}
	slices.SortFunc(s.Groups, func(a, b core.GroupStats) int { return cmp.Compare(a.Name, b.Name) })
	return s
}

func (g *group) stats() core.GroupStats {
	t := g.topic
	s := core.GroupStats{
		Name:            g.name,
		Settings:        g.settings,
		Generation:      g.share.Generation(),
		Members:         make([]core.MemberStats, 0, len(g.members)),
		Cursors:         make([]core.CursorStats, len(g.tracks)),
		Delivered:       g.count.delivered,
		Acked:           g.count.acked,
		Redelivered:     g.count.redelivered,
		PollsWaiting:    g.parked,
		DeliveryLatency: g.count.latency,
	}
	for _, id := range g.share.Members() {
		m := g.byID[id]
		s.Members = append(s.Members, core.MemberStats{Member: m.name, Partitions: slices.Clone(m.partitions)})
	}
	for i := range g.tracks {
		c, log := g.tracks[i].cursor, t.partitions[i].Log()
		at := &s.Cursors[i]
		*at = core.CursorStats{Committed: c.Committed(), Next: c.Next(), Lag: c.Unacked(log.End())}
		if !g.queue() {
			at.Owner = g.memberName(g.share.Owner(i))
		}
		if id, until := c.Lease(); id != 0 {
			at.Lease, at.LeaseMember = until.Sub(t.now), g.memberName(balance.MemberID(id))
		}
		s.InFlight += c.InFlight()
		if c.Committed() < log.End() {
			s.OldestUnacked = max(s.OldestUnacked, t.now.Sub(log.At(c.Committed()).At))
		}
	}
	return s
}

func (g *group) memberName(id balance.MemberID) string {
	if m := g.byID[id]; m != nil {
		return m.name
	}
	return ""
}

// Group implements core.Engine.
func (b *Broker) Group(_ context.Context, topic, name string) (core.GroupStats, error) {
	g, err := b.enterGroup(topic, name)
	if err != nil {
		return core.GroupStats{}, err
	}
	defer g.topic.leave()
	return g.stats(), nil
}
