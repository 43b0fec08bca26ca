package enginetest

import (
	"time"

	"github.com/podmq/podmq/pkg/core"
)

var attemptTests = []test{
	{"G18 a nack counts for the first unsettled of each partition", denseOffsets, nackCounts},
	{"G18 a nack that names an offset counts for that one only", denseOffsets, nackOffsetCounts},
	{"G18 a lease end counts for all that it hands back", virtualTime, leaseCounts},
	{"G18 leaving, rebalance, shutdown and a lost answer never count", virtualTime, neverCounts},
	{"G18 from its third attempt on a message is handed out alone", denseOffsets, handedOutAlone},
	{"G18 in a queue group too it is handed out alone", denseOffsets, queueAlone},
	{"G18 a message that is done is forgotten", denseOffsets, forgotten},
	{"Backoff: at once after the first failure, then 100 ms doubling to 30 s", virtualTime, backoff},
	{"Backoff is for nacks, a lease end brings back at once", virtualTime, leaseNoBackoff},
	{"Backoff holds the whole partition of an ordered group", virtualTime, backoffHolds},
	{"Backoff holds one message of a queue group", virtualTime, backoffQueue},
	{"A nack's own delay goes before the backoff", virtualTime, ownDelay},
	{"A delay out of bounds is refused", denseOffsets, delayBounds},
}

func nackCounts(s *script) {
	s.topic(2, 10)
	g := s.ordered("billing")
	s.publish(0, "a", "b", "c")
	s.publish(1, "x", "y")
	r := g.pollLike(ask("c1", 10)).Receipt
	_, err := g.tryAckUpto(r, 0, 0)
	s.ok("Ack", err)
	got := g.nack(r)
	if len(got.Cursors) != 2 || got.Lease != 0 {
		s.Errorf("the nack says %+v, want two cursors and no lease", got)
	}
	one := ask("c1", 10)
	for p, want := range []string{"0:1=b#2 0:2=c", "1:0=x#2 1:1=y"} {
		one.Partition = p
		g.got(g.pollLike(one), want)
	}
	if r := g.look().Redelivered; r != (core.Redelivered{Nack: 4}) {
		s.Errorf("four came again after a nack: %+v", r)
	}
}

func nackOffsetCounts(s *script) {
	s.topic(1, 10)
	g, q := s.ordered("billing"), s.queue("jobs")
	s.publish(0, "a", "b", "c")
	r := g.poll("c1", 10, "0:0=a 0:1=b 0:2=c").Receipt
	_, err := g.tryNackOffset(r, 0, 2)
	s.ok("Nack", err)
	g.poll("c1", 10, "0:0=a 0:1=b 0:2=c#2")

	r = q.poll("c1", 10, "0:0=a 0:1=b 0:2=c").Receipt
	_, err = q.tryNackOffset(r, 0, 1)
	s.ok("Nack", err)
	q.poll("c1", 10, "0:0=a 0:1=b#2 0:2=c")
}

func leaseCounts(s *script) {
	s.topic(1, 10)
	g := s.ordered("billing")
	s.publish(0, "a", "b", "c")
	r := g.poll("c1", 10, "0:0=a 0:1=b 0:2=c").Receipt
	_, err := g.tryAckUpto(r, 0, 0)
	s.ok("Ack", err)
	s.pass(defaults.AckTimeout)
	g.poll("c1", 10, "0:1=b#2 0:2=c#2")
}

func neverCounts(s *script) {
	s.topic(1, 10)
	g := s.ordered("billing")
	s.publish(0, "a")
	for range 3 {
		g.poll("c1", 1, "0:0=a")
		g.leave("c1")
		b := g.poll("c2", 1, "0:0=a")
		g.giveBack(b.Receipt)
		b = g.poll("c2", 1, "0:0=a")
		g.join("c3")
		g.leave("c2") // the partition goes to c3
		g.poll("c3", 1, "0:0=a")
		g.leave("c3")
	}
	s.engine.Drain()
	g.poll("c1", 1, "0:0=a")
}

func handedOutAlone(s *script) {
	s.topic(2, 10)
	g := s.ordered("billing")
	s.publish(0, "a", "bad", "c")
	s.publish(1, "x")
	fail := func(want string) {
		s.Helper()
		r := g.poll("c1", 10, want).Receipt
		_, err := g.tryNack(core.NackRequest{Receipt: r, Partition: core.Some(0), Offset: core.Some(int64(1)), Delay: core.Some(time.Duration(0))})
		s.ok("Nack", err)
		_, err = g.tryAckUpto(r, 1, 0)
		if code := core.CodeOf(err); code != "" && code != core.CodeInvalidRequest {
			s.Fatalf("Ack: %v", err)
		}
	}
	fail("0:0=a 0:1=bad 0:2=c 1:0=x")
	fail("0:0=a 0:1=bad#2 0:2=c")
	s.publish(1, "y")
	// A third attempt: what lies before it comes without it, and other partitions do not ride along.
	before := ask("c1", 10)
	before.Partition = 0
	g.ack(g.got(g.pollLike(before), "0:0=a").Receipt)
	seen := ""
	for range 2 {
		b := g.pollLike(ask("c1", 10))
		seen += list(b.Deliveries) + ";"
		g.ack(b.Receipt)
	}
	if seen != "0:1=bad#3;1:1=y 0:2=c;" && seen != "0:1=bad#3;0:2=c 1:1=y;" && seen != "1:1=y;0:1=bad#3;" {
		s.Errorf("two polls brought %q, want the third attempt alone", seen)
	}
}

func queueAlone(s *script) {
	s.topic(1, 10)
	g := s.queue("jobs")
	s.publish(0, "bad")
	for range 2 {
		g.nackAfter(g.pollLike(ask("c1", 10)).Receipt, 0)
	}
	s.publish(0, "b", "c")
	var batches []core.Batch
	for range 2 {
		batches = append(batches, g.pollLike(ask("c1", 10)))
	}
	for _, b := range batches {
		for _, d := range b.Deliveries {
			if string(d.Payload()) == "bad" && (len(b.Deliveries) != 1 || d.Attempt != 3) {
				s.Errorf("the third attempt came as %q", list(b.Deliveries))
			}
		}
	}
	if n := len(batches[0].Deliveries) + len(batches[1].Deliveries); n != 3 {
		s.Errorf("two polls brought %d messages, want all three", n)
	}
}

func forgotten(s *script) {
	s.topic(1, 10)
	g := s.ordered("billing")
	s.publish(0, "a", "b", "c")
	for range 2 {
		g.nackAfter(g.pollLike(ask("c1", 10)).Receipt, 0)
	}
	g.ack(g.poll("c1", 10, "0:0=a#3").Receipt)
	g.poll("c1", 10, "0:1=b 0:2=c")
}

func backoff(s *script) {
	s.topic(1, 10)
	s.eachType(func(g *group) {
		s.publish(0, "a")
		want := []time.Duration{0, 100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond,
			1600 * time.Millisecond, 3200 * time.Millisecond, 6400 * time.Millisecond, 12800 * time.Millisecond, 25600 * time.Millisecond,
			30 * time.Second, 30 * time.Second}
		req := ask("c1", 10)
		req.Wait = core.MaxWait
		r := g.pollLike(req).Receipt
		for i, delay := range want {
			g.nack(r)
			began := time.Now()
			b := g.pollLike(req)
			if len(b.Deliveries) != 1 || b.Deliveries[0].Attempt != i+2 {
				s.Fatalf("%s: after %d failures came %q", g.name, i+1, list(b.Deliveries))
			}
			if took := time.Since(began); took != delay {
				s.Errorf("%s: after %d failures it came again after %v, want %v", g.name, i+1, took, delay)
			}
			r = b.Receipt
		}
		for range 60 { // and it does not overflow
			g.nack(r)
			r = g.pollLike(req).Receipt
		}
	})
}

func leaseNoBackoff(s *script) {
	s.topic(1, 10)
	s.eachType(func(g *group) {
		s.publish(0, "a")
		for i := range 5 {
			if b := g.pollLike(ask("c1", 10)); len(b.Deliveries) != 1 || b.Deliveries[0].Attempt != i+1 {
				s.Fatalf("%s: attempt %d is %q", g.name, i+1, list(b.Deliveries))
			}
			s.pass(defaults.AckTimeout)
		}
	})
}

func backoffHolds(s *script) {
	s.topic(2, 10)
	g := s.ordered("billing")
	s.publish(0, "a", "b")
	s.publish(1, "x")
	r := g.pollLike(ask("c1", 10)).Receipt
	_, err := g.tryNack(core.NackRequest{Receipt: r, Partition: core.Some(0), Offset: core.Some(int64(1)), Delay: core.Some(10 * time.Second)})
	s.ok("Nack", err)
	_, err = g.tryAckUpto(r, 1, 0)
	s.ok("Ack", err)
	s.publish(1, "y")
	g.ack(g.poll("c1", 10, "1:1=y").Receipt)
	s.pass(10*time.Second - 1)
	g.poll("c1", 10, "") // a waits with b, whose failure it was
	s.pass(1)
	g.poll("c1", 10, "0:0=a 0:1=b#2")
}

func backoffQueue(s *script) {
	s.topic(1, 10)
	g := s.queue("jobs")
	s.publish(0, "a", "b")
	r := g.poll("c1", 10, "0:0=a 0:1=b").Receipt
	g.nackAfter(r.Message(0, 0), 10*time.Second)
	s.publish(0, "c")
	g.poll("c1", 10, "0:2=c")
	g.ack(r.Message(0, 1))
	s.pass(10*time.Second - 1)
	g.poll("c1", 10, "")
	s.pass(1)
	g.poll("c1", 10, "0:0=a#2")
}

func ownDelay(s *script) {
	s.topic(1, 10)
	g := s.ordered("billing")
	s.publish(0, "a")
	for i, delay := range []time.Duration{3 * time.Second, 0, 0, 0, core.MaxNackDelay} {
		g.nackAfter(g.pollLike(ask("c1", 1)).Receipt, delay)
		if delay > 0 {
			s.pass(delay - 1)
			g.poll("c1", 1, "")
			s.pass(1)
		}
		if c := g.look().Cursors[0]; c.Next != 0 {
			s.Errorf("round %d: next is %d, want 0", i, c.Next)
		}
	}
	g.poll("c1", 1, "0:0=a#6")
}

func delayBounds(s *script) {
	s.topic(1, 10)
	g := s.ordered("billing")
	s.publish(0, "a")
	r := g.poll("c1", 1, "0:0=a").Receipt
	for _, delay := range []time.Duration{-1, core.MaxNackDelay + 1} {
		_, err := g.tryNack(core.NackRequest{Receipt: r, Delay: core.Some(delay)})
		s.refused(core.CodeInvalidRequest, err)
		s.names(err, "delay")
	}
	for _, by := range []time.Duration{0, -1, core.MaxDuration + 1} {
		_, err := g.tryExtend(r, core.Some(by))
		s.refused(core.CodeInvalidRequest, err)
		s.names(err, "by")
	}
	_, err := g.tryNack(core.NackRequest{Receipt: r, Offset: core.Some(int64(0))})
	s.refused(core.CodeInvalidRequest, err) // of which partition?
	g.cursor(0, 0, 1, 1)
}
