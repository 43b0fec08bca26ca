package enginetest

import (
	"slices"
	"testing/synctest"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

const mostParked = 3

// draw makes a poll of an operation, with an ack of with in it where there is one.
func (t *trial) draw(g *twinGroup, o op, member string) (p *parkedPoll, with known) {
	req := ask(member, 1+o.C%5)
	if o.C >= 18 {
		req.Partition = o.C % len(t.parts)
	}
	if o.C%4 == 0 {
		req.PollID = []string{"one", "two"}[o.C/4%2]
	}
	if o.Kind == opPollWait && len(t.parked) < mostParked {
		req.Wait = []time.Duration{50 * time.Millisecond, 500 * time.Millisecond, 5 * time.Second}[o.C%3]
	}
	if o.Kind == opPollAck && len(t.known) > 0 {
		with = t.known[len(t.known)-1-o.C%min(len(t.known), 4)]
		req.Acks = []core.Receipt{with.receipt}
	}
	return &parkedPoll{group: g, req: req, deadline: t.now.Add(req.Wait), done: make(chan struct{})}, with
}

// poll hands out, at once or later.
func (t *trial) poll(name string, g *twinGroup, o op, member string) {
	p, with := t.draw(g, o, member)
	go func() {
		defer close(p.done)
		p.err = t.engine.Poll(t.ctx, trialTopic, name, &p.req, &p.batch)
	}()
	synctest.Wait()
	if g == nil {
		<-p.done
		t.expect("Poll", p.err, true, core.CodeUnknownGroup)
		return
	}
	if len(p.req.Acks) > 0 && t.ackOfPoll(p, with) {
		return
	}
	g.join(member, t.now)
	t.syncJoin(g)
	if at := p.req.Partition; !g.queue() && at != core.AnyPartition && g.assigned[at] != member {
		<-p.done
		t.expect("Poll", p.err, true, core.CodeNotOwner)
		return
	}
	for _, q := range t.parked {
		q.repeated = q.repeated || q.group == g && q.req.Member == member && q.req.PollID != "" && q.req.PollID == p.req.PollID
	}
	t.collect() // polls parked earlier are served first
	select {
	case <-p.done:
		t.answered(p)
	default:
		t.saw["parked"]++
		t.parked = append(t.parked, p)
	}
}

func (t *trial) answered(p *parkedPoll) {
	if p.err != nil {
		t.fail("Poll: %v", p.err)
	}
	if p.req.Wait > 0 && len(p.batch.Deliveries) == 0 {
		t.fail("a poll that waits %v was answered empty at once", p.req.Wait)
	}
	if t.replayed(p) {
		return
	}
	t.handedOut(p)
	t.tookAll(p)
}

// syncJoin takes over the assignment that a poll's join led to, before what it
// brought is looked at.
func (t *trial) syncJoin(g *twinGroup) {
	gs, err := t.engine.Group(t.ctx, trialTopic, g.name)
	if err != nil {
		t.fail("Group: %v", err)
	}
	t.syncShares(g, gs)
	t.tidy()
}

// ackOfPoll applies the ack that came with a poll, and reports whether it ended
// the poll.
func (t *trial) ackOfPoll(p *parkedPoll, with known) bool {
	v := p.group.judge(with.group == p.group, with.receipt.Delivery, with.receipt.Ranges)
	refused := len(v.stale) > 0 && len(v.current)+len(v.late) == 0
	if refused {
		<-p.done
		t.expect("Poll", p.err, true, core.CodeStaleReceipt)
		p.group.heard(with, t.now, false)
		t.saw["poll with stale ack"]++
		return true
	}
	p.group.heard(with, t.now, true)
	p.group.ack(v.current, v.late)
	t.settled("ack", core.Settled{Stale: p.batch.Stale}, nil, v, true)
	t.tidy()
	return false
}

// replayed reports whether a poll repeated an id whose batch is still out, and
// checks that it got that again.
func (t *trial) replayed(p *parkedPoll) bool {
	k, asked := t.replays[replayKey{p.group, p.req.Member, p.req.PollID}]
	if !asked || p.req.PollID == "" {
		return false
	}
	v := p.group.judge(true, k.receipt.Delivery, k.receipt.Ranges)
	if len(v.current) == 0 {
		return false
	}
	var got []place
	for _, d := range p.batch.Deliveries {
		got = append(got, place{d.Partition, d.Offset})
	}
	if !slices.Equal(inOrder(got), inOrder(v.current)) || p.batch.Receipt.String() != k.receipt.String() {
		t.fail("a repeated poll-id brought %q, of the batch before %v is out", list(p.batch.Deliveries), v.current)
	}
	if left := p.group.leaseLeft(v.current, t.now); p.batch.Lease != left {
		t.fail("a repeated poll-id brought a lease of %v, %v is left", p.batch.Lease, left)
	}
	t.repeats[k.receipt.Delivery]++
	t.saw["poll-id repeated"]++
	return true
}

// handedOut checks that everything of a batch could be handed out, and hands it
// out in the twin.
func (t *trial) handedOut(p *parkedPoll) {
	g, b := p.group, &p.batch
	if len(b.Deliveries) == 0 {
		t.blockedAsTold(p)
		return
	}
	t.fits(p)
	if t.deliveries[b.Receipt.Delivery] {
		t.fail("delivery number %d is used twice", b.Receipt.Delivery)
	}
	t.deliveries[b.Receipt.Delivery] = true
	if want := min(t.settings.AckTimeout, g.settings.MaxLease); b.Lease != want {
		t.fail("a new batch has a lease of %v, want %v", b.Lease, want)
	}
	free := make(map[int][]int64)
	for _, d := range b.Deliveries {
		c := g.cursors[d.Partition]
		if _, looked := free[d.Partition]; !looked {
			free[d.Partition] = c.available(t.now)
		}
		at := slices.Index(free[d.Partition], d.Offset)
		if at < 0 || c.ordered && at > 0 || !g.offered(p.req.Member, p.req.Partition, d.Partition) {
			t.fail("%s got %d:%d, of partition %d there were %v for it", p.req.Member, d.Partition, d.Offset, d.Partition, free[d.Partition])
		}
		free[d.Partition] = slices.Delete(free[d.Partition], at, at+1)
		t.sameMessage(c, d, len(b.Deliveries))
	}
	t.lend(p)
	k := known{g, g.member(p.req.Member), b.Receipt}
	k.receipt.Ranges = slices.Clone(b.Receipt.Ranges)
	t.known = append(t.known, k)
	if len(t.known) > 30 {
		t.known = slices.Delete(t.known, 0, 10)
	}
	if p.req.PollID != "" {
		t.replays[replayKey{g, p.req.Member, p.req.PollID}] = k
	}
}

// fits checks a batch against what was asked for and its own receipt.
func (t *trial) fits(p *parkedPoll) {
	b := &p.batch
	if len(b.Deliveries) > p.req.Max {
		t.fail("max is %d, %d came", p.req.Max, len(b.Deliveries))
	}
	covered := make(map[place]bool)
	for _, r := range b.Receipt.Ranges {
		for _, at := range places(nil, r.Partition, r.From, r.To) {
			covered[at] = true
		}
	}
	for _, d := range b.Deliveries {
		delete(covered, place{d.Partition, d.Offset})
	}
	n := 0
	for _, r := range b.Receipt.Ranges {
		n += int(r.To - r.From)
	}
	if len(covered) > 0 || n != len(b.Deliveries) {
		t.fail("the receipt of %q covers %v", list(b.Deliveries), b.Receipt.Ranges)
	}
}

func (t *trial) sameMessage(c *twinCursor, d core.Delivery, together int) {
	m := c.at(d.Offset)
	if want := t.parts[d.Partition].log[d.Offset]; string(d.Block()) != string(want.Block()) || d.Attempt != m.failed+1 {
		t.fail("%d:%d came as %q, attempt %d; want %q, %d", d.Partition, d.Offset, d.Payload(), d.Attempt, want.Payload(), m.failed+1)
	}
	if c.alone(d.Offset) {
		t.saw["handed out alone"]++
		if together > 1 {
			t.fail("%d:%d has failed %d times and came with %d others", d.Partition, d.Offset, m.failed, together-1)
		}
	}
}

// lend hands a batch out.
func (t *trial) lend(p *parkedPoll) {
	g, b := p.group, &p.batch
	var leases []*twinLease
	lease := func(partition int) *twinLease {
		for len(leases) <= partition {
			leases = append(leases, nil)
		}
		if leases[partition] == nil || g.queue() {
			leases[partition] = &twinLease{b.Receipt.Delivery, p.req.Member, t.now, t.now.Add(b.Lease)}
		}
		return leases[partition]
	}
	for _, d := range b.Deliveries {
		c := g.cursors[d.Partition]
		m := c.at(d.Offset)
		if m.seen {
			switch m.ended {
			case byNack:
				g.redelivered.Nack++
			case byLease:
				g.redelivered.Lease++
			case byLeave:
				g.redelivered.Leave++
			}
			t.saw["redelivered"]++
		}
		m.lease, m.latest, m.seen, c.holder = lease(d.Partition), b.Receipt.Delivery, true, p.req.Member
	}
	if c := g.cursors[b.Deliveries[0].Partition]; c.ordered {
		t.voidRest(g, b)
	}
	g.delivered += uint64(len(b.Deliveries))
	t.saw["delivered"] += len(b.Deliveries)
}

// voidRest makes receipts of an ordered partition stale that were handed out
// again in part.
func (t *trial) voidRest(g *twinGroup, b *core.Batch) {
	for _, r := range b.Receipt.Ranges {
		c := g.cursors[r.Partition]
		for o := r.To; o < c.end(); o++ {
			c.at(o).latest = 0
		}
	}
}

func (t *trial) blockedAsTold(p *parkedPoll) {
	var want []core.Blocked
	for i, c := range p.group.cursors {
		if l := c.lease(); !p.group.queue() && l != nil && p.group.assigned[i] == p.req.Member && (p.req.Partition < 0 || p.req.Partition == i) {
			want = append(want, core.Blocked{Partition: i, Member: l.member, Lease: l.until.Sub(t.now)})
		}
	}
	got := slices.Clone(p.batch.Blocked)
	slices.SortFunc(got, func(a, b core.Blocked) int { return a.Partition - b.Partition })
	if !slices.Equal(got, want) {
		t.fail("an empty poll of %s by %s tells of %v, passed over were %v", p.group.name, p.req.Member, got, want)
	}
}

// tookAll checks that a poll that did not wait left nothing behind that it had
// room for. A message that must be alone may end the batch before it.
func (t *trial) tookAll(p *parkedPoll) {
	b := &p.batch
	some, alone := len(b.Deliveries) > 0, false
	left := make(map[int][]int64)
	for i, c := range p.group.cursors {
		for o := c.committed(); o < c.end(); o++ {
			alone = alone || c.at(o).lease == nil && c.alone(o)
		}
		if offsets := c.available(t.now); p.group.offered(p.req.Member, p.req.Partition, i) && len(offsets) > 0 {
			left[i] = offsets
		}
	}
	if full := len(b.Deliveries) == p.req.Max || some && (alone || b.Deliveries[0].Attempt >= 3); len(left) > 0 && !full {
		t.fail("a poll by %s brought %q of up to %d and left %v, by partition", p.req.Member, list(b.Deliveries), p.req.Max, left)
	}
}

// collect takes what parked polls have come to. Polls that are parked still
// must not have been overtaken.
func (t *trial) collect() {
	var ended []*parkedPoll
	waiting := t.parked[:0:0]
	for _, p := range t.parked {
		select {
		case <-p.done:
			ended = append(ended, p)
		default:
			waiting = append(waiting, p)
		}
	}
	before := t.parked
	t.parked = waiting
	for _, p := range ended {
		t.endedWell(p, before)
	}
}

func (t *trial) endedWell(p *parkedPoll, before []*parkedPoll) {
	g := p.group
	member := g.member(p.req.Member)
	switch {
	case t.group(g.name) != g:
		t.expect("a parked poll", p.err, true, core.CodeUnknownGroup)
		return
	case core.CodeOf(p.err) == core.CodeNotOwner && p.req.Partition >= 0 && (g.assigned[p.req.Partition] != p.req.Member || g.shuffled.Equal(t.now)):
		member.called(t.now)
		return
	case p.err != nil:
		t.fail("a parked poll: %v", p.err)
	case member == nil && len(p.batch.Deliveries) == 0:
		return // it left
	}
	member.called(t.now)
	if len(p.batch.Deliveries) == 0 {
		if t.now.Before(p.deadline) && !p.repeated {
			t.fail("a parked poll of %s by %s ended empty %v before its wait", g.name, p.req.Member, p.deadline.Sub(t.now))
		}
		return
	}
	t.saw["parked poll answered"]++
	t.handedOut(p)
	for _, q := range t.parked {
		sameLine := q.group == g && (g.queue() || q.req.Member == p.req.Member)
		wanted := slices.ContainsFunc(p.batch.Deliveries, func(d core.Delivery) bool {
			return q.req.Partition == core.AnyPartition || q.req.Partition == d.Partition
		})
		if sameLine && wanted && slices.Index(before, q) < slices.Index(before, p) {
			t.fail("a poll of %s by %s was answered before one that was parked earlier", g.name, p.req.Member)
		}
	}
}
