package memory

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/podmq/podmq/pkg/core"
	"github.com/podmq/podmq/pkg/core/balance"
	"github.com/podmq/podmq/pkg/core/stream"
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

// take grants to the member what there is for it now, from the partition after
// the one served last on, and reports whether there was anything.
func (g *group) take(m *member, req *core.PollRequest, batch *core.Batch) bool {
	t := g.topic
	want := &t.scratch.want
	*want = stream.Want{Messages: req.Max, Bytes: req.MaxBytes, Runs: core.MaxReceiptRanges}
	n, served := len(m.partitions), &m.served
	if g.queue() {
		n, served = len(g.tracks), &g.served
	}
	first := 0
	for first < n && g.nth(m, first) <= *served {
		first++
	}
	drawn := 0
	for i := 0; i < n && drawn < core.MaxPollPartitions && !want.Full(); i++ {
		tr := &g.tracks[g.nth(m, (first+i)%n)]
		if req.Partition != core.AnyPartition && tr.partition != req.Partition || !g.queue() && !g.share.Holds(m.id, tr.partition) {
			continue
		}
		log := t.partitions[tr.partition].Log()
		runs := tr.cursor.Offer(t.scratch.runs[:0], log, want, t.now)
		t.scratch.runs = runs
		if len(runs) == 0 {
			continue
		}
		if batch.Receipt.Delivery == 0 {
			g.begin(m, batch)
		}
		for _, run := range runs {
			g.grant(m, tr, run, batch)
		}
		*served = tr.partition
		drawn++
	}
	if drawn == 0 {
		return false
	}
	m.remember(req.PollID, &batch.Receipt)
	return true
}

// nth is the n-th partition that a member may be served from.
func (g *group) nth(m *member, n int) int {
	if g.queue() {
		return n
	}
	return m.partitions[n]
}

// begin starts a delivery.
func (g *group) begin(m *member, batch *core.Batch) {
	t := g.topic
	batch.Lease = g.leaseTime()
	batch.Generation = g.share.Generation()
	batch.Receipt = core.Receipt{
		Epoch:      t.epoch,
		Topic:      t.incarnation,
		Group:      g.incarnation,
		Generation: batch.Generation,
		Member:     uint64(m.id),
		Delivery:   t.deliveries.Add(1),
		Ranges:     batch.Receipt.Ranges[:0],
	}
}

// grant hands a run of a partition out.
func (g *group) grant(m *member, tr *track, run stream.Run, batch *core.Batch) {
	t := g.topic
	g.fill(batch, tr, run)
	g.count.delivered += uint64(run.Len())
	batch.Receipt.Ranges = append(batch.Receipt.Ranges, core.Range{Partition: tr.partition, From: run.From, To: run.To})
	granted := 1
	if g.queue() {
		granted = int(run.Len())
	}
	m.out += granted
	tr.holder = m.name
	t.leases += granted
	t.apply(tr, stream.Change{Kind: stream.Granted, Delivery: batch.Receipt.Delivery, Member: uint64(m.id),
		From: run.From, To: run.To, At: t.now, Until: t.now.Add(batch.Lease)})
}

// fill appends a run to the batch and counts what it means to the group.
func (g *group) fill(batch *core.Batch, tr *track, run stream.Run) {
	log, now, fresh := g.topic.partitions[tr.partition].Log(), g.topic.now, tr.cursor.Fresh()
	var published stream.Instant
	together := 0 // messages not seen before that were published at that moment
	to := slices.Grow(batch.Deliveries, int(run.Len()))
	for offset := run.From; offset < run.To; {
		span := log.Span(offset, run.To)
		for i := range span {
			entry := &span[i]
			failures, seen, ended := 0, false, stream.None
			if offset < fresh {
				failures, seen, ended = tr.cursor.History(offset)
			}
			switch {
			case seen:
				g.count.redeliver(ended)
			case entry.At == published:
				together++
			default:
				g.count.latency.ObserveN(now.Sub(published), together)
				published, together = entry.At, 1
			}
			to = append(to, core.Delivery{Message: entry.Message, Partition: tr.partition, Offset: offset, Attempt: failures + 1})
			offset++
		}
	}
	batch.Deliveries = to
	g.count.latency.ObserveN(now.Sub(published), together)
}

func (c *groupCounts) redeliver(cause stream.Cause) {
	switch cause {
	case stream.Nacked:
		c.redelivered.Nack++
	case stream.Expired:
		c.redelivered.Lease++
	case stream.Left:
		c.redelivered.Leave++
	}
}

// A replay is a batch that was asked for with a poll id.
type replay struct {
	pollID  string
	receipt core.Receipt
	again   int // answers that hold it beside the first
}

// replaysKept is how many a member can have: one for each of the polls that a
// client with several connections under one name may have under way.
const replaysKept = 8

func (m *member) remember(pollID string, receipt *core.Receipt) {
	if pollID == "" {
		return
	}
	if len(m.replays) == replaysKept {
		m.replays = m.replays[:copy(m.replays, m.replays[1:])]
	}
	kept := *receipt
	kept.Ranges = append([]core.Range(nil), receipt.Ranges...)
	m.replays = append(m.replays, replay{pollID: strings.Clone(pollID), receipt: kept})
}

// replay fills batch with what the member got for the same poll id, as far as
// that is unsettled, and reports whether there was anything. A poll that is
// still parked under that id ends empty: its client has come again.
func (g *group) replay(m *member, req *core.PollRequest, batch *core.Batch) bool {
	if req.PollID == "" {
		return false
	}
	g.supersede(m, req.PollID)
	for i := range m.replays {
		if m.replays[i].pollID != req.PollID {
			continue
		}
		kept := m.replays[i].receipt
		if g.refill(&kept, batch) {
			m.replays[i].again++
			return true
		}
		m.replays = append(m.replays[:i], m.replays[i+1:]...)
		return false
	}
	return false
}

// answeredAgain reports whether a batch of which an answer was lost stands in
// another one: then it is with its member, and must not be handed out again.
func (m *member) answeredAgain(delivery uint64) bool {
	for i := range m.replays {
		if r := &m.replays[i]; r.receipt.Delivery == delivery && r.again > 0 {
			r.again--
			return true
		}
	}
	return false
}

func (g *group) supersede(m *member, pollID string) {
	waiting := &m.waiting
	if g.queue() {
		waiting = &g.waiting
	}
	for at := waiting.first; at != nil; {
		w := at.who
		at = at.next
		if w.member == m && w.req.PollID == pollID {
			g.finishPoll(w, nil)
		}
	}
}

// refill hands what is still out of a receipt out once more, as it was.
func (g *group) refill(receipt *core.Receipt, batch *core.Batch) bool {
	t := g.topic
	for _, r := range receipt.Ranges {
		tr := &g.tracks[r.Partition]
		parts := tr.cursor.Judge(t.scratch.parts[:0], receipt.Delivery, stream.Run{From: r.From, To: r.To})
		t.scratch.parts = parts
		for _, part := range parts {
			if part.Verdict != stream.Current {
				continue
			}
			if left := part.Until.Sub(t.now); batch.Lease == 0 || left < batch.Lease {
				batch.Lease = left
			}
			log := t.partitions[tr.partition].Log()
			for offset := part.From; offset < part.To; offset++ {
				failures, _, _ := tr.cursor.History(offset)
				batch.Deliveries = append(batch.Deliveries, core.Delivery{
					Message: log.At(offset).Message, Partition: tr.partition, Offset: offset, Attempt: failures + 1})
			}
		}
	}
	if len(batch.Deliveries) == 0 {
		return false
	}
	ranges := append(batch.Receipt.Ranges[:0], receipt.Ranges...)
	batch.Receipt = *receipt
	batch.Receipt.Ranges = ranges
	return true
}
