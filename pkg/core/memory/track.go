package memory

import (
	"github.com/podmq/podmq/pkg/core/balance"
	"github.com/podmq/podmq/pkg/core/stream"
)

// A track is a group's place in one partition.
type track struct {
	group     *group
	partition int
	cursor    stream.Cursor
	holder    string // of an ordered group: who got the latest delivery
	due       alarm
	marked    bool // it is in topic.ready
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

// applyAll carries out changes that lie in scratch.changes.
func (t *topic) applyAll(tr *track, changes []stream.Change) {
	for i := range changes {
		t.apply(tr, changes[i])
	}
	t.scratch.changes = changes
}
