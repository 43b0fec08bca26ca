package enginetest

import (
	"context"
	"fmt"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

var fairTests = []test{
	{"G16 a poll starts after the partition served last", denseOffsets, turns},
	{"G16 a busy partition does not starve the others", denseOffsets, busyPartition},
	{"G16 a batch takes turns among more than it may draw from", denseOffsets, sixteenPartitions},
	{"G16 publishers are served in order", exactEngine, publishersInOrder},
	{"G16 a newcomer does not overtake publishers that wait", exactEngine, noOvertaking},
	{"G16 publishers that leave make way", exactEngine, publisherLeaves},
	{"G16 a batch over several partitions may be overtaken and holds nobody up", exactEngine, batchOvertaken},
}

func turns(s *script) {
	s.topic(4, 10)
	s.eachType(func(g *group) {
		for p := range 4 {
			s.publish(p, "a", "b", "c")
		}
		var order []int
		for range 12 {
			b := g.pollLike(ask("c1", 1))
			if len(b.Deliveries) != 1 {
				s.Fatalf("%s got %q after %v", g.name, list(b.Deliveries), order)
			}
			order = append(order, b.Deliveries[0].Partition)
			g.ack(b.Receipt)
		}
		for i := 1; i < len(order); i++ {
			if order[i] != (order[i-1]+1)%4 {
				s.Errorf("%s was served %v, want the partitions in turn", g.name, order)
				break
			}
		}
	})
}

func busyPartition(s *script) {
	s.topic(3, 1000)
	g := s.ordered("billing")
	s.publish(2, "quiet")
	for i := range 30 {
		s.publish(0, fmt.Sprint(i))
		s.publish(1, fmt.Sprint(i))
	}
	for range 3 {
		b := g.pollLike(ask("c1", 10))
		for _, d := range b.Deliveries {
			if string(d.Payload()) == "quiet" {
				return
			}
		}
		g.ack(b.Receipt)
	}
	s.Error("three polls of three partitions did not serve the quiet one")
}

func sixteenPartitions(s *script) {
	const partitions = 40
	s.topic(partitions, 10)
	g := s.ordered("billing")
	for p := range partitions {
		s.publish(p, "m")
	}
	seen := make(map[int]bool)
	for polls := 0; len(seen) < partitions; polls++ {
		b := g.pollLike(ask("c1", partitions))
		in := make(map[int]bool)
		for _, d := range b.Deliveries {
			if seen[d.Partition] {
				s.Fatalf("partition %d was served twice", d.Partition)
			}
			in[d.Partition], seen[d.Partition] = true, true
		}
		if len(in) > core.MaxPollPartitions || len(in) == 0 {
			s.Fatalf("a batch draws from %d partitions, want 1 to %d", len(in), core.MaxPollPartitions)
		}
		if polls > partitions/8 {
			s.Fatalf("%d polls served %d partitions", polls, len(seen))
		}
	}
}

func publishersInOrder(s *script) {
	s.topic(1, 1)
	g := s.ordered("billing")
	s.publish(0, "full")
	var waiting []*call[[]core.Placement]
	for i := range 5 {
		waiting = append(waiting, s.parkPublish(0, core.MaxWait, fmt.Sprint(i)))
	}
	for i, w := range waiting {
		b := g.pollLike(ask("c1", 1))
		g.ack(b.Receipt)
		if placed := w.result(); placed[0].Offset != int64(i+1) {
			s.Errorf("publisher %d was placed %v, want offset %d", i, placed, i+1)
		}
		for _, later := range waiting[i+1:] {
			later.parked()
		}
	}
}

func noOvertaking(s *script) {
	s.topic(1, 2)
	g := s.ordered("billing")
	s.publish(0, "a", "b")
	large := s.parkPublish(0, core.MaxWait, "c", "d") // needs two places
	b := g.poll("c1", 1, "0:0=a")
	g.ack(b.Receipt)
	large.parked()
	_, err := s.tryPublish(s.Context(), 0, 0, "newcomer") // would fit, but others wait
	s.refused(core.CodePartitionFull, err)
	later := s.parkPublish(0, core.MaxWait, "e")
	b = g.poll("c1", 1, "0:1=b")
	g.ack(b.Receipt)
	large.result()
	later.parked()
	b = g.poll("c1", 10, "0:2=c 0:3=d")
	g.ack(b.Receipt)
	later.result()
	g.poll("c1", 10, "0:4=e")
}

func publisherLeaves(s *script) {
	s.topic(1, 2)
	g := s.ordered("billing")
	s.publish(0, "a", "b")
	large := s.parkPublish(0, time.Second, "c", "d")
	small := s.parkPublish(0, core.MaxWait, "e")
	b := g.poll("c1", 1, "0:0=a")
	g.ack(b.Receipt)
	small.parked()
	s.pass(time.Second) // the large one gives up, so the small one fits
	large.failed(core.CodePartitionFull)
	if placed := small.result(); placed[0].Offset != 2 {
		s.Errorf("placed %v, want offset 2", placed)
	}
	large = s.parkPublish(0, core.MaxWait, "f", "g")
	small = s.parkPublish(0, core.MaxWait, "h")
	b = g.poll("c1", 1, "0:1=b")
	g.ack(b.Receipt)
	small.parked()
	large.abandon()
	small.result()
}

func batchOvertaken(s *script) {
	s.topic(2, 1)
	g := s.group("billing", core.GroupSpec{})
	s.publish(0, "a")
	s.publish(1, "b")
	req := s.batch(2, 0, 1)
	req.Wait = core.MaxWait
	batch := begin(s, func(ctx context.Context) ([]core.Placement, error) {
		return s.engine.Publish(ctx, s.topicName, &req, nil)
	})
	batch.parked()
	take := func(partition int) {
		s.Helper()
		one := ask("c1", 1)
		one.Partition = partition
		g.ack(g.pollLike(one).Receipt)
	}
	take(0)
	batch.parked()                                // 1 is full still
	single := s.parkPublish(1, core.MaxWait, "c") // nobody is held up by the batch
	s.publish(0, "overtakes")
	take(1)
	single.result()
	batch.parked()
	take(0)
	batch.parked()
	take(1)
	if placed := batch.result(); len(placed) != 2 {
		s.Errorf("the batch was placed %v", placed)
	}
	s.state(0, "log 2..2, backlog 1/1, billing committed 2 next 2")
	s.state(1, "log 2..2, backlog 1/1, billing committed 2 next 2")
}
