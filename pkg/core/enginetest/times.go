package enginetest

import (
	"time"

	"github.com/podmq/podmq/pkg/core"
)

var timeTests = []test{
	{"G17 a lease lasts exactly the topic's ack timeout", virtualTime, leaseLasts},
	{"G17 a poll of new messages does not extend an older lease", virtualTime, leaseAlone},
	{"G17 a partial ack does not extend the lease", virtualTime, partialAckLease},
	{"G17 extending gives a new lease from now", virtualTime, extending},
	{"G17 extending goes to max-lease after the hand-out and no further", virtualTime, maxLease},
	{"G17 extending covers all of the batch that is out", virtualTime, extendCovers},
	{"G17 extending nothing that is out", virtualTime, extendNothing},
	{"G17 the leases of a batch are seen in the stats", virtualTime, leaseSeen},
	{"G17 the oldest unacked message has an age", virtualTime, oldestAge},
	{"G17 delivery latency is publish to first hand-out", virtualTime, latency},
}

func leaseLasts(s *script) {
	s.topicLike(core.TopicSpec{AckTimeout: core.Some(7 * time.Second)})
	g := s.ordered("billing")
	s.publish(0, "a")
	b := g.poll("c1", 1, "0:0=a")
	if b.Lease != 7*time.Second {
		s.Errorf("the batch has a lease of %v, want 7s", b.Lease)
	}
	s.pass(7*time.Second - 1)
	g.cursor(0, 0, 1, 1)
	s.pass(1)
	g.cursor(0, 0, 0, 1)
	if n := s.engine.Stats().LeasesOut; n != 0 {
		s.Errorf("%d leases are out, want none", n)
	}
}

func leaseAlone(s *script) {
	s.topic(2, 10)
	g := s.ordered("billing")
	s.publish(0, "a")
	g.poll("c1", 10, "0:0=a")
	for range 3 {
		s.pass(10*time.Second - 1)
		s.publish(1, "x")
		g.ack(g.pollLike(ask("c1", 10)).Receipt)
	}
	s.pass(3)
	g.poll("c1", 10, "0:0=a#2")
}

func partialAckLease(s *script) {
	s.topic(1, 10)
	g := s.ordered("billing")
	s.publish(0, "a", "b")
	r := g.poll("c1", 10, "0:0=a 0:1=b").Receipt
	s.pass(20 * time.Second)
	got, err := g.tryAckUpto(r, 0, 0)
	s.ok("Ack", err)
	if got.Lease != 10*time.Second {
		s.Errorf("after 20s of 30s a lease of %v is left, want 10s", got.Lease)
	}
	s.pass(10 * time.Second)
	g.poll("c1", 10, "0:1=b#2")
}

func extending(s *script) {
	s.topic(1, 10)
	g := s.ordered("billing")
	s.publish(0, "a")
	r := g.poll("c1", 10, "0:0=a").Receipt
	s.pass(20 * time.Second)
	got, err := g.tryExtend(r, core.Opt[time.Duration]{})
	s.ok("Extend", err)
	if got.Lease != defaults.AckTimeout {
		s.Errorf("extending without a time gives %v, want the ack timeout of %v", got.Lease, defaults.AckTimeout)
	}
	if len(got.Cursors) != 1 || got.Cursors[0] != (core.CursorPlace{Partition: 0, Committed: 0, Next: 1}) {
		s.Errorf("extending touched %+v, want the cursor as it stands", got.Cursors)
	}
	s.pass(20 * time.Second)
	if got := g.extend(r, 5*time.Second); got.Lease != 5*time.Second { // from now, though that is sooner
		s.Errorf("extending by 5s gives %v", got.Lease)
	}
	s.pass(5*time.Second - 1)
	g.poll("c1", 10, "")
	s.pass(1)
	g.poll("c1", 10, "0:0=a#2")
}

func maxLease(s *script) {
	s.topic(1, 10)
	for _, typ := range []core.GroupType{core.Ordered, core.Queue} {
		g := s.group(string(typ), core.GroupSpec{Type: core.Some(typ), MaxLease: core.Some(45 * time.Second), SessionTimeout: core.Some(time.Hour)})
		s.publish(0, "a")
		r := g.pollLike(ask("c1", 1)).Receipt
		s.pass(10 * time.Second)
		if got := g.extend(r, 30*time.Second); got.Lease != 30*time.Second {
			s.Errorf("%s: 40s after the hand-out is within 45s, but the lease is %v, want 30s", typ, got.Lease)
		}
		s.pass(10 * time.Second)
		if got := g.extend(r, 30*time.Second); got.Lease != 25*time.Second {
			s.Errorf("%s: at 20s of 45s by 30s, the lease is %v, want it clipped to 25s", typ, got.Lease)
		}
		_, err := g.tryExtend(r, core.Some(30*time.Second))
		s.refused(core.CodeLeaseLimit, err)
		s.pass(25*time.Second - 1)
		_, err = g.tryExtend(r, core.Some(30*time.Second))
		s.refused(core.CodeLeaseLimit, err)
		s.pass(1)
		_, err = g.tryExtend(r, core.Some(30*time.Second))
		s.refused(core.CodeStaleReceipt, err)
		if b := g.pollLike(ask("c1", 1)); len(b.Deliveries) != 1 || b.Lease != defaults.AckTimeout {
			s.Errorf("%s: after the last lease came %q with a lease of %v", typ, list(b.Deliveries), b.Lease)
		} else if got := g.extend(b.Receipt, time.Hour); got.Lease != 45*time.Second {
			s.Errorf("%s: the limit of a new hand-out is %v away, want 45s", typ, got.Lease)
		}
	}
}

func extendCovers(s *script) {
	s.topic(2, 10)
	g := s.ordered("billing")
	s.publish(0, "a")
	s.publish(1, "b")
	r := g.pollLike(ask("c1", 10)).Receipt
	s.pass(20 * time.Second)
	g.extend(r, 30*time.Second)
	s.pass(15 * time.Second)
	g.poll("c1", 10, "")
	g.ack(r)
}

func extendNothing(s *script) {
	s.topic(1, 10)
	g := s.ordered("billing")
	s.publish(0, "a")
	r := g.poll("c1", 1, "0:0=a").Receipt
	g.ack(r)
	got, err := g.tryExtend(r, core.Some(time.Minute)) // done, so fine
	s.ok("Extend", err)
	if got.Lease != 0 {
		s.Errorf("nothing is out, but the lease is %v", got.Lease)
	}
}

func leaseSeen(s *script) {
	s.topic(2, 10)
	g := s.ordered("billing")
	s.publish(0, "a", "b")
	s.publish(1, "c")
	one := ask("c1", 1)
	one.Partition = 0
	g.pollLike(one)
	s.pass(10 * time.Second)
	gs := g.look()
	if c := gs.Cursors[0]; c.Lease != 20*time.Second || c.LeaseMember != "c1" || c.Owner != "c1" {
		s.Errorf("partition 0: lease %v of %q, owner %q; want 20s of c1", c.Lease, c.LeaseMember, c.Owner)
	}
	if c := gs.Cursors[1]; c.Lease != 0 || c.LeaseMember != "" {
		s.Errorf("partition 1: lease %v of %q, want none", c.Lease, c.LeaseMember)
	}
	if gs.InFlight != 1 {
		s.Errorf("%d messages are in flight, want 1", gs.InFlight)
	}
	s.pass(20 * time.Second)
	if gs = g.look(); gs.InFlight != 0 || gs.Cursors[0].Lease != 0 {
		s.Errorf("after the lease %d are in flight, %v is left", gs.InFlight, gs.Cursors[0].Lease)
	}
}

func oldestAge(s *script) {
	s.topic(2, 10)
	g, q := s.ordered("billing"), s.queue("jobs")
	age := func(g *group, want time.Duration) {
		s.Helper()
		if got := g.look().OldestUnacked; got != want {
			s.Errorf("the oldest unacked message of %s is %v old, want %v", g.name, got, want)
		}
	}
	age(g, 0)
	s.publish(1, "a")
	s.pass(5 * time.Second)
	s.publish(0, "b")
	s.pass(2 * time.Second)
	age(g, 7*time.Second)
	age(q, 7*time.Second)
	one := ask("c1", 10)
	one.Partition = 1
	for _, g := range []*group{g, q} {
		g.ack(g.got(g.pollLike(one), "1:0=a").Receipt)
		age(g, 2*time.Second)
	}
}

func latency(s *script) {
	s.topic(1, 10)
	g := s.ordered("billing")
	s.publish(0, "a")
	s.pass(300 * time.Millisecond)
	g.nack(g.poll("c1", 1, "0:0=a").Receipt)
	s.pass(time.Second)
	g.poll("c1", 1, "0:0=a#2")
	if h := g.look().DeliveryLatency; h.Count() != 1 || h.Sum != 300*time.Millisecond {
		s.Errorf("%d first deliveries took %v in all, want one of 300ms", h.Count(), h.Sum)
	}
	gs := g.look()
	if gs.Delivered != 2 || gs.Redelivered != (core.Redelivered{Nack: 1}) {
		s.Errorf("delivered %d, again %+v; want 2, and 1 after a nack", gs.Delivered, gs.Redelivered)
	}
}
