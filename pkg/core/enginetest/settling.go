package enginetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

// settle tries an ack, nack or extend with one of the receipts that were given
// out, be it old or new, as a rule in the group that it is of.
func (t *trial) settle(o op) {
	if o.Kind == opAckOffset {
		t.ackOffset(o)
		return
	}
	if len(t.known) == 0 {
		return
	}
	k := t.known[len(t.known)-1-o.A%min(len(t.known), 8)] // the latest are the most telling
	g := t.group(k.group.name)
	if o.C == 23 { // in another group it is worth nothing
		g = t.group(trialGroupNames[o.B%len(trialGroupNames)])
	}
	if g == nil {
		return
	}
	receipt := k.receipt
	if g.queue() && o.B%3 == 0 {
		r := receipt.Ranges[o.C%len(receipt.Ranges)]
		receipt = receipt.Message(r.Partition, r.From+int64(o.B)%(r.To-r.From))
	}
	switch o.Kind {
	case opAck:
		t.ack(g, k, core.AckRequest{Receipts: []core.Receipt{receipt}})
	case opAckUpto:
		t.ackUpto(g, k, receipt, o)
	case opNack:
		req := core.NackRequest{Receipt: receipt}
		single := !g.queue() || len(receipt.Ranges) == 1 && receipt.Ranges[0].To == receipt.Ranges[0].From+1
		if single && o.B%4 == 0 {
			req.Delay = core.Some(time.Duration(o.B) * 20 * time.Millisecond)
		}
		t.nack(g, k, req)
	case opNackOffset:
		r := receipt.Ranges[o.C%len(receipt.Ranges)]
		offset := r.From + int64(o.B)%(r.To-r.From)
		t.nack(g, k, core.NackRequest{Receipt: receipt, Partition: core.Some(r.Partition), Offset: core.Some(offset)})
	case opExtend:
		t.extendLease(g, k, receipt, time.Duration(1+o.B)*150*time.Millisecond)
	case opReturn:
		t.giveBackBatch(g, k, receipt)
	}
}

// heard notes a call of a receipt's member. One that was refused may count, or
// one with a receipt from before the member was gone and came again.
func (g *twinGroup) heard(k known, now time.Time, sure bool) {
	if m := g.member(k.member.name); m != nil && k.group == g {
		m.mayHaveCalled(now)
		if sure && m == k.member {
			m.called(now)
		}
	}
}

// settled checks what every settlement says against what the twin thought of
// its receipt, and reports whether it was refused as stale.
func (t *trial) settled(call string, got core.Settled, err error, v verdict, applied bool) (refused bool) {
	if t.expect(call, err, len(v.stale) > 0 && !applied, core.CodeStaleReceipt) {
		t.saw[call+" stale"]++
		return true
	}
	var stale []place
	for _, r := range got.Stale {
		stale = places(stale, r.Partition, r.From, r.To)
	}
	if fmt.Sprint(inOrder(stale)) != fmt.Sprint(inOrder(v.stale)) {
		t.fail("%s: stale is %v, want %v", call, got.Stale, v.stale)
	}
	if len(v.stale) > 0 {
		t.saw[call+" stale in part"]++
	}
	return false
}

func inOrder(ps []place) []place {
	slices.SortFunc(ps, func(a, b place) int {
		return (a.partition-b.partition)*1_000_000 + int(a.offset-b.offset)
	})
	return ps
}

// placesOf checks the cursors that a settlement tells against the twin's. What
// was handed out in the same moment may be in next.
func (t *trial) placesOf(call string, g *twinGroup, got core.Settled, touched ...[]place) {
	told := make(map[int]bool)
	for _, c := range got.Cursors {
		told[c.Partition] = true
		if want := g.cursors[c.Partition].committed(); c.Committed != want || c.Next < want {
			t.fail("%s: partition %d is told at committed %d next %d, want committed %d", call, c.Partition, c.Committed, c.Next, want)
		}
	}
	for _, ps := range touched {
		for _, at := range ps {
			if !told[at.partition] {
				t.fail("%s touched partition %d and told of %v", call, at.partition, got.Cursors)
			}
		}
	}
}

func (t *trial) ack(g *twinGroup, k known, req core.AckRequest) {
	got, err := t.engine.Ack(t.ctx, trialTopic, g.name, &req)
	ranges := req.Receipts[0].Ranges
	if req.Upto.Given {
		upto := max(req.Upto.Value, 0)
		for _, r := range req.Receipts[0].Ranges {
			if r.Partition == req.Partition.Value {
				ranges = []core.Range{{Partition: r.Partition, From: min(r.From, upto), To: upto + 1}}
			}
		}
	}
	v := g.judge(k.group == g, req.Receipts[0].Delivery, ranges)
	t.acked(g, k, got, err, v)
	if err == nil && req.Upto.Given && g == k.group {
		left := g.leaseLeft(g.judge(true, req.Receipts[0].Delivery, req.Receipts[0].Ranges).current, t.now)
		if got.Lease != left {
			t.fail("ack: a lease of %v is told, %v is left", got.Lease, left)
		}
	}
	t.tidy()
}

// acked applies an ack, also one that came with a poll.
func (t *trial) acked(g *twinGroup, k known, got core.Settled, err error, v verdict) (refused bool) {
	refused = t.settled("ack", got, err, v, len(v.current)+len(v.late) > 0)
	g.heard(k, t.now, !refused)
	if refused {
		return true
	}
	if got.Late != (len(v.late) > 0) {
		t.fail("ack: late is %v of %+v", got.Late, v)
	}
	if got.Late {
		t.saw["ack late"]++
	}
	if len(v.done) > 0 {
		t.saw["ack done"]++
	}
	g.ack(v.current, v.late)
	t.placesOf("ack", g, got, v.current, v.late)
	return false
}

func (t *trial) ackUpto(g *twinGroup, k known, receipt core.Receipt, o op) {
	r := receipt.Ranges[o.C%len(receipt.Ranges)]
	upto := r.From + int64(o.B)%(r.To-r.From+1)
	req := core.AckRequest{Receipts: []core.Receipt{receipt}, Partition: core.Some(r.Partition), Upto: core.Some(upto)}
	switch {
	case k.group.queue() && !g.queue():
		return // several runs of one partition, which only a queue group gives
	case g.queue():
		_, err := t.engine.Ack(t.ctx, trialTopic, g.name, &req)
		t.expect("ack upto", err, true, core.CodeInvalidRequest)
		g.heard(k, t.now, false)
	case upto >= r.To:
		_, err := t.engine.Ack(t.ctx, trialTopic, g.name, &req)
		t.expect("ack upto", err, true, core.CodeNotInFlight)
		g.heard(k, t.now, false)
	default:
		t.ack(g, k, req)
	}
}

func (t *trial) ackOffset(o op) {
	g := t.group(trialGroupNames[o.B%len(trialGroupNames)])
	if g == nil || g.queue() {
		return
	}
	p := o.C % len(t.parts)
	c := g.cursors[p]
	member := fmt.Sprint("m", o.A%3)
	if l := c.lease(); l != nil && o.C%2 == 0 {
		member = l.member
	}
	upto := max(0, c.committed()-1+int64(o.C)%5)
	got, err := t.engine.Ack(t.ctx, trialTopic, g.name, &core.AckRequest{Partition: core.Some(p), Upto: core.Some(upto), Member: member})
	l := c.lease()
	out := l != nil && l.member == member && c.committed() <= upto && upto < c.committed()+c.inFlight()
	if m := g.member(member); m != nil {
		m.mayHaveCalled(t.now)
		if out {
			m.called(t.now)
		}
	}
	if t.expect("ack by offset", err, !out, core.CodeNotInFlight) {
		return
	}
	t.saw["ack by offset"]++
	acked := places(nil, p, c.committed(), upto+1)
	g.ack(acked)
	t.placesOf("ack by offset", g, got, acked)
	t.tidy()
}

func (t *trial) nack(g *twinGroup, k known, req core.NackRequest) {
	ranges := req.Receipt.Ranges
	if req.Offset.Given {
		ranges = slices.DeleteFunc(slices.Clone(ranges), func(r core.Range) bool { return r.Partition != req.Partition.Value })
	}
	v := g.judge(k.group == g, req.Receipt.Delivery, ranges)
	failed := firsts(v.current)
	if req.Offset.Given {
		failed = []place{{req.Partition.Value, req.Offset.Value}}
		done := k.group == g && g.cursors[failed[0].partition].at(failed[0].offset).acked
		if done || len(v.current) > 0 && !slices.Contains(v.current, failed[0]) {
			return // the contract does not say what it means that a message failed which is done
		}
	}
	got, err := t.engine.Nack(t.ctx, trialTopic, g.name, &req)
	v.stale = append(v.stale, v.late...)
	refused := t.settled("nack", got, err, v, len(v.current) > 0)
	g.heard(k, t.now, !refused)
	if refused || len(v.current) == 0 {
		return
	}
	g.nack(v.current, failed, req.Delay, t.now)
	t.placesOf("nack", g, got, v.current)
	t.saw["nack"]++
	t.tidy()
}

func (t *trial) extendLease(g *twinGroup, k known, receipt core.Receipt, by time.Duration) {
	got, err := t.engine.Extend(t.ctx, trialTopic, g.name, &core.ExtendRequest{Receipt: receipt, By: core.Some(by)})
	v := g.judge(k.group == g, receipt.Delivery, receipt.Ranges)
	v.stale = append(v.stale, v.late...)
	extended, atLimit := g.extend(v.current, by, t.now)
	g.heard(k, t.now, extended > 0)
	if atLimit > 0 && extended == 0 {
		if code := core.CodeOf(err); code != core.CodeLeaseLimit && (code != core.CodeStaleReceipt || len(v.stale) == 0) {
			t.fail("extend at the limit: %v, want code %s", err, core.CodeLeaseLimit)
		}
		t.saw["extend at the limit"]++
		return
	}
	if t.settled("extend", got, err, v, extended > 0) || extended == 0 {
		return
	}
	if left := g.leaseLeft(v.current, t.now); got.Lease != left {
		t.fail("extend: a lease of %v is told, %v is left", got.Lease, left)
	}
	t.placesOf("extend", g, got, v.current)
	t.saw["extend"]++
}

func (t *trial) giveBackBatch(g *twinGroup, k known, receipt core.Receipt) {
	if err := t.engine.Return(t.ctx, trialTopic, g.name, &receipt); err != nil {
		t.fail("Return: %v", err)
	}
	g.heard(k, t.now, false)
	v := g.judge(k.group == g, receipt.Delivery, receipt.Ranges)
	if len(v.current) == 0 {
		return
	}
	if t.repeats[receipt.Delivery] > 0 { // it is with its member, in another answer
		t.repeats[receipt.Delivery]--
		t.saw["lost answer that was repeated"]++
		return
	}
	g.giveBack(v.current)
	t.saw["given back"]++
	// Whether an older receipt counts again when a later delivery was undone, the
	// contract does not say.
	t.forget(g)
	t.tidy()
}
