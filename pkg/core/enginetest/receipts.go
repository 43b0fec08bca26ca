package enginetest

import (
	"fmt"
	"sync"

	"github.com/podmq/podmq/pkg/core"
)

var receiptTests = []test{
	{"G8 one batch is out per partition", denseOffsets, oneBatch},
	{"G8 concurrent polls share partitions, never messages", wholeBatches, pollsAtOnce},
	{"G9 receipts of other deliveries, epochs and incarnations are stale", denseOffsets, staleKinds},
	{"G9 a receipt of what is done is fine and changes nothing", denseOffsets, doneIsFine},
	{"G9 a receipt is judged partition by partition", denseOffsets, partitionByPartition},
	{"G9 ranges that are done do not make a stale receipt good", denseOffsets, doneAndStale},
	{"G9 several receipts are settled in one call", denseOffsets, severalReceipts},
	{"G9 an ack up to an offset settles that much", denseOffsets, ackUpto},
	{"G9 a receipt narrowed to what it does not cover is refused", denseOffsets, narrowedWrong},
	{"G10 an ack by offset outside of what is in flight is refused", denseOffsets, ackByOffset},
	{"G10 an ack by offset counts for the member it went to", denseOffsets, ackByOffsetMember},
	{"A nack of one offset ends that partition only", denseOffsets, nackOffset},
}

func oneBatch(s *script) {
	s.topic(1, 10)
	g := s.ordered("billing")
	s.publish(0, "a", "b")
	got := g.poll("c1", 1, "0:0=a")
	g.poll("c1", 1, "")
	g.poll("c2", 1, "")
	if n := s.engine.Stats().LeasesOut; n != 1 {
		s.Errorf("%d leases are out, want 1", n)
	}
	// So a lost answer can never be acked over by a later one.
	g.ack(got.Receipt)
	g.cursor(0, 1, 1, 1)
}

func pollsAtOnce(s *script) {
	const partitions, each = 4, 50
	for _, typ := range []core.GroupType{core.Ordered, core.Queue} {
		on := s.on("at-once-" + string(typ))
		on.topic(partitions, each)
		g := on.group("g", core.GroupSpec{Type: core.Some(typ)})
		for i := range partitions * each {
			on.publish(i%partitions, fmt.Sprint(i))
		}
		var all sync.WaitGroup
		var mu sync.Mutex
		times := make(map[string]int)
		for range 8 {
			all.Go(func() {
				for range 4 {
					b, err := g.tryPoll(s.Context(), ask("c1", 5))
					if err != nil {
						s.Errorf("Poll: %v", err)
					}
					mu.Lock()
					for _, d := range b.Deliveries {
						times[fmt.Sprint(d.Partition, ":", d.Offset)]++
					}
					mu.Unlock()
				}
			})
		}
		all.Wait()
		for at, n := range times {
			if n > 1 {
				s.Errorf("%s: %s is out %d times at once", typ, at, n)
			}
		}
		if int64(len(times)) != g.look().InFlight {
			s.Errorf("%s: %d are in flight, %d came", typ, g.look().InFlight, len(times))
		}
	}
}

// staleKinds tries every kind of receipt that must not count, with every call,
// and holds the cursor against the one before.
func staleKinds(s *script) {
	s.topic(1, 10)
	g := s.ordered("billing")
	s.publish(0, "a", "b")
	nacked := g.poll("c1", 2, "0:0=a 0:1=b").Receipt
	g.nack(nacked)
	otherGroup := s.ordered("email")
	s.publish(0, "c")
	ofOther := otherGroup.poll("c1", 2, "0:2=c").Receipt
	again := g.poll("c1", 1, "0:0=a#2").Receipt // nacked came again, in part, to the same member
	otherEpoch := again
	otherEpoch.Epoch++

	stale := map[string]core.Receipt{
		"redelivered to the same member": nacked,
		"of another group":               ofOther,
		"of another epoch":               otherEpoch,
	}
	neverCount(s, g, stale)
	g.ack(again)
	s.state(0, "log 1..2, backlog 2/10, billing committed 1 next 1, email committed 2 next 3")

	s.ok("DeleteGroup", s.engine.DeleteGroup(s.Context(), s.topicName, "billing"))
	g = s.group("billing", core.GroupSpec{Start: core.Some(core.Earliest)})
	g.poll("c1", 1, "0:2=c")
	neverCount(s, g, map[string]core.Receipt{"of the group before": again, "of the group before, nacked": nacked})

	s.ok("DeleteTopic", s.engine.DeleteTopic(s.Context(), s.topicName))
	s.topic(1, 10)
	g = s.ordered("billing")
	s.publish(0, "x", "y")
	g.poll("c1", 10, "0:0=x 0:1=y")
	neverCount(s, g, map[string]core.Receipt{"of the topic before": again, "of the topic before, nacked": nacked})
}

func neverCount(s *script, g *group, receipts map[string]core.Receipt) {
	s.Helper()
	before := describe(s.stats(), 0)
	for kind, r := range receipts {
		tries := map[string]func() (core.Settled, error){
			"Ack":      func() (core.Settled, error) { return g.tryAck(r) },
			"Ack upto": func() (core.Settled, error) { return g.tryAckUpto(r, r.Ranges[0].Partition, r.Ranges[0].From) },
			"Nack":     func() (core.Settled, error) { return g.tryNack(core.NackRequest{Receipt: r}) },
			"Extend":   func() (core.Settled, error) { return g.tryExtend(r, core.Some(defaults.AckTimeout)) },
			"Poll": func() (core.Settled, error) {
				req := ask("c1", 10)
				req.Acks = []core.Receipt{r}
				_, err := g.tryPoll(s.Context(), req)
				return core.Settled{}, err
			},
		}
		for call, try := range tries {
			if _, err := try(); core.CodeOf(err) != core.CodeStaleReceipt {
				s.Errorf("%s with a receipt %s: %v, want code %s", call, kind, err, core.CodeStaleReceipt)
			}
			if now := describe(s.stats(), 0); now != before {
				s.Errorf("%s with a receipt %s changed\n%s to\n%s", call, kind, before, now)
			}
		}
		g.giveBack(r)
		if now := describe(s.stats(), 0); now != before {
			s.Errorf("giving back a receipt %s changed\n%s to\n%s", kind, before, now)
		}
	}
}

func doneIsFine(s *script) {
	s.topic(1, 10)
	g, q := s.ordered("billing"), s.queue("jobs")
	s.publish(0, "a", "b")
	first := g.poll("c1", 1, "0:0=a").Receipt
	g.ack(first)
	second := g.poll("c1", 1, "0:1=b").Receipt
	before := describe(s.stats(), 0)
	for range 2 {
		got := g.ack(first) // done, though b was handed out since
		if len(got.Cursors) > 1 || len(got.Cursors) == 1 && got.Cursors[0] != (core.CursorPlace{Partition: 0, Committed: 1, Next: 2}) {
			s.Errorf("an ack again says %+v", got)
		}
	}
	if now := describe(s.stats(), 0); now != before {
		s.Errorf("an ack again changed %s to %s", before, now)
	}
	g.ack(second)
	g.ack(second)
	if n := g.look().Acked; n != 2 {
		s.Errorf("%d messages are counted as acked, want 2", n)
	}

	done := q.poll("c1", 10, "0:0=a 0:1=b").Receipt
	q.ack(done)
	q.ack(done.Message(0, 1))
	q.ack(done)
	if n := q.look().Acked; n != 2 {
		s.Errorf("%d messages of the queue group are counted as acked, want 2", n)
	}
}

func partitionByPartition(s *script) {
	s.topic(3, 10)
	g := s.ordered("billing")
	for p := range 3 {
		s.publish(p, "a", "b")
	}
	batch := g.pollLike(ask("c1", 6)).Receipt
	if len(batch.Ranges) != 3 {
		s.Fatalf("a batch of three partitions covers %v", batch.Ranges)
	}
	// Partition 1 comes again; 0 is done; 2 stays out.
	_, err := g.tryAckUpto(batch, 0, 1)
	s.ok("Ack", err)
	_, err = g.tryNackOffset(batch, 1, 0)
	s.ok("Nack", err)
	again := g.poll("c1", 1, "1:0=a#2").Receipt

	got, err := g.tryAck(batch)
	s.ok("Ack", err)
	if want := []core.StaleRange{{Partition: 1, From: 0, To: 2}}; fmt.Sprint(got.Stale) != fmt.Sprint(want) {
		s.Errorf("stale is %v, want %v", got.Stale, want)
	}
	g.cursor(0, 2, 2, 0)
	g.cursor(1, 0, 1, 2)
	g.cursor(2, 2, 2, 0)
	g.ack(again)
}

func doneAndStale(s *script) {
	s.topic(2, 10)
	g := s.ordered("billing")
	s.publish(0, "a")
	s.publish(1, "b")
	batch := g.pollLike(ask("c1", 2)).Receipt
	_, err := g.tryAckUpto(batch, 0, 0)
	s.ok("Ack", err)
	g.nack(batch)
	g.poll("c1", 10, "1:0=b#2")
	_, err = g.tryAck(batch)
	s.refused(core.CodeStaleReceipt, err)
}

func severalReceipts(s *script) {
	s.topic(2, 10)
	g := s.ordered("billing")
	s.publish(0, "a")
	s.publish(1, "b")
	one, two := g.pollLike(ask("c1", 1)).Receipt, g.pollLike(ask("c1", 1)).Receipt
	stale := one
	stale.Epoch++
	got, err := g.tryAck(stale, one, two)
	s.ok("Ack", err)
	if len(got.Stale) != 1 || got.Late {
		s.Errorf("the ack of three receipts says %+v, want one stale range", got)
	}
	g.cursor(0, 1, 1, 0)
	g.cursor(1, 1, 1, 0)
	_, err = g.tryAck(stale, stale)
	s.refused(core.CodeStaleReceipt, err)
}

func ackUpto(s *script) {
	s.topic(1, 10)
	g := s.ordered("billing")
	s.publish(0, "a", "b", "c", "d")
	batch := g.poll("c1", 3, "0:0=a 0:1=b 0:2=c").Receipt
	for upto := range int64(3) {
		got, err := g.tryAckUpto(batch, 0, upto)
		s.ok("Ack", err)
		want := core.CursorPlace{Partition: 0, Committed: upto + 1, Next: 3}
		if len(got.Cursors) != 1 || got.Cursors[0] != want {
			s.Errorf("ack up to %d says %+v, want %+v", upto, got.Cursors, want)
		}
		if wantLease := defaults.AckTimeout; upto < 2 && !s.features.RealTime && got.Lease != wantLease {
			s.Errorf("after the ack up to %d the lease is %v, want %v", upto, got.Lease, wantLease)
		}
		if upto == 2 && got.Lease != 0 {
			s.Errorf("nothing is out, but a lease of %v is left", got.Lease)
		}
	}
	got, err := g.tryAckUpto(batch, 0, 1) // done before
	s.ok("Ack again", err)
	if got.Late {
		s.Error("an ack of what is done is no late one")
	}
	g.cursor(0, 3, 3, 1)
}

func narrowedWrong(s *script) {
	s.topic(2, 10)
	g, q := s.ordered("billing"), s.queue("jobs")
	s.publish(0, "a", "b", "c")
	batch := g.poll("c1", 2, "0:0=a 0:1=b").Receipt
	_, err := g.tryAckUpto(batch, 0, 2)
	s.refused(core.CodeNotInFlight, err)
	_, err = g.tryNackOffset(batch, 0, 2)
	s.refused(core.CodeNotInFlight, err)
	_, err = g.tryAckUpto(batch, 1, 0)
	s.refused(core.CodeInvalidRequest, err)
	_, err = g.tryNackOffset(batch, 1, 0)
	if code := core.CodeOf(err); code != core.CodeInvalidRequest && code != core.CodeNotInFlight {
		s.Errorf("a nack in a partition that the receipt does not cover: %v", err)
	}
	jobs := q.poll("c1", 2, "0:0=a 0:1=b").Receipt
	_, err = q.tryAckUpto(jobs, 0, 1)
	s.refused(core.CodeInvalidRequest, err)
	_, err = q.tryAckOffset("c1", 0, 1)
	s.refused(core.CodeInvalidRequest, err)
	s.state(0, "log 0..2, backlog 3/10, billing committed 0 next 2, jobs committed 0 next 2")
	_, err = g.engine.Ack(s.Context(), s.topicName, g.name, &core.AckRequest{Member: "c1"})
	s.refused(core.CodeInvalidRequest, err) // neither a receipt nor an offset
}

func ackByOffset(s *script) {
	s.topic(2, 10)
	g := s.ordered("billing")
	s.publish(0, "a", "b", "c", "d")
	batch := g.poll("c1", 3, "0:0=a 0:1=b 0:2=c").Receipt
	g.ackOffset("c1", 0, 0)
	for _, offset := range []int64{0, 3, 4} {
		_, err := g.tryAckOffset("c1", 0, offset)
		s.refused(core.CodeNotInFlight, err)
		s.names(err, fmt.Sprintf("offset %d is not in flight for billing (1..2 are)", offset))
	}
	_, err := g.tryAckOffset("c1", 1, 0)
	s.refused(core.CodeNotInFlight, err)
	s.names(err, "offset 0 is not in flight for billing (nothing is)")
	_, err = g.tryAckOffset("c1", 2, 0)
	if code := core.CodeOf(err); code != core.CodeUnknownPartition && code != core.CodeNotInFlight {
		s.Errorf("an ack in a partition that does not exist: %v", err)
	}
	_, err = g.tryAckOffset("c1", 0, -1)
	if code := core.CodeOf(err); code != core.CodeNotInFlight && code != core.CodeInvalidRequest {
		s.Errorf("an ack of offset -1: %v", err)
	}
	g.cursor(0, 1, 3, 3)
	g.ackOffset("c1", 0, 2)
	g.cursor(0, 3, 3, 1)
	g.ack(batch)
}

func ackByOffsetMember(s *script) {
	s.topic(1, 10)
	g := s.ordered("billing")
	s.publish(0, "a")
	g.poll("c1", 1, "0:0=a")
	_, err := g.tryAckOffset("c2", 0, 0)
	s.refused(core.CodeNotInFlight, err)
	g.cursor(0, 0, 1, 1)
	g.ackOffset("c1", 0, 0)
}

func nackOffset(s *script) {
	s.topic(2, 10)
	g := s.ordered("billing")
	s.publish(0, "a", "b", "c")
	s.publish(1, "x", "y")
	batch := g.pollLike(ask("c1", 10)).Receipt
	got, err := g.tryNackOffset(batch, 0, 1)
	s.ok("Nack", err)
	if len(got.Cursors) != 1 || got.Cursors[0] != (core.CursorPlace{}) {
		s.Errorf("the nack says %+v, want partition 0 at 0", got.Cursors)
	}
	g.cursor(1, 0, 2, 2)
	again := g.poll("c1", 10, "0:0=a 0:1=b#2 0:2=c")
	g.ack(again.Receipt)
	if got, err = g.tryAck(batch); err != nil || len(got.Stale) != 0 {
		s.Errorf("the rest of the batch: %+v, %v", got, err)
	}
	g.cursor(1, 2, 2, 0)
}
