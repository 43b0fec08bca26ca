package enginetest

import (
	"time"

	"github.com/podmq/podmq/pkg/core"
)

var orderTests = []test{
	{"G6 a message waits while an earlier one of its partition is unsettled", denseOffsets, orderHolds},
	{"G6 order holds across nack, lease end and leaving", virtualTime, orderAcross},
	{"G6 order holds across a rebalance", virtualTime, orderRebalance},
	{"G6 order holds while draining", denseOffsets, orderDrain},
	{"G7 a queue group hands out later messages while earlier ones are out", denseOffsets, queueRunsAhead},
}

func orderHolds(s *script) {
	s.topic(2, 10)
	g := s.ordered("billing")
	s.publish(0, "a", "b", "c")
	first := g.poll("c1", 1, "0:0=a")
	g.poll("c1", 10, "")
	s.publish(1, "x")
	other := g.poll("c1", 10, "1:0=x") // another partition does not wait
	g.ack(other.Receipt)
	g.ack(first.Receipt)
	rest := g.poll("c1", 10, "0:1=b 0:2=c")
	_, err := g.tryAckUpto(rest.Receipt, 0, 1)
	s.ok("Ack", err)
	s.publish(0, "d")
	g.poll("c1", 10, "") // c is still out
	g.ack(rest.Receipt)
	g.poll("c1", 10, "0:3=d")
}

func orderAcross(s *script) {
	s.topic(1, 10)
	g := s.ordered("billing")
	s.publish(0, "a", "b", "c")
	got := g.poll("c1", 2, "0:0=a 0:1=b")
	g.nack(got.Receipt)
	got = g.poll("c1", 2, "0:0=a#2 0:1=b")
	s.pass(defaults.AckTimeout)
	got = g.poll("c1", 10, "0:0=a#3")
	g.ack(got.Receipt)
	got = g.poll("c1", 10, "0:1=b#2 0:2=c")
	g.leave("c1")
	g.poll("c2", 10, "0:1=b#2 0:2=c")
}

func orderRebalance(s *script) {
	s.topic(1, 10)
	g := s.ordered("billing")
	s.publish(0, "a", "b", "c")
	got := g.poll("c1", 1, "0:0=a")
	waiting := g.park("c2", 10, time.Minute)
	g.leave("c1") // c2 is the only one left
	again := g.got(waiting.result(), "0:0=a 0:1=b 0:2=c")
	_, err := g.tryAck(got.Receipt)
	s.refused(core.CodeStaleReceipt, err)
	g.ack(again.Receipt)
}

func orderDrain(s *script) {
	s.topic(1, 10)
	g := s.ordered("billing")
	s.publish(0, "a", "b")
	got := g.poll("c1", 1, "0:0=a")
	s.engine.Drain()
	_, err := g.tryPoll(s.Context(), ask("c1", 10))
	s.refused(core.CodeDraining, err) // b is there, but a is out
	g.ack(got.Receipt)
	g.poll("c1", 10, "0:1=b")
}

func queueRunsAhead(s *script) {
	s.topic(1, 10)
	g := s.queue("jobs")
	s.publish(0, "a", "b", "c")
	a := g.poll("c1", 1, "0:0=a")
	b := g.poll("c1", 1, "0:1=b")
	g.ack(b.Receipt)
	c := g.poll("c2", 10, "0:2=c")
	g.cursor(0, 0, 3, 2)
	g.nack(a.Receipt)
	g.poll("c2", 10, "0:0=a#2")
	g.ack(c.Receipt)
	g.cursor(0, 0, 3, 1)
}
