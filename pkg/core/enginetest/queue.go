package enginetest

import (
	"fmt"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

var queueTests = []test{
	{"A queue group settles its messages one by one", denseOffsets, oneByOne},
	{"A queue group's messages are shared by all members", denseOffsets, sharedByAll},
	{"A queue group frees room as its oldest message is done", exactCapacity, queueFrees},
	{"A queue group takes back one message of a batch", denseOffsets, queueNackOne},
	{"A queue group's leases end one by one", virtualTime, queueLeases},
	{"A queue group leaves what a leaver had to the others", denseOffsets, queueLeave},
	{"A queue group of many holes still hands everything out", denseOffsets, manyHoles},
	{"A queue group needs no assignment", denseOffsets, queueMembers},
}

func oneByOne(s *script) {
	s.topic(1, 10)
	g := s.queue("jobs")
	s.publish(0, "a", "b", "c", "d")
	b := g.poll("c1", 10, "0:0=a 0:1=b 0:2=c 0:3=d").Receipt
	g.ack(b.Message(0, 2))
	g.cursor(0, 0, 4, 3)
	g.ack(b.Message(0, 0), b.Message(0, 3))
	g.cursor(0, 1, 4, 1)
	if n := g.look().InFlight; n != 1 {
		s.Errorf("%d are in flight, want 1", n)
	}
	if n := s.engine.Stats().LeasesOut; n != 1 {
		s.Errorf("%d leases are out, want 1", n)
	}
	s.state(0, "log 1..3, backlog 3/10, jobs committed 1 next 4")
	g.ack(b)
	s.state(0, "log empty at 4, backlog 0/10, jobs committed 4 next 4")
}

func sharedByAll(s *script) {
	s.topic(2, 10)
	g := s.queue("jobs")
	s.publish(0, "a", "b")
	s.publish(1, "c", "d")
	seen := make(map[string]int)
	for i := range 4 {
		for _, d := range g.pollLike(ask(fmt.Sprintf("c%d", i), 1)).Deliveries {
			seen[string(d.Payload())]++
		}
	}
	if len(seen) != 4 {
		s.Errorf("four members with one message each saw %v, want all four", seen)
	}
	g.poll("c9", 1, "")
	one := ask("c9", 1)
	one.Partition = 1
	if b := g.pollLike(one); len(b.Deliveries) != 0 {
		s.Errorf("everything is out, but c9 got %s", list(b.Deliveries))
	}
}

func queueFrees(s *script) {
	s.topic(1, 2)
	g := s.queue("jobs")
	s.publish(0, "a", "b")
	b := g.poll("c1", 10, "0:0=a 0:1=b").Receipt
	waiting := s.parkPublish(0, time.Minute, "c")
	g.ack(b.Message(0, 1))
	waiting.parked() // a holds its place in the log
	g.ack(b.Message(0, 0))
	waiting.result()
	s.state(0, "log 2..2, backlog 1/2, jobs committed 2 next 2")
}

func queueNackOne(s *script) {
	s.topic(1, 10)
	g := s.queue("jobs")
	s.publish(0, "a", "b", "c")
	b := g.poll("c1", 10, "0:0=a 0:1=b 0:2=c").Receipt
	g.nack(b.Message(0, 1))
	again := g.poll("c2", 10, "0:1=b#2").Receipt
	got, err := g.tryAck(b)
	s.ok("Ack", err)
	if len(got.Stale) != 1 || got.Stale[0] != (core.StaleRange{Partition: 0, From: 1, To: 2}) {
		s.Errorf("stale is %v, want b alone", got.Stale)
	}
	g.cursor(0, 1, 3, 1)
	g.ack(again)
	g.cursor(0, 3, 3, 0)
}

func queueLeases(s *script) {
	s.topic(1, 10)
	g := s.queue("jobs")
	s.publish(0, "a", "b")
	a := g.poll("c1", 1, "0:0=a").Receipt
	s.pass(10 * time.Second)
	g.poll("c1", 1, "0:1=b")
	s.pass(15 * time.Second)
	g.extend(a, 10*time.Second) // ends at 35s, b at 40s
	waiting := g.park("c2", 10, time.Minute)
	s.pass(10*time.Second - 1)
	waiting.parked()
	s.pass(1)
	g.got(waiting.result(), "0:0=a#2")
	s.pass(5 * time.Second)
	g.poll("c2", 10, "0:1=b#2")
}

func queueLeave(s *script) {
	s.topic(1, 10)
	g := s.queue("jobs")
	s.publish(0, "a", "b", "c")
	r := g.poll("c1", 2, "0:0=a 0:1=b").Receipt
	g.poll("c2", 10, "0:2=c")
	waiting := g.park("c2", 10, time.Minute)
	g.leave("c1")
	g.got(waiting.result(), "0:0=a 0:1=b")
	if r := g.look().Redelivered; r != (core.Redelivered{Leave: 2}) {
		s.Errorf("two came again because their member left: %+v", r)
	}
	_, err := g.tryAck(r)
	s.refused(core.CodeStaleReceipt, err)
}

// Every second message is done, so the rest are runs of one, more than fit into
// one receipt.
func manyHoles(s *script) {
	const n = 200
	s.topic(1, n)
	g := s.queue("jobs")
	for i := range n {
		s.publish(0, fmt.Sprint(i))
	}
	all := g.pollLike(ask("c1", n)).Receipt
	for i := int64(0); i < n; i += 2 {
		g.ack(all.Message(0, i))
	}
	g.leave("c1")
	seen := make(map[int64]bool)
	for polls := 0; len(seen) < n/2; polls++ {
		b := g.pollLike(ask("c2", n))
		if len(b.Deliveries) == 0 || polls == n {
			s.Fatalf("after %d polls %d of %d messages came", polls, len(seen), n/2)
		}
		for _, d := range b.Deliveries {
			if d.Offset%2 == 0 || seen[d.Offset] {
				s.Fatalf("%d came, which is done or came before", d.Offset)
			}
			seen[d.Offset] = true
		}
		g.ack(b.Receipt)
	}
	g.cursor(0, n, n, 0)
}

func queueMembers(s *script) {
	s.topic(4, 10)
	g := s.queue("jobs")
	if m := g.join("c1"); len(m.Partitions) != 0 {
		s.Errorf("a member of a queue group is assigned %v", m.Partitions)
	}
	g.join("c2")
	g.members("c1: c2:")
	one := ask("c2", 1)
	for p := range 4 {
		one.Partition = p
		g.pollLike(one)
	}
}
