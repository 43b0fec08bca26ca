package enginetest

import (
	"fmt"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

var waitTests = []test{
	{"G15 an append answers a parked poll at once", denseOffsets, wokenByAppend},
	{"G15 a nack answers a parked poll at once", denseOffsets, wokenByNack},
	{"G15 an ack answers a poll that waits behind a batch", denseOffsets, wokenByAck},
	{"G15 a lease end answers a parked poll at once", virtualTime, wokenByLease},
	{"G15 a backoff that ends answers a parked poll at once", virtualTime, wokenByBackoff},
	{"G15 one waiter is woken, in the order of arrival", virtualTime, inOrderOfArrival},
	{"G15 a waiter that left is passed over", virtualTime, leaverPassedOver},
	{"G15 waiters whose turn it is share a batch publish", virtualTime, batchWakesEnough},
	{"G15 a waiter for another partition does not take the wake-up", virtualTime, rightWaiter},
	{"G15 a waiter for one partition is not overtaken by a later one for any", virtualTime, notOvertaken},
	{"G15 every group is woken by one append", denseOffsets, everyGroupWoken},
	{"G15 polls parked earlier are served before one that acks", virtualTime, parkedFirst},
	{"G15 nothing is lost when waiters come and go", exactEngine, comeAndGo},
}

func wokenByAppend(s *script) {
	s.topic(2, 10)
	g, q := s.ordered("billing"), s.queue("jobs")
	a, b := g.park("c1", 10, core.MaxWait), q.park("c1", 10, core.MaxWait)
	began := time.Now()
	s.publish(1, "a")
	g.got(a.result(), "1:0=a")
	q.got(b.result(), "1:0=a")
	if !s.features.RealTime && (a.at != began || b.at != began) {
		s.Errorf("answered after %v and %v, want at once", a.at.Sub(began), b.at.Sub(began))
	}
	if n := g.look().PollsWaiting; n != 0 {
		s.Errorf("%d polls wait, want none", n)
	}
}

// eachType runs a script for a group of each type, one after the other.
func (s *script) eachType(run func(*group)) {
	for _, typ := range []core.GroupType{core.Ordered, core.Queue} {
		g := s.group(string(typ), core.GroupSpec{Type: core.Some(typ)})
		run(g)
		s.ok("DeleteGroup", s.engine.DeleteGroup(s.Context(), s.topicName, g.name))
	}
}

func wokenByNack(s *script) {
	s.topic(1, 10)
	s.eachType(func(g *group) {
		s.publish(0, "a")
		b := g.pollLike(ask("c1", 1))
		waiting := g.park("c1", 1, core.MaxWait)
		g.nack(b.Receipt)
		if got := waiting.result(); len(got.Deliveries) != 1 || got.Deliveries[0].Attempt != 2 {
			s.Errorf("%s got %s, want the nacked one", g.name, list(got.Deliveries))
		}
	})
}

func wokenByAck(s *script) {
	s.topic(1, 10)
	g := s.ordered("billing")
	s.publish(0, "a", "b")
	b := g.poll("c1", 1, "0:0=a")
	waiting := g.park("c1", 10, core.MaxWait)
	g.ack(b.Receipt)
	g.got(waiting.result(), "0:1=b")
}

func wokenByLease(s *script) {
	s.topic(1, 10)
	s.eachType(func(g *group) {
		s.publish(0, "a")
		g.pollLike(ask("c1", 1))
		began := time.Now()
		waiting := g.park("c1", 1, core.MaxWait)
		s.pass(defaults.AckTimeout)
		if got := waiting.result(); len(got.Deliveries) != 1 || got.Deliveries[0].Attempt != 2 {
			s.Errorf("%s got %s, want the one whose lease ended", g.name, list(got.Deliveries))
		}
		if took := waiting.at.Sub(began); took != defaults.AckTimeout {
			s.Errorf("%s was answered after %v, want %v", g.name, took, defaults.AckTimeout)
		}
	})
}

func wokenByBackoff(s *script) {
	s.topic(1, 10)
	g := s.ordered("billing")
	s.publish(0, "a")
	g.nackAfter(g.poll("c1", 1, "0:0=a").Receipt, 5*time.Second)
	began := time.Now()
	waiting := g.park("c1", 1, core.MaxWait)
	s.pass(core.MaxWait)
	g.got(waiting.result(), "0:0=a#2")
	if took := waiting.at.Sub(began); took != 5*time.Second {
		s.Errorf("answered after %v, want 5s", took)
	}
}

func inOrderOfArrival(s *script) {
	s.topic(1, 10)
	s.eachType(func(g *group) {
		var polls []*call[core.Batch]
		for range 5 {
			polls = append(polls, g.park("c1", 1, core.MaxWait))
		}
		first := s.stats().Partitions[0].End
		for i, p := range polls {
			s.publish(0, fmt.Sprint(i))
			got := g.got(p.result(), fmt.Sprintf("0:%d=%d", first+int64(i), i))
			for _, later := range polls[i+1:] {
				later.parked()
			}
			g.ack(got.Receipt)
		}
	})
}

func leaverPassedOver(s *script) {
	s.topic(1, 10)
	g := s.ordered("billing")
	gone, stays := g.park("c1", 1, core.MaxWait), g.park("c1", 1, core.MaxWait)
	gone.abandon()
	if n := g.look().PollsWaiting; n != 1 {
		s.Errorf("%d polls wait, want 1", n)
	}
	s.publish(0, "a")
	g.got(stays.result(), "0:0=a")
	// One that ends by its own wait is passed over as well.
	req := g.park("c1", 1, time.Second)
	later := g.park("c1", 1, core.MaxWait)
	s.pass(time.Second)
	g.got(req.result(), "")
	later.parked()
	g.ackOffset("c1", 0, 0)
	s.publish(0, "b")
	g.got(later.result(), "0:1=b")
}

func batchWakesEnough(s *script) {
	s.topic(1, 10)
	g := s.queue("jobs")
	one, two, three := g.park("c1", 2, core.MaxWait), g.park("c2", 2, core.MaxWait), g.park("c3", 2, core.MaxWait)
	_, err := s.tryPublish(s.Context(), 0, 0, "a", "b", "c")
	s.ok("Publish", err)
	g.got(one.result(), "0:0=a 0:1=b")
	g.got(two.result(), "0:2=c")
	three.parked()

	o := s.ordered("billing")
	o.poll("c1", 1, "")
	four := o.park("c1", 1, core.MaxWait)
	_, err = s.tryPublish(s.Context(), 0, 0, "d", "e")
	s.ok("Publish", err)
	g.got(three.result(), "0:3=d 0:4=e")
	o.got(four.result(), "0:3=d")
}

func rightWaiter(s *script) {
	s.topic(2, 10)
	g := s.group("billing", roundRobin)
	g.join("c1")
	g.join("c2")
	one, two := g.park("c1", 10, core.MaxWait), g.park("c2", 10, core.MaxWait)
	s.publish(1, "a")
	one.parked()
	g.got(two.result(), "1:0=a")

	q := s.queue("jobs")
	req := ask("c1", 10)
	req.Wait = core.MaxWait
	req.Partition = 0
	onlyZero := q.parkLike(req)
	any := q.park("c2", 10, core.MaxWait)
	s.publish(1, "b")
	onlyZero.parked()
	q.got(any.result(), "1:1=b")
	s.publish(0, "c")
	q.got(onlyZero.result(), "0:0=c")
	g.got(one.result(), "0:0=c")
}

// A batch over both partitions arrives at once: whichever of them is looked at
// first, the message of partition 0 is for the one who waited for that longest.
func notOvertaken(s *script) {
	s.topic(2, 10)
	g, q := s.ordered("billing"), s.queue("jobs")
	g.join("c1")
	for round := range int64(4) {
		for _, in := range []*group{g, q} {
			req := ask("c1", 10)
			req.Wait, req.Partition = core.MaxWait, int(round%2)
			onlyOne, any := in.parkLike(req), in.park("c1", 1, core.MaxWait)
			batch := s.batch(2, 1, 0)
			_, err := s.engine.Publish(s.Context(), s.topicName, &batch, nil)
			s.ok("Publish", err)
			for _, c := range []*call[core.Batch]{onlyOne, any} {
				b := c.result()
				if len(b.Deliveries) != 1 {
					s.Fatalf("%s: two messages for two polls, one got %q", in.name, list(b.Deliveries))
				}
				in.ack(b.Receipt)
			}
			s.empty(g, q)
		}
	}
}

// empty acks what is left in groups.
func (s *script) empty(groups ...*group) {
	s.Helper()
	for _, g := range groups {
		for b := g.pollLike(ask("c1", 100)); len(b.Deliveries) > 0; b = g.pollLike(ask("c1", 100)) {
			g.ack(b.Receipt)
		}
	}
}

func everyGroupWoken(s *script) {
	s.topic(1, 10)
	var polls []*call[core.Batch]
	for i := range 20 {
		g := s.ordered(fmt.Sprintf("g%d", i))
		polls = append(polls, g.park("c1", 1, core.MaxWait))
	}
	s.publish(0, "a")
	for _, p := range polls {
		if got := list(p.result().Deliveries); got != "0:0=a" {
			s.Errorf("a group got %q", got)
		}
	}
}

func parkedFirst(s *script) {
	s.topic(1, 10)
	g := s.ordered("billing")
	s.publish(0, "a", "b", "c")
	b := g.poll("c1", 1, "0:0=a")
	earlier := g.park("c1", 1, core.MaxWait)
	req := ask("c1", 1)
	req.Acks = []core.Receipt{b.Receipt}
	g.got(g.pollLike(req), "") // b went to the one that waited
	g.got(earlier.result(), "0:1=b")
}

// Publishers and members come and go at random moments of virtual time; when
// they are done, everything was handed out and nobody waits beside a message.
func comeAndGo(s *script) {
	const messages = 500
	s.topic(3, messages)
	g, q := s.ordered("billing"), s.queue("jobs")
	done := make(chan int, 2)
	for _, in := range []*group{g, q} {
		go func() {
			got := 0
			for i := 0; got < messages; i++ {
				req := ask(fmt.Sprintf("c%d", i%3), 7)
				req.Wait = time.Duration(1+i%4) * time.Millisecond
				b, err := in.tryPoll(s.Context(), req)
				if err != nil {
					s.Errorf("Poll: %v", err)
					break
				}
				got += len(b.Deliveries)
				if len(b.Deliveries) == 0 {
					continue
				}
				if _, err = in.tryAck(b.Receipt); err != nil {
					s.Errorf("Ack: %v", err)
				}
				if i%5 == 0 {
					_ = in.engine.Leave(s.Context(), s.topicName, in.name, req.Member)
				}
			}
			done <- got
		}()
	}
	for i := range messages {
		if _, err := s.tryPublish(s.Context(), 0, core.AnyPartition, fmt.Sprint(i)); err != nil {
			s.Errorf("Publish: %v", err)
		}
		<-time.After(time.Duration(i%3) * 300 * time.Microsecond)
	}
	for range 2 {
		if got := <-done; got != messages {
			s.Errorf("a group got %d messages, want %d", got, messages)
		}
	}
}
