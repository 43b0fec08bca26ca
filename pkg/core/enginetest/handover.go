package enginetest

import (
	"fmt"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

var handoverTests = []test{
	{"G11 a partition moves when its batch is settled", denseOffsets, handoverSettled},
	{"G11 a partition moves when its batch is nacked", denseOffsets, handoverNacked},
	{"G11 a partition moves at the end of the lease", virtualTime, handoverLease},
	{"G11 the old owner may extend until the hand-over", virtualTime, handoverExtend},
	{"G11 only the partitions that must move do", denseOffsets, handoverOnlyThose},
	{"G11 a settled part of a batch does not move the partition", denseOffsets, handoverPart},
	{"G11 a partition without a batch moves at once", denseOffsets, handoverAtOnce},
	{"G11 an answer that is given back moves its partition", denseOffsets, handoverGivenBack},
	{"G11 a partition that comes back before it moved stays", denseOffsets, handoverCalledOff},
}

// handover makes c1 hold both partitions with a batch out, of which partition 1
// must go to c2.
func handover(s *script) (g *group, old core.Receipt) {
	s.topic(2, 10)
	g = s.group("billing", core.GroupSpec{Strategy: core.Some(core.RoundRobin), SessionTimeout: core.Some(time.Hour)})
	s.publish(0, "a", "b")
	s.publish(1, "x", "y")
	b := g.pollLike(ask("c1", 10))
	if len(b.Deliveries) != 4 {
		s.Fatalf("c1 got %s, want all four", list(b.Deliveries))
	}
	g.join("c2")
	g.members("c1:0 c2:1")
	g.owners("c1 c1") // drain first
	return g, b.Receipt
}

func handoverSettled(s *script) {
	g, old := handover(s)
	waiting := g.park("c2", 10, time.Minute)
	s.publish(1, "z")
	if !s.features.RealTime {
		waiting.parked() // x and y are out
	}
	if _, err := g.tryAckUpto(old, 1, 1); err != nil {
		s.Fatalf("the old owner's ack: %v", err)
	}
	g.got(waiting.result(), "1:2=z")
	g.owners("c1 c2")
	g.ack(old) // its other partition is still good, and 1 is done
	g.cursor(0, 2, 2, 0)
}

func handoverNacked(s *script) {
	g, old := handover(s)
	waiting := g.park("c2", 10, time.Minute)
	_, err := g.tryNackOffset(old, 1, 0)
	s.ok("the old owner's nack", err)
	g.got(waiting.result(), "1:0=x#2 1:1=y")
	got, err := g.tryAck(old)
	s.ok("Ack of the rest", err)
	if want := []core.StaleRange{{Partition: 1, From: 0, To: 2}}; fmt.Sprint(got.Stale) != fmt.Sprint(want) {
		s.Errorf("stale is %v, want %v", got.Stale, want)
	}
}

func handoverLease(s *script) {
	g, old := handover(s)
	waiting := g.park("c2", 10, time.Minute)
	s.pass(defaults.AckTimeout - 1)
	waiting.parked()
	g.owners("c1 c1")
	s.pass(1)
	g.got(waiting.result(), "1:0=x#2 1:1=y#2")
	_, err := g.tryAckUpto(old, 1, 1)
	s.refused(core.CodeStaleReceipt, err)
}

func handoverExtend(s *script) {
	g, old := handover(s)
	waiting := g.park("c2", 10, time.Minute)
	s.pass(defaults.AckTimeout - 1)
	g.extend(old, 10*time.Second)
	s.pass(10*time.Second - 1)
	waiting.parked()
	g.owners("c1 c1")
	g.ack(old)
	g.owners("c1 c2")
	_, err := g.tryExtend(old, core.Some(time.Second))
	if err != nil && core.CodeOf(err) != core.CodeStaleReceipt {
		s.Errorf("extending what is done: %v", err)
	}
	g.cursor(1, 2, 2, 0)
}

func handoverOnlyThose(s *script) {
	s.topic(4, 10)
	g := s.ordered("billing")
	for p := range 4 {
		s.publish(p, "a")
	}
	old := g.pollLike(ask("c1", 10)).Receipt
	g.join("c2")
	moved := g.look().Members[1].Partitions
	if len(moved) != 2 {
		s.Fatalf("c2 is assigned %v, want two", moved)
	}
	g.ack(old)
	for p, c := range g.look().Cursors {
		want := "c1"
		if p == moved[0] || p == moved[1] {
			want = "c2"
		}
		if c.Owner != want {
			s.Errorf("partition %d is held by %q, want %s", p, c.Owner, want)
		}
	}
}

func handoverPart(s *script) {
	g, old := handover(s)
	_, err := g.tryAckUpto(old, 1, 0)
	s.ok("Ack", err)
	g.owners("c1 c1")
	g.poll("c2", 10, "")
	_, err = g.tryAckUpto(old, 1, 1)
	s.ok("Ack", err)
	g.owners("c1 c2")
}

func handoverAtOnce(s *script) {
	s.topic(2, 10)
	g := s.group("billing", roundRobin)
	g.join("c1")
	g.join("c2")
	g.owners("c1 c2")
	s.publish(1, "a")
	waiting := g.park("c1", 10, time.Minute)
	g.leave("c2")
	g.got(waiting.result(), "1:0=a")
}

func handoverGivenBack(s *script) {
	g, old := handover(s)
	waiting := g.park("c2", 10, time.Minute)
	g.giveBack(old)
	g.got(waiting.result(), "1:0=x 1:1=y")
	g.poll("c1", 10, "0:0=a 0:1=b")
}

func handoverCalledOff(s *script) {
	g, old := handover(s)
	g.leave("c2")
	g.members("c1:0,1")
	g.ack(old) // it never left c1
	g.owners("c1 c1")
	s.publish(1, "z")
	g.poll("c1", 10, "1:2=z")
}
