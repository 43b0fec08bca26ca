package enginetest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

var deliveryTests = []test{
	{"G1 every group gets every message until it is acked", denseOffsets, everyGroup},
	{"G1 a group is created at one instant across all partitions", Features{RealTime: true, SplitBatches: true, OffsetGaps: true}, oneInstant},
	{"G2 a group sees what is appended after it was created", denseOffsets, startLatest},
	{"G2 a group that starts earliest sees what is held", denseOffsets, startEarliest},
	{"G3 an answer that could not be written comes back at once", denseOffsets, answerLost},
	{"G3 an answer that could not be written comes back in a queue group", denseOffsets, answerLostQueue},
	{"G3 what a crashed member had comes back when its lease ends", virtualTime, crashed},
	{"G4 an acked message is never handed out again", virtualTime, ackedNever},
	{"G5 a refused publish stores nothing", exactCapacity, refusedPublish},
	{"G5 a batch is stored whole or not at all", wholeBatches, wholeOrNothing},
	{"G5 a batch that can never fit says so", exactCapacity, neverFits},
	{"G5 a publish whose caller went away is not stored", exactCapacity, callerGone},
	{"G12 without a group nothing is kept", denseOffsets, noGroup},
}

func everyGroup(s *script) {
	s.topic(1, 10)
	a, b := s.ordered("a"), s.queue("b")
	s.publish(0, "x", "y")
	gotA := a.poll("c1", 10, "0:0=x 0:1=y")
	gotB := b.poll("c1", 10, "0:0=x 0:1=y")
	a.ack(gotA.Receipt)
	s.state(0, "log 0..1, backlog 2/10, a committed 2 next 2, b committed 0 next 2")
	b.nack(gotB.Receipt)
	gotB = b.poll("c1", 10, "0:0=x#2 0:1=y")
	b.ack(gotB.Receipt)
	a.poll("c1", 10, "")
	b.poll("c1", 10, "")
	s.state(0, "log empty at 2, backlog 0/10, a committed 2 next 2, b committed 2 next 2")
}

// Batches of one message a partition are stored whole, so at any instant all
// partitions end at the same offset: so must the cursors of a new group.
func oneInstant(s *script) {
	const partitions, batches, groups = 4, 300, 60
	s.topic(partitions, batches)
	s.ordered("keeper")
	var all sync.WaitGroup
	all.Go(func() {
		for range batches {
			var ms []core.Message
			for p := range partitions {
				m, err := core.NewMessage(&core.Content{Key: keyFor(p, partitions), HasKey: true}, 100)
				if err != nil {
					s.Errorf("NewMessage: %v", err)
					return
				}
				ms = append(ms, m)
			}
			req := core.PublishRequest{Messages: ms, Partition: core.AnyPartition}
			if _, err := s.engine.Publish(s.Context(), s.topicName, &req, nil); err != nil {
				s.Errorf("Publish: %v", err)
				return
			}
		}
	})
	for i := range groups {
		name := fmt.Sprintf("g%d", i)
		if _, err := s.engine.CreateGroup(s.Context(), s.topicName, name, core.GroupSpec{}); err != nil {
			s.Errorf("CreateGroup: %v", err)
			break
		}
		cursors := (&group{s, name, false}).look().Cursors
		for p, c := range cursors {
			if c.Committed != cursors[0].Committed {
				s.Errorf("%s begins at %d in partition %d and at %d in partition 0", name, c.Committed, p, cursors[0].Committed)
			}
		}
	}
	all.Wait()
}

// keyFor finds a key of the partition.
func keyFor(partition, partitions int) []byte {
	for i := 0; ; i++ {
		if key := fmt.Appendf(nil, "k%d", i); core.PartitionFor(key, partitions) == partition {
			return key
		}
	}
}

func startLatest(s *script) {
	s.topic(2, 10)
	s.ordered("first")
	s.publish(0, "a", "b")
	late := s.ordered("late")
	late.poll("c1", 10, "")
	late.cursor(0, 2, 2, 0)
	s.publish(0, "c")
	late.poll("c1", 10, "0:2=c")
}

func startEarliest(s *script) {
	s.topic(1, 10)
	first := s.ordered("first")
	s.publish(0, "a", "b", "c")
	got := first.poll("c1", 1, "0:0=a")
	first.ack(got.Receipt)
	for i, typ := range []core.GroupType{core.Ordered, core.Queue} {
		late := s.group(fmt.Sprintf("late%d", i), core.GroupSpec{Type: core.Some(typ), Start: core.Some(core.Earliest)})
		late.cursor(0, 1, 1, 2)
		late.poll("c1", 10, "0:1=b 0:2=c")
	}
}

func answerLost(s *script) {
	s.topic(1, 10)
	g := s.ordered("billing")
	s.publish(0, "a", "b")
	lost := g.poll("c1", 10, "0:0=a 0:1=b")
	waiting := g.park("c1", 10, time.Minute)
	g.giveBack(lost.Receipt)
	again := g.got(waiting.result(), "0:0=a 0:1=b")
	g.ack(again.Receipt)
	gs := g.look()
	if gs.Redelivered != (core.Redelivered{}) {
		s.Errorf("what was never read counts as redelivered: %+v", gs.Redelivered)
	}
	if gs.Acked != 2 {
		s.Errorf("%d are counted as acked, want 2", gs.Acked)
	}
	// Of what no longer counts nothing happens.
	g.giveBack(lost.Receipt)
	g.giveBack(again.Receipt)
	g.cursor(0, 2, 2, 0)
	g.poll("c1", 10, "")
}

func answerLostQueue(s *script) {
	s.topic(1, 10)
	g := s.queue("jobs")
	s.publish(0, "a", "b", "c")
	lost := g.poll("c1", 2, "0:0=a 0:1=b")
	_, err := g.tryAck(lost.Receipt.Message(0, 1))
	s.ok("Ack", err)
	g.giveBack(lost.Receipt)
	again := g.poll("c2", 10, "0:0=a 0:2=c")
	g.giveBack(lost.Receipt) // no longer counts: nothing comes back
	g.poll("c3", 10, "")
	g.ack(again.Receipt)
	g.cursor(0, 3, 3, 0)
}

func crashed(s *script) {
	s.topic(1, 10)
	g, q := s.ordered("billing"), s.queue("jobs")
	s.publish(0, "a", "b")
	g.poll("c1", 10, "0:0=a 0:1=b")
	q.poll("c1", 10, "0:0=a 0:1=b")
	s.pass(defaults.AckTimeout - 1)
	g.poll("c1", 10, "")
	q.poll("c2", 10, "")
	s.pass(1)
	g.poll("c1", 1, "0:0=a#2")
	q.poll("c2", 10, "0:0=a#2 0:1=b#2")
	if r := g.look().Redelivered; r != (core.Redelivered{Lease: 1}) {
		s.Errorf("one message came again after its lease: %+v", r)
	}
	if r := q.look().Redelivered; r != (core.Redelivered{Lease: 2}) {
		s.Errorf("two messages came again after their leases: %+v", r)
	}
}

func ackedNever(s *script) {
	s.topic(1, 10)
	g := s.ordered("billing")
	s.publish(0, "a", "b", "c")
	got := g.poll("c1", 10, "0:0=a 0:1=b 0:2=c")
	_, err := g.tryAckUpto(got.Receipt, 0, 0)
	s.ok("Ack", err)
	g.nack(got.Receipt)
	got = g.poll("c1", 10, "0:1=b#2 0:2=c")
	s.pass(defaults.AckTimeout)
	got = g.poll("c1", 1, "0:1=b#3")
	g.ack(got.Receipt)
	g.leave("c1")
	g.join("c2")
	got = g.poll("c2", 10, "0:2=c#2")
	g.ack(got.Receipt)
	g.poll("c2", 10, "")

	q := s.group("jobs", core.GroupSpec{Type: core.Some(core.Queue)})
	s.publish(0, "d", "e")
	got = q.poll("c1", 10, "0:3=d 0:4=e")
	_, err = q.tryAck(got.Receipt.Message(0, 4))
	s.ok("Ack", err)
	s.pass(defaults.AckTimeout)
	q.poll("c1", 10, "0:3=d#2")
	q.leave("c1")
	q.poll("c2", 10, "0:3=d#2")
}

func refusedPublish(s *script) {
	s.topic(1, 2)
	s.ordered("billing")
	s.publish(0, "a", "b")
	_, err := s.tryPublish(s.Context(), 0, 0, "c")
	s.refused(core.CodePartitionFull, err)
	s.names(err, "billing") // the slowest group
	if e := err.(*core.Error); !e.Retryable() || e.RetryAfter <= 0 {
		s.Errorf("a full partition: retryable %v after %v, want a time", e.Retryable(), e.RetryAfter)
	}
	_, err = s.tryPublish(s.Context(), 0, core.AnyPartition, "c")
	s.refused(core.CodePartitionFull, err)
	s.state(0, "log 0..1, backlog 2/2, billing committed 0 next 0")
	ts := s.stats()
	if ts.Published != 2 || len(ts.Rejected) != 1 || ts.Rejected[0] != (core.Rejection{Reason: core.CodePartitionFull, Count: 2}) {
		s.Errorf("published %d, rejected %+v; want 2, and 2 for %s", ts.Published, ts.Rejected, core.CodePartitionFull)
	}
}

// batch is messages with keys, one for each partition named.
func (s *script) batch(partitions int, in ...int) core.PublishRequest {
	s.Helper()
	req := core.PublishRequest{Partition: core.AnyPartition}
	for i, p := range in {
		c := core.Content{Key: keyFor(p, partitions), HasKey: true, Payload: fmt.Appendf(nil, "m%d", i)}
		req.Messages = append(req.Messages, s.message(c))
	}
	return req
}

func wholeOrNothing(s *script) {
	s.topic(3, 2)
	g := s.ordered("billing")
	s.publish(2, "a", "b")
	req := s.batch(3, 0, 1, 2)
	_, err := s.engine.Publish(s.Context(), s.topicName, &req, nil)
	s.refused(core.CodePartitionFull, err)
	for p := range 2 {
		s.state(p, "log empty at 0, backlog 0/2, billing committed 0 next 0")
	}
	got := g.poll("c1", 1, "2:0=a")
	g.ack(got.Receipt)

	before := []core.Placement{{Partition: 9, Offset: 9}}
	placed, err := s.engine.Publish(s.Context(), s.topicName, &req, before)
	s.ok("Publish", err)
	want := []core.Placement{{Partition: 9, Offset: 9}, {Partition: 0, Offset: 0}, {Partition: 1, Offset: 0}, {Partition: 2, Offset: 2}}
	if fmt.Sprint(placed) != fmt.Sprint(want) {
		s.Errorf("the batch went to %v, appended to %v: want %v", placed, before, want)
	}
	// Messages without a key find all room there is: 1 in each of 0 and 1.
	_, err = s.tryPublish(s.Context(), 0, core.AnyPartition, "x", "y", "z")
	s.refused(core.CodePartitionFull, err)
	_, err = s.tryPublish(s.Context(), 0, core.AnyPartition, "x", "y")
	s.ok("Publish into the last room", err)
	for p := range 3 {
		if b := s.stats().Partitions[p].Backlog; b != 2 {
			s.Errorf("partition %d holds %d, want all full with 2", p, b)
		}
	}
}

func neverFits(s *script) {
	s.topic(2, 2)
	s.ordered("billing")
	_, err := s.tryPublish(s.Context(), time.Minute, 0, "a", "b", "c")
	s.refused(core.CodeBatchExceedsCapacity, err)
	req := s.batch(2, 1, 0, 1, 1)
	_, err = s.engine.Publish(s.Context(), s.topicName, &req, nil)
	s.refused(core.CodeBatchExceedsCapacity, err)
	_, err = s.tryPublish(s.Context(), 0, core.AnyPartition, "a", "b", "c", "d", "e")
	s.refused(core.CodeBatchExceedsCapacity, err)
	for p := range 2 {
		s.state(p, "log empty at 0, backlog 0/2, billing committed 0 next 0")
	}
}

func callerGone(s *script) {
	s.topic(1, 1)
	g := s.ordered("billing")
	s.publish(0, "a")
	gone := s.parkPublish(0, time.Minute, "gone")
	stays := s.parkPublish(0, time.Minute, "stays")
	gone.abandon()
	got := g.poll("c1", 10, "0:0=a")
	g.ack(got.Receipt)
	if placed := stays.result(); placed[0].Offset != 1 {
		s.Errorf("the one that stayed was placed %v, want offset 1", placed)
	}
	g.poll("c1", 10, "0:1=stays")

	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	if _, err := s.tryPublish(ctx, time.Minute, 0, "gone"); err == nil {
		s.Error("a publish of a caller who was gone before is taken into a full partition")
	}
	if n := s.stats().Publishing; n != 0 {
		s.Errorf("%d publishers wait, want none", n)
	}
}

func noGroup(s *script) {
	s.topic(1, 2)
	s.publish(0, "a", "b", "c", "d")
	s.state(0, "log empty at 4, backlog 0/2")
	if ts := s.stats(); ts.WithoutGroup != 4 || ts.Published != 4 {
		s.Errorf("without a group: %d of %d, want 4 of 4", ts.WithoutGroup, ts.Published)
	}
	g := s.group("late", core.GroupSpec{Start: core.Some(core.Earliest)})
	s.publish(0, "e")
	g.poll("c1", 10, "0:4=e")
	if n := s.stats().WithoutGroup; n != 4 {
		s.Errorf("%d count as published without a group, want 4 as before", n)
	}
}
