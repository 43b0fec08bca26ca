package memory

import (
	"context"
	"fmt"
	"time"

	"github.com/podmq/podmq/pkg/core"
	"github.com/podmq/podmq/pkg/core/balance"
	"github.com/podmq/podmq/pkg/core/stream"
)

// A settlement is an ack, nack or extend under way.
type settlement struct {
	core.Settled
	group   *group
	applied bool // something of it counted
	atLimit bool // an extend found a lease that can last no longer
}

// Ack implements core.Engine.
func (b *Broker) Ack(_ context.Context, topic, group string, req *core.AckRequest) (core.Settled, error) {
	g, err := b.enterGroup(topic, group)
	if err != nil {
		return core.Settled{}, err
	}
	defer g.topic.leave()
	return g.ack(req)
}

func (g *group) ack(req *core.AckRequest) (core.Settled, error) {
	narrow := req.Partition.Given
	switch {
	case narrow != req.Upto.Given:
		return core.Settled{}, core.Invalid("upto", "cannot ack: partition and upto go together")
	case narrow && g.queue():
		return core.Settled{}, core.Invalid("upto", "cannot ack up to an offset in queue group %s: its messages are acked one by one, each by its receipt", g.name)
	case len(req.Receipts) == 0 && !narrow:
		return core.Settled{}, core.Invalid("receipt", "cannot ack: give a receipt, or partition and upto")
	case len(req.Receipts) == 0:
		return g.ackOffset(req)
	case narrow && len(req.Receipts) > 1:
		return core.Settled{}, core.Invalid("receipt", "cannot ack up to an offset of %d receipts: give one", len(req.Receipts))
	}
	s := settlement{group: g}
	s.Cursors = req.Buffer[:0]
	for i := range req.Receipts {
		r := &req.Receipts[i]
		g.touch(r)
		if narrow {
			run, err := upto(r, req.Partition.Value, req.Upto.Value)
			if err != nil {
				return core.Settled{}, err
			}
			s.judge(r, run, s.ackPart)
			s.leaseLeft(r)
			continue
		}
		for _, run := range r.Ranges {
			s.judge(r, run, s.ackPart)
		}
	}
	return s.result("ack")
}

// upto narrows a receipt to [.., upto] of one of its partitions.
func upto(r *core.Receipt, partition int, upto int64) (core.Range, error) {
	for _, run := range r.Ranges {
		if run.Partition != partition {
			continue
		}
		if upto >= run.To || upto < 0 {
			return run, core.Errorf(core.CodeNotInFlight, "cannot ack: the receipt covers offsets %d to %d of partition %d, not %d", run.From, run.To-1, partition, upto).
				With("partition", partition).With("upto", upto)
		}
		run.To = upto + 1
		if upto < run.From { // acked before the batch was handed out
			run.From, run.To = upto, upto+1
		}
		return run, nil
	}
	return core.Range{}, core.Invalid("partition", "cannot ack: the receipt does not cover partition %d", partition)
}

// touch notes that the receipt's member was heard of.
func (g *group) touch(r *core.Receipt) {
	if m := g.byID[balance.MemberID(r.Member)]; m != nil && g.issued(r) {
		m.lastSeen = g.topic.now
	}
}

// issued reports whether the group, as it is now, gave the receipt.
func (g *group) issued(r *core.Receipt) bool {
	return r.Epoch == g.topic.epoch && r.Topic == g.topic.incarnation && r.Group == g.incarnation
}

// has reports whether the topic has such a partition.
func (g *group) has(partition int) bool { return partition >= 0 && partition < len(g.tracks) }

// judge calls apply for each part of a range that still counts, and takes note
// of the others.
func (s *settlement) judge(r *core.Receipt, run core.Range, apply func(*track, stream.Part)) {
	g := s.group
	if !g.issued(r) || !g.has(run.Partition) {
		s.stale(run.Partition, run.From, run.To)
		return
	}
	t, tr := g.topic, &g.tracks[run.Partition]
	parts := tr.cursor.Judge(t.scratch.parts[:0], r.Delivery, stream.Run{From: run.From, To: run.To})
	t.scratch.parts = parts
	counted := false
	for _, part := range parts {
		if part.Verdict == stream.Stale {
			s.stale(run.Partition, part.From, part.To)
			continue
		}
		counted = true
		if part.Verdict != stream.Done {
			apply(tr, part)
		}
	}
	if counted {
		s.touched(tr)
	}
}

func (s *settlement) stale(partition int, from, to int64) {
	s.Stale = append(s.Stale, core.StaleRange{Partition: partition, From: from, To: to})
}

// touched puts the place of a cursor into the answer, once.
func (s *settlement) touched(tr *track) {
	place := core.CursorPlace{Partition: tr.partition, Committed: tr.cursor.Committed(), Next: tr.cursor.Next()}
	for i := range s.Cursors {
		if s.Cursors[i].Partition == tr.partition {
			s.Cursors[i] = place
			return
		}
	}
	s.Cursors = append(s.Cursors, place)
}

func (s *settlement) ackPart(tr *track, part stream.Part) {
	s.applied = true
	s.Late = s.Late || part.Verdict == stream.Late
	s.group.count.acked += uint64(part.Len())
	s.group.topic.apply(tr, stream.Change{Kind: stream.Acked, Member: part.Member, From: part.From, To: part.To, At: s.group.topic.now})
}

// leaseLeft puts into the answer how long what is left of a receipt stays out.
func (s *settlement) leaseLeft(r *core.Receipt) {
	g, t := s.group, s.group.topic
	if !g.issued(r) {
		return
	}
	for _, run := range r.Ranges {
		if !g.has(run.Partition) {
			continue
		}
		parts := g.tracks[run.Partition].cursor.Judge(t.scratch.parts[:0], r.Delivery, stream.Run{From: run.From, To: run.To})
		t.scratch.parts = parts
		for _, part := range parts {
			if left := part.Until.Sub(t.now); part.Verdict == stream.Current && (s.Lease == 0 || left < s.Lease) {
				s.Lease = left
			}
		}
	}
}

// result is the answer: an error when all of it was stale.
func (s *settlement) result(verb string) (core.Settled, error) {
	g := s.group
	if len(s.Stale) > 0 && !s.applied && !s.atLimit {
		first := s.Stale[0]
		return core.Settled{}, core.Errorf(core.CodeStaleReceipt,
			"cannot %s partition %d, offsets %d to %d, for group %s: the delivery has ended, and the messages were or will be handed out again; drop the receipt and poll", verb, first.Partition, first.From, first.To-1, g.name).
			With("group", g.name).With("stale", s.Stale)
	}
	if s.atLimit && !s.applied {
		return core.Settled{}, core.Errorf(core.CodeLeaseLimit,
			"cannot extend the lease: it lasts until %v after the hand-out, which is the max-lease of group %s; settle the batch", g.settings.MaxLease, g.name).
			With("group", g.name).With("max_lease", g.settings.MaxLease.String())
	}
	return s.Settled, nil
}

// ackOffset is the ack that names no receipt: it must be in flight for the
// member.
func (g *group) ackOffset(req *core.AckRequest) (core.Settled, error) {
	t, p, offset := g.topic, req.Partition.Value, req.Upto.Value
	if !g.has(p) {
		return core.Settled{}, unknownPartition(t.name, p, len(g.tracks))
	}
	tr := &g.tracks[p]
	id, _ := tr.cursor.Lease()
	holder := g.byID[balance.MemberID(id)]
	committed, next := tr.cursor.Committed(), tr.cursor.Next()
	if m := g.members[req.Member]; m != nil {
		m.lastSeen = t.now
	}
	if holder == nil || offset < committed || offset >= next || holder.name != req.Member {
		what := "nothing is"
		if holder != nil {
			what = fmt.Sprintf("%d..%d are", committed, next-1)
			if holder.name != req.Member {
				what += ", for member " + holder.name
			}
		}
		return core.Settled{}, core.Errorf(core.CodeNotInFlight, "cannot ack: offset %d is not in flight for %s (%s)", offset, g.name, what).
			With("group", g.name).With("partition", p).With("offset", offset).With("committed", committed).With("next", next)
	}
	s := settlement{group: g}
	s.Cursors = req.Buffer[:0]
	s.ackPart(tr, stream.Part{Run: stream.Run{From: committed, To: offset + 1}, Verdict: stream.Current, Member: id})
	s.touched(tr)
	if _, until := tr.cursor.Lease(); until > t.now {
		s.Lease = until.Sub(t.now)
	}
	return s.result("ack")
}

// Nack implements core.Engine.
func (b *Broker) Nack(_ context.Context, topic, group string, req *core.NackRequest) (core.Settled, error) {
	switch delay := req.Delay; {
	case req.Partition.Given != req.Offset.Given:
		return core.Settled{}, core.Invalid("offset", "cannot nack: partition and offset go together")
	case delay.Given && (delay.Value < 0 || delay.Value > core.MaxNackDelay):
		return core.Settled{}, core.Invalid("delay", "cannot delay for %v: delay is 0 to %v", delay.Value, core.MaxNackDelay)
	}
	g, err := b.enterGroup(topic, group)
	if err != nil {
		return core.Settled{}, err
	}
	defer g.topic.leave()
	g.touch(&req.Receipt)
	s := settlement{group: g}
	if req.Offset.Given {
		if err := s.checkFailed(req); err != nil {
			return core.Settled{}, err
		}
	}
	failed := req.Offset.Or(-1)
	for i, run := range req.Receipt.Ranges {
		if req.Partition.Given && run.Partition != req.Partition.Value {
			continue
		}
		if !req.Offset.Given && (i == 0 || req.Receipt.Ranges[i-1].Partition != run.Partition) {
			failed = -1 // the first unsettled of each partition
		}
		s.judge(&req.Receipt, run, func(tr *track, part stream.Part) {
			if part.Verdict == stream.Late {
				s.stale(tr.partition, part.From, part.To)
				return
			}
			if failed < 0 {
				failed = part.From
			}
			s.applied = true
			t := g.topic
			t.applyAll(tr, tr.cursor.Nack(t.scratch.changes[:0], part, failed, req.Delay, t.now))
		})
	}
	s.leaseLeft(&req.Receipt)
	return s.result("nack")
}

// checkFailed refuses a nack whose offset is not one that the receipt can say
// has failed.
func (s *settlement) checkFailed(req *core.NackRequest) error {
	g, p, offset := s.group, req.Partition.Value, req.Offset.Value
	covered := false
	for _, run := range req.Receipt.Ranges {
		if run.Partition != p {
			continue
		}
		covered = true
		if offset < run.From || offset >= run.To {
			continue
		}
		if g.issued(&req.Receipt) && g.has(p) {
			t := g.topic
			parts := g.tracks[p].cursor.Judge(t.scratch.parts[:0], req.Receipt.Delivery, stream.Run{From: offset, To: offset + 1})
			t.scratch.parts = parts
			if parts[0].Verdict == stream.Done {
				return core.Errorf(core.CodeNotInFlight, "cannot nack: offset %d of partition %d is acked already by group %s", offset, p, g.name).
					With("group", g.name).With("partition", p).With("offset", offset)
			}
		}
		return nil
	}
	if !covered {
		return core.Invalid("partition", "cannot nack: the receipt does not cover partition %d", p)
	}
	return core.Errorf(core.CodeNotInFlight, "cannot nack: the receipt does not cover offset %d of partition %d", offset, p).
		With("group", g.name).With("partition", p).With("offset", offset)
}

// Extend implements core.Engine.
func (b *Broker) Extend(_ context.Context, topic, group string, req *core.ExtendRequest) (core.Settled, error) {
	if by := req.By; by.Given && (by.Value < core.MinDuration || by.Value > core.MaxDuration) {
		return core.Settled{}, core.Invalid("by", "cannot extend by %v: by is %v to %v", by.Value, core.MinDuration, core.MaxDuration)
	}
	g, err := b.enterGroup(topic, group)
	if err != nil {
		return core.Settled{}, err
	}
	defer g.topic.leave()
	g.touch(&req.Receipt)
	s := settlement{group: g}
	for _, run := range req.Receipt.Ranges {
		s.judge(&req.Receipt, run, func(tr *track, part stream.Part) {
			s.extendPart(tr, part, &req.Receipt, req.By.Or(g.topic.settings.AckTimeout))
		})
	}
	s.leaseLeft(&req.Receipt)
	return s.result("extend")
}

func (s *settlement) extendPart(tr *track, part stream.Part, r *core.Receipt, by time.Duration) {
	t := s.group.topic
	if part.Verdict == stream.Late {
		s.stale(tr.partition, part.From, part.To)
		return
	}
	most := part.Granted.Add(s.group.settings.MaxLease)
	until := min(t.now.Add(by), most)
	if until == most && part.Until == most {
		s.atLimit = true
		return
	}
	s.applied = true
	t.apply(tr, stream.Change{Kind: stream.Extended, Delivery: r.Delivery, Member: part.Member, From: part.From, To: part.To, At: t.now, Until: until})
}

// Return implements core.Engine.
func (b *Broker) Return(_ context.Context, topic, group string, receipt *core.Receipt) error {
	g, err := b.enterGroup(topic, group)
	if err != nil {
		return err
	}
	defer g.topic.leave()
	g.unsent(receipt)
	return nil
}

// unsent undoes a delivery whose answer reached nobody.
func (g *group) unsent(receipt *core.Receipt) {
	if m := g.byID[balance.MemberID(receipt.Member)]; m != nil && m.answeredAgain(receipt.Delivery) {
		return
	}
	s, t := settlement{group: g}, g.topic
	for _, run := range receipt.Ranges {
		s.judge(receipt, run, func(tr *track, part stream.Part) {
			if part.Verdict == stream.Current {
				t.applyAll(tr, tr.cursor.Unsent(t.scratch.changes[:0], part, t.now))
			}
		})
	}
}
