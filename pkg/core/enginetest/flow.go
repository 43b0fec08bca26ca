package enginetest

import (
	"fmt"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

var flowTests = []test{
	{"G12 start is the slowest committed, and what is below it is gone", denseOffsets, startIsSlowest},
	{"G12 deleting a group releases its backlog", exactCapacity, deleteReleases},
	{"G12 capacity counts every partition for itself", exactCapacity, capacityEach},
	{"G13 a publish waits at most its wait", virtualTime, publishWaits},
	{"G13 a publish that waits is stored as soon as there is room", exactCapacity, publishWakes},
	{"G13 a poll waits exactly its wait", virtualTime, pollWaits},
	{"G13 deleting the topic ends what waits on it", exactCapacity, deleteTopicParked},
	{"G13 deleting the group ends the polls that wait in it", exactCapacity, deleteGroupParked},
	{"G13 deleting the slowest group wakes the publishers that wait for it", exactCapacity, deleteGroupWakes},
	{"G14 a slow group holds back only publishers of its own partitions", exactCapacity, slowGroup},
	{"A publish without a key goes round the partitions with room", exactCapacity, withoutKey},
	{"A key decides the partition, an empty key too", exactCapacity, keyDecides},
	{"A named partition overrides the key", denseOffsets, partitionOverrides},
}

func startIsSlowest(s *script) {
	s.topic(1, 10)
	a, b, c := s.ordered("a"), s.ordered("b"), s.queue("c")
	for i := range 5 {
		s.publish(0, fmt.Sprint(i))
	}
	upto := func(g *group, r core.Receipt, offset int64) {
		s.Helper()
		_, err := g.tryAckUpto(r, 0, offset)
		s.ok("Ack", err)
	}
	ra, rb, rc := a.pollLike(ask("c1", 10)).Receipt, b.pollLike(ask("c1", 10)).Receipt, c.pollLike(ask("c1", 10)).Receipt
	upto(a, ra, 3)
	s.state(0, "log 0..4, backlog 5/10, a committed 4 next 5, b committed 0 next 5, c committed 0 next 5")
	c.ack(rc)
	upto(b, rb, 1)
	s.state(0, "log 2..4, backlog 3/10, a committed 4 next 5, b committed 2 next 5, c committed 5 next 5")
	upto(b, rb, 4)
	s.state(0, "log 4..4, backlog 1/10, a committed 4 next 5, b committed 5 next 5, c committed 5 next 5")
	perMessage := int64(len("4") + core.MessageOverhead)
	if got := s.stats().Partitions[0].Bytes; got != perMessage {
		s.Errorf("one message of 1 byte counts %d bytes, want %d", got, perMessage)
	}
	a.ack(ra)
	st := s.engine.Stats()
	if got := st.Topics[0].Partitions[0].Bytes; got != 0 || st.MemoryBytes != 0 {
		s.Errorf("nothing is held, but %d bytes in the partition and %d in all are counted", got, st.MemoryBytes)
	}
	if st.MemoryLimit != scriptBytes {
		s.Errorf("the memory limit is %d, want %d", st.MemoryLimit, scriptBytes)
	}
}

func deleteReleases(s *script) {
	s.topic(1, 2)
	slow, fast := s.ordered("slow"), s.ordered("fast")
	s.publish(0, "a", "b")
	fast.ack(fast.poll("c1", 10, "0:0=a 0:1=b").Receipt)
	_, err := s.tryPublish(s.Context(), 0, 0, "c")
	s.refused(core.CodePartitionFull, err)
	s.names(err, "slow")
	s.ok("DeleteGroup", s.engine.DeleteGroup(s.Context(), s.topicName, slow.name))
	s.state(0, "log empty at 2, backlog 0/2, fast committed 2 next 2")
	s.publish(0, "c")
}

func capacityEach(s *script) {
	s.topic(2, 2)
	s.ordered("billing")
	s.publish(0, "a", "b")
	s.publish(1, "c")
	_, err := s.tryPublish(s.Context(), 0, 0, "x")
	s.refused(core.CodePartitionFull, err)
	s.publish(1, "d")
	_, err = s.tryPublish(s.Context(), 0, 1, "x")
	s.refused(core.CodePartitionFull, err)
}

func publishWaits(s *script) {
	s.topic(1, 1)
	s.ordered("billing")
	s.publish(0, "a")
	began := time.Now()
	waiting := s.parkPublish(0, 7*time.Second, "b")
	s.pass(7*time.Second - 1)
	waiting.parked()
	s.pass(1)
	err := waiting.failed(core.CodePartitionFull)
	s.names(err, "billing")
	if took := waiting.at.Sub(began); took != 7*time.Second {
		s.Errorf("it waited %v, want 7s", took)
	}
	s.state(0, "log 0..0, backlog 1/1, billing committed 0 next 0")
	if h := s.stats().PublishWait; h.Count() != 1 || h.Sum != 7*time.Second {
		s.Errorf("%d publishes had to wait, %v in all; want one, 7s", h.Count(), h.Sum)
	}
}

func publishWakes(s *script) {
	s.topic(1, 1)
	g := s.ordered("billing")
	s.publish(0, "a")
	waiting := s.parkPublish(0, core.MaxWait, "b")
	if n := s.stats().Publishing; n != 1 {
		s.Errorf("%d publishers wait, want 1", n)
	}
	g.ack(g.poll("c1", 1, "0:0=a").Receipt)
	if placed := waiting.result(); len(placed) != 1 || placed[0] != (core.Placement{Partition: 0, Offset: 1}) {
		s.Errorf("placed %v, want offset 1", placed)
	}
	if n := s.stats().Publishing; n != 0 {
		s.Errorf("%d publishers wait, want none", n)
	}
}

func pollWaits(s *script) {
	s.topic(1, 10)
	g, q := s.ordered("billing"), s.queue("jobs")
	for _, wait := range []time.Duration{0, time.Millisecond, 5 * time.Second, core.MaxWait} {
		for _, in := range []*group{g, q} {
			req := ask("c1", 10)
			req.Wait = wait
			began := time.Now()
			in.got(in.pollLike(req), "")
			if took := time.Since(began); took != wait {
				s.Errorf("a poll of %s that waits %v took %v", in.name, wait, took)
			}
		}
	}
}

func deleteTopicParked(s *script) {
	s.topic(1, 1)
	g, q := s.ordered("billing"), s.queue("jobs")
	s.publish(0, "a")
	g.poll("c1", 1, "0:0=a")
	q.poll("c1", 1, "0:0=a")
	polls := []*call[core.Batch]{g.park("c1", 1, core.MaxWait), g.park("c2", 1, core.MaxWait), q.park("c1", 1, core.MaxWait)}
	publish := s.parkPublish(0, core.MaxWait, "b")
	s.ok("DeleteTopic", s.engine.DeleteTopic(s.Context(), s.topicName))
	for _, p := range polls {
		p.failed(core.CodeUnknownTopic)
	}
	publish.failed(core.CodeUnknownTopic)
	if st := s.engine.Stats(); len(st.Topics) != 0 || st.MemoryBytes != 0 || st.LeasesOut != 0 {
		s.Errorf("of a deleted topic is left: %+v", st)
	}
}

func deleteGroupParked(s *script) {
	s.topic(1, 1)
	g, other := s.ordered("billing"), s.ordered("email")
	one, two, stays := g.park("c1", 1, core.MaxWait), g.park("c2", 1, core.MaxWait), other.park("c1", 1, core.MaxWait)
	s.ok("DeleteGroup", s.engine.DeleteGroup(s.Context(), s.topicName, g.name))
	one.failed(core.CodeUnknownGroup)
	two.failed(core.CodeUnknownGroup)
	s.publish(0, "a")
	other.got(stays.result(), "0:0=a")
}

func deleteGroupWakes(s *script) {
	s.topic(1, 1)
	g := s.ordered("billing")
	s.publish(0, "a")
	g.poll("c1", 1, "0:0=a")
	waiting := s.parkPublish(0, core.MaxWait, "b")
	s.ok("DeleteGroup", s.engine.DeleteGroup(s.Context(), s.topicName, g.name))
	waiting.result()
	s.state(0, "log empty at 2, backlog 0/1")
	if n := s.engine.Stats().LeasesOut; n != 0 {
		s.Errorf("%d leases are out of a deleted group", n)
	}
}

func slowGroup(s *script) {
	s.topic(2, 1)
	slow, fast := s.ordered("slow"), s.ordered("fast")
	s.publish(0, "a")
	fast.ack(fast.poll("c1", 1, "0:0=a").Receipt)
	held := s.parkPublish(0, core.MaxWait, "b") // by slow
	for i := range 3 {                          // the other partition goes on, for slow too
		s.publish(1, fmt.Sprint(i))
		one := ask("c1", 1)
		one.Partition = 1
		for _, g := range []*group{slow, fast} {
			g.ack(g.got(g.pollLike(one), fmt.Sprintf("1:%d=%d", i, i)).Receipt)
		}
	}
	other := s.on("payments")
	other.topic(1, 1)
	other.publish(0, "x")
	if !s.features.RealTime {
		held.parked()
	}
	slow.ack(slow.poll("c1", 1, "0:0=a").Receipt)
	held.result()
}

func withoutKey(s *script) {
	s.topic(3, 2)
	s.ordered("billing")
	s.publish(1, "x", "y") // no room left here
	seen := make(map[int]int)
	last := -1
	for range 4 {
		placed, err := s.tryPublish(s.Context(), 0, core.AnyPartition, "m")
		s.ok("Publish", err)
		if placed[0].Partition == last {
			s.Errorf("two in turn went to partition %d", last)
		}
		last = placed[0].Partition
		seen[last]++
	}
	if seen[0] != 2 || seen[2] != 2 {
		s.Errorf("four messages went to %v, want two to each of 0 and 2", seen)
	}
	_, err := s.tryPublish(s.Context(), 0, core.AnyPartition, "m")
	s.refused(core.CodePartitionFull, err)
	// It waits for any of them.
	waiting := s.parkPublish(core.AnyPartition, core.MaxWait, "n")
	g := &group{s, "billing", false}
	one := ask("c1", 1)
	one.Partition = 2
	b := g.pollLike(one)
	g.ack(b.Receipt)
	if placed := waiting.result(); placed[0].Partition != 2 {
		s.Errorf("room in partition 2, but placed %v", placed)
	}
}

func keyDecides(s *script) {
	s.topic(4, 10)
	for _, key := range []string{"", "user-a", "user-b", "\x00", "\xff\xfe"} {
		want := core.PartitionFor([]byte(key), 4)
		for range 2 {
			placed, err := s.tryPublishKey(key, "m")
			s.ok("Publish", err)
			if placed[0].Partition != want {
				s.Errorf("key %q went to partition %d, want %d", key, placed[0].Partition, want)
			}
		}
	}
}

func partitionOverrides(s *script) {
	s.topic(4, 10)
	m := s.message(core.Content{Key: []byte("user-a"), HasKey: true})
	want := (core.PartitionFor([]byte("user-a"), 4) + 1) % 4
	placed, err := s.engine.Publish(s.Context(), s.topicName, &core.PublishRequest{Messages: []core.Message{m, m}, Partition: want}, nil)
	s.ok("Publish", err)
	for i, p := range placed {
		if p != (core.Placement{Partition: want, Offset: int64(i)}) {
			s.Errorf("message %d was placed %v, want offset %d of %d", i, p, i, want)
		}
	}
}
