package memory

import (
	"context"
	"time"

	"github.com/podmq/podmq/pkg/core"
	"github.com/podmq/podmq/pkg/core/balance"
)

// A poller is a parked poll.
type poller struct {
	req    *core.PollRequest
	batch  *core.Batch
	ctx    context.Context
	group  *group
	member *member

	turn  place[*poller] // in member.waiting, or in group.waiting of a queue group
	done  chan error     // one result
	timer *time.Timer
}

func newPoller() *poller {
	w := &poller{done: make(chan error, 1), timer: newStoppedTimer()}
	w.turn.who = w
	return w
}

// Poll implements core.Engine.
func (b *Broker) Poll(ctx context.Context, topic, group string, req *core.PollRequest, batch *core.Batch) error {
	batch.Reset()
	if err := checkPoll(req); err != nil {
		return err
	}
	g, err := b.enterGroup(topic, group)
	if err != nil {
		return err
	}
	w, err := g.poll(ctx, req, batch)
	if w == nil || err != nil {
		return err
	}
	defer func() {
		w.req, w.batch, w.ctx, w.group, w.member = nil, nil, nil, nil, nil
		b.pollers.Put(w)
	}()
	w.timer.Reset(req.Wait)
	defer w.timer.Stop()
	select {
	case err := <-w.done:
		return err
	case <-w.timer.C:
		return g.topic.giveUpPoll(w, nil)
	case <-ctx.Done():
		return g.topic.giveUpPoll(w, ctx.Err())
	}
}

func checkPoll(req *core.PollRequest) error {
	switch {
	case req.Max < 1 || req.Max > core.MaxPollMessages:
		return core.Invalid("max", "cannot poll %d messages: max is 1 to %d", req.Max, core.MaxPollMessages)
	case req.MaxBytes < 1 || req.MaxBytes > core.MaxPollBytes:
		return core.Invalid("max-bytes", "cannot poll %d bytes: max-bytes is 1 to %d", req.MaxBytes, core.MaxPollBytes)
	case req.Wait < 0 || req.Wait > core.MaxWait:
		return core.Invalid("wait", "cannot wait %v for messages: wait is 0 to %v", req.Wait, core.MaxWait)
	}
	return core.CheckMember(req.Member)
}

// poll settles, takes what there is, or parks and returns the parked poll. It
// leaves the topic.
func (g *group) poll(ctx context.Context, req *core.PollRequest, batch *core.Batch) (*poller, error) {
	t := g.topic
	defer t.leave()
	if req.Partition != core.AnyPartition && !g.has(req.Partition) {
		return nil, unknownPartition(t.name, req.Partition, len(t.partitions))
	}
	batch.Queue = g.queue()
	if len(req.Acks) > 0 {
		settled, err := g.ack(&core.AckRequest{Receipts: req.Acks, Buffer: t.scratch.places})
		if err != nil {
			return nil, err
		}
		t.scratch.places = settled.Cursors
		batch.Stale = settled.Stale
	}
	m, _, err := g.join(req.Member)
	if err != nil {
		return nil, err
	}
	batch.Generation = g.share.Generation()
	if lost := m.lost(req.Partition); lost != nil {
		return nil, lost
	}
	t.handOff() // polls parked earlier come first
	if g.replay(m, req, batch) || g.take(m, req, batch) {
		return nil, nil
	}
	if t.draining.Load() {
		return nil, draining()
	}
	if req.Wait == 0 {
		batch.Blocked = m.blocked(batch.Blocked, req.Partition)
		return nil, nil
	}
	return g.park(ctx, m, req, batch), nil
}

// lost is the error of a poll for a partition that the member is not assigned.
func (m *member) lost(partition int) error {
	g := m.group
	if partition == core.AnyPartition || g.queue() || g.share.Assigned(partition) == m.id {
		return nil
	}
	e := core.Errorf(core.CodeNotOwner, "cannot poll partition %d of group %s as member %s: it is assigned to another member; poll without a partition, or one of your own", partition, g.name, m.name).
		With("group", g.name).With("member", m.name).With("partition", partition)
	if owner := g.byID[g.share.Assigned(partition)]; owner != nil {
		e.With("owner", owner.name)
	}
	return e
}

func (g *group) park(ctx context.Context, m *member, req *core.PollRequest, batch *core.Batch) *poller {
	w := g.topic.pollers.Get().(*poller)
	w.req, w.batch, w.ctx, w.group, w.member = req, batch, ctx, g, m
	if g.queue() {
		g.waiting.push(&w.turn)
	} else {
		m.waiting.push(&w.turn)
	}
	m.parked++
	g.parked++
	g.topic.parked++
	return w
}

// unpark takes w out of its line; its member's session runs from here.
func (g *group) unpark(w *poller) {
	w.turn.leave()
	w.member.parked--
	g.parked--
	g.topic.parked--
	w.member.lastSeen = g.topic.now
	w.member.armSession()
}

// finishPoll ends a parked poll, with what is in its batch or with err.
func (g *group) finishPoll(w *poller, err error) {
	g.unpark(w)
	w.batch.Generation = g.share.Generation()
	w.done <- err
}

// endPolls ends every parked poll with err.
func (g *group) endPolls(err error) {
	for _, m := range g.members {
		for m.parked > 0 {
			g.finishPoll(m.firstPoll(), err)
		}
	}
}

// endLostPolls ends the polls for one partition that now is another member's.
func (m *member) endLostPolls() {
	for at := m.waiting.first; at != nil; {
		w := at.who
		at = at.next
		if err := m.lost(w.req.Partition); err != nil {
			m.group.finishPoll(w, err)
		}
	}
}

// giveUpPoll ends the wait of w from its own side: because it was long enough,
// or because the caller is gone.
func (t *topic) giveUpPoll(w *poller, gone error) error {
	if t.enter() != nil {
		return <-w.done
	}
	defer t.leave()
	g := w.group
	if w.turn.in != nil {
		w.batch.Blocked = w.member.blocked(w.batch.Blocked, w.req.Partition)
		w.batch.Generation = g.share.Generation()
		g.unpark(w)
		return gone
	}
	err := <-w.done
	if err == nil && gone != nil {
		g.unsent(&w.batch.Receipt)
		return gone
	}
	return err
}

// dispatch hands what a track has to the polls that may have it, in the order
// in which they were parked.
func (t *topic) dispatch(tr *track) {
	g := tr.group
	for {
		w := g.nextPoll(tr.partition)
		if w == nil || !tr.cursor.Available(t.partitions[tr.partition].Log().End(), t.now) {
			return
		}
		if w.ctx.Err() != nil {
			g.finishPoll(w, w.ctx.Err())
			continue
		}
		if !g.take(w.member, w.req, w.batch) {
			return
		}
		g.finishPoll(w, nil)
	}
}

// nextPoll is the parked poll whose turn it is at a partition, nil for none. One
// that waits for another partition only, and can be served from that now, goes
// first: a later one for any would take from there too.
func (g *group) nextPoll(partition int) *poller {
	waiting := &g.waiting
	if !g.queue() {
		owner := g.byID[g.share.Owner(partition)]
		if owner == nil || !g.share.Holds(owner.id, partition) {
			return nil
		}
		waiting = &owner.waiting
	}
	for at := waiting.first; at != nil; at = at.next {
		if only := at.who.req.Partition; only == core.AnyPartition || only == partition || g.servable(at.who, only) {
			return at.who
		}
	}
	return nil
}

// servable reports whether a partition has something for a parked poll.
func (g *group) servable(w *poller, partition int) bool {
	return (g.queue() || g.share.Holds(w.member.id, partition)) &&
		g.tracks[partition].cursor.Available(g.topic.partitions[partition].Log().End(), g.topic.now)
}

// blocked appends what the member's poll passed over because a batch is out.
func (m *member) blocked(dst []core.Blocked, only int) []core.Blocked {
	g := m.group
	for _, p := range m.partitions {
		if only != core.AnyPartition && only != p {
			continue
		}
		if id, until := g.tracks[p].cursor.Lease(); id != 0 {
			dst = append(dst, core.Blocked{Partition: p, Member: g.memberName(balance.MemberID(id)), Lease: until.Sub(g.topic.now)})
		}
	}
	return dst
}
