package enginetest

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

var pollTests = []test{
	{"A repeated poll-id brings the same batch and receipt", denseOffsets, pollIDAgain},
	{"A poll-id is the member's own", denseOffsets, pollIDOfMember},
	{"A poll-id of a settled batch is a new poll", virtualTime, pollIDSettled},
	{"A poll-id of a queue group brings the same batch", denseOffsets, pollIDQueue},
	{"A poll with the id of a parked one takes its place", virtualTime, pollIDParked},
	{"A poll settles its acks first", denseOffsets, pollAcks},
	{"A poll whose acks are wholly stale hands out nothing", denseOffsets, pollStaleAcks},
	{"A poll whose acks are stale in part goes on and tells", denseOffsets, pollPartlyStale},
	{"A poll takes up to max messages from several partitions", denseOffsets, pollMax},
	{"A poll takes up to max-bytes, and one message always", denseOffsets, pollMaxBytes},
	{"A poll of one partition takes from that one", denseOffsets, pollOnePartition},
	{"An empty poll tells what it passed over", virtualTime, pollBlocked},
	{"A batch is filled anew each time", denseOffsets, batchAnew},
}

func pollIDAgain(s *script) {
	s.topic(2, 10)
	g := s.ordered("billing")
	s.publish(0, "a", "b", "c")
	s.publish(1, "x")
	req := ask("c1", 3)
	req.PollID = "p1"
	first := g.pollLike(req)
	s.publish(1, "y")
	for range 2 {
		again := g.pollLike(req)
		if list(again.Deliveries) != list(first.Deliveries) || again.Receipt.String() != first.Receipt.String() {
			s.Errorf("the same poll-id brought %q, before %q", list(again.Deliveries), list(first.Deliveries))
		}
	}
	gs := g.look()
	if gs.Redelivered != (core.Redelivered{}) || gs.InFlight != 3 {
		s.Errorf("a lost answer counts: %+v, %d in flight", gs.Redelivered, gs.InFlight)
	}
	g.ack(first.Receipt)
	if n := g.look().Acked; n != 3 {
		s.Errorf("%d are counted as acked, want 3", n)
	}
}

func pollIDOfMember(s *script) {
	s.topic(2, 10)
	g := s.group("billing", roundRobin)
	g.join("c1")
	g.join("c2")
	s.publish(0, "a")
	s.publish(1, "b")
	one, two := ask("c1", 10), ask("c2", 10)
	one.PollID, two.PollID = "p1", "p1"
	g.got(g.pollLike(one), "0:0=a")
	g.got(g.pollLike(two), "1:0=b")
	one.PollID = "p2"
	g.got(g.pollLike(one), "")
	one.PollID = ""
	g.got(g.pollLike(one), "")
}

func pollIDSettled(s *script) {
	s.topic(1, 10)
	g := s.ordered("billing")
	s.publish(0, "a", "b", "c")
	req := ask("c1", 1)
	req.PollID = "p1"
	g.ack(g.got(g.pollLike(req), "0:0=a").Receipt)
	first := g.got(g.pollLike(req), "0:1=b")
	s.pass(defaults.AckTimeout)
	again := g.got(g.pollLike(req), "0:1=b#2")
	if again.Receipt.Delivery == first.Receipt.Delivery {
		s.Error("a delivery after the lease end has the number of the one before")
	}
	g.nackAfter(again.Receipt, 0)
	g.nackAfter(g.got(g.pollLike(req), "0:1=b#3").Receipt, 0)
	b := g.got(g.pollLike(req), "0:1=b#4")
	g.giveBack(b.Receipt)
	b = g.got(g.pollLike(req), "0:1=b#4")
	g.ack(b.Receipt)
	g.got(g.pollLike(req), "0:2=c")
}

func pollIDQueue(s *script) {
	s.topic(1, 10)
	g := s.queue("jobs")
	s.publish(0, "a", "b", "c")
	req := ask("c1", 2)
	req.PollID = "p1"
	first := g.got(g.pollLike(req), "0:0=a 0:1=b")
	again := g.got(g.pollLike(req), "0:0=a 0:1=b")
	if first.Receipt.String() != again.Receipt.String() {
		s.Errorf("the same poll-id brought the receipt %s, before %s", again.Receipt.String(), first.Receipt.String())
	}
	g.ack(again.Receipt)
	g.got(g.pollLike(req), "0:2=c")
}

func pollIDParked(s *script) {
	s.topic(1, 10)
	g := s.ordered("billing")
	req := ask("c1", 10)
	req.Wait, req.PollID = core.MaxWait, "p1"
	lost := g.parkLike(req)
	repeated := begin(g.script, func(ctx context.Context) (core.Batch, error) { return g.tryPoll(ctx, req) })
	repeated.parked()
	g.got(lost.result(), "")
	s.publish(0, "a")
	g.got(repeated.result(), "0:0=a")
}

func pollAcks(s *script) {
	s.topic(2, 10)
	g := s.ordered("billing")
	s.publish(0, "a", "b", "c")
	s.publish(1, "x")
	one, two := g.pollLike(ask("c1", 1)), g.pollLike(ask("c1", 1))
	req := ask("c1", 10)
	req.Acks = []core.Receipt{one.Receipt, two.Receipt}
	b := g.got(g.pollLike(req), "0:1=b 0:2=c")
	if len(b.Stale) != 0 {
		s.Errorf("the acks are stale: %v", b.Stale)
	}
	g.cursor(1, 1, 1, 0)
	req.Acks = []core.Receipt{b.Receipt}
	g.got(g.pollLike(req), "")
	g.cursor(0, 3, 3, 0)
	g.got(g.pollLike(req), "") // done, so fine
}

func pollStaleAcks(s *script) {
	s.topic(1, 10)
	g := s.ordered("billing")
	s.publish(0, "a", "b")
	r := g.poll("c1", 1, "0:0=a").Receipt
	g.nack(r)
	g.ack(g.poll("c1", 1, "0:0=a#2").Receipt)
	s.publish(0, "c")
	stale := r
	stale.Epoch++
	req := ask("c1", 10)
	req.Wait = core.MaxWait
	req.Acks = []core.Receipt{stale}
	_, err := g.tryPoll(s.Context(), req)
	s.refused(core.CodeStaleReceipt, err)
	g.cursor(0, 1, 1, 2)
}

func pollPartlyStale(s *script) {
	s.topic(2, 10)
	g := s.ordered("billing")
	s.publish(0, "a")
	s.publish(1, "x")
	r := g.pollLike(ask("c1", 10)).Receipt
	_, err := g.tryNackOffset(r, 0, 0)
	s.ok("Nack", err)
	g.ack(g.poll("c1", 1, "0:0=a#2").Receipt)
	s.publish(0, "b", "c")
	other := r
	other.Epoch++
	req := ask("c1", 10)
	req.Acks = []core.Receipt{other, r}
	b := g.got(g.pollLike(req), "0:1=b 0:2=c")
	if len(b.Stale) != 2 {
		s.Errorf("stale is %v, want the two ranges of the other epoch", b.Stale)
	}
	g.cursor(1, 1, 1, 0)
}

func pollMax(s *script) {
	s.topic(3, 10)
	g := s.ordered("billing")
	for p := range 3 {
		s.publish(p, "a", "b", "c")
	}
	b := g.pollLike(ask("c1", 7))
	if len(b.Deliveries) != 7 || len(b.Receipt.Ranges) != 3 {
		s.Fatalf("max 7 of 9 brought %q with ranges %v", list(b.Deliveries), b.Receipt.Ranges)
	}
	covered := 0
	for _, r := range b.Receipt.Ranges {
		covered += int(r.To - r.From)
		if c := g.look().Cursors[r.Partition]; c.Committed != r.From || c.Next != r.To {
			s.Errorf("partition %d: committed %d next %d, the receipt covers %d..%d", r.Partition, c.Committed, c.Next, r.From, r.To-1)
		}
	}
	if covered != 7 {
		s.Errorf("the receipt covers %d messages, want 7", covered)
	}
}

func pollMaxBytes(s *script) {
	s.topic(1, 20)
	s.eachType(func(g *group) {
		for range 6 {
			s.publish(0, strings.Repeat("x", 100))
		}
		for _, tt := range []struct{ maxBytes, want int }{{99, 1}, {1, 1}, {100, 1}, {250, 2}, {100000, 1}} {
			req := ask("c1", 10)
			req.MaxBytes = tt.maxBytes
			b := g.pollLike(req)
			if len(b.Deliveries) != tt.want {
				s.Errorf("%s: max-bytes %d brought %d messages of 100 bytes, want %d", g.name, tt.maxBytes, len(b.Deliveries), tt.want)
			}
			g.ack(b.Receipt)
		}
	})
}

func pollOnePartition(s *script) {
	s.topic(3, 10)
	s.eachType(func(g *group) {
		for p := range 3 {
			s.publish(p, "m")
		}
		req := ask("c1", 10)
		req.Partition = 2
		b := g.pollLike(req)
		if len(b.Deliveries) != 1 || b.Deliveries[0].Partition != 2 {
			s.Errorf("%s: a poll of partition 2 brought %q", g.name, list(b.Deliveries))
		}
		g.got(g.pollLike(req), "")
	})
}

func pollBlocked(s *script) {
	s.topic(3, 10)
	g := s.ordered("billing")
	s.publish(1, "a", "b")
	g.poll("c1", 1, "1:0=a")
	s.pass(10 * time.Second)
	req := ask("c1", 10)
	want := []core.Blocked{{Partition: 1, Member: "c1", Lease: 20 * time.Second}}
	if b := g.got(g.pollLike(req), ""); !reflect.DeepEqual(b.Blocked, want) {
		s.Errorf("blocked is %+v, want %+v", b.Blocked, want)
	}
	req.Wait = 5 * time.Second
	want[0].Lease = 15 * time.Second
	if b := g.got(g.pollLike(req), ""); !reflect.DeepEqual(b.Blocked, want) {
		s.Errorf("at the end of its wait blocked is %+v, want %+v", b.Blocked, want)
	}
	s.publish(0, "x")
	if b := g.poll("c1", 10, "0:0=x"); len(b.Blocked) != 0 {
		s.Errorf("a batch that is not empty tells %+v", b.Blocked)
	}
}

func batchAnew(s *script) {
	s.topic(2, 10)
	g := s.ordered("billing")
	s.publish(0, "a", "b")
	req := ask("c1", 10)
	var b core.Batch
	s.ok("Poll", g.engine.Poll(s.Context(), s.topicName, g.name, &req, &b))
	g.got(b, "0:0=a 0:1=b")
	first := b.Receipt.String()
	s.ok("Poll", g.engine.Poll(s.Context(), s.topicName, g.name, &req, &b))
	if len(b.Deliveries) != 0 || len(b.Receipt.Ranges) != 0 || len(b.Blocked) != 1 {
		s.Errorf("an empty poll left %s", fmt.Sprintf("%+v", b))
	}
	g.ackOffset("c1", 0, 1)
	s.publish(1, "x")
	s.ok("Poll", g.engine.Poll(s.Context(), s.topicName, g.name, &req, &b))
	g.got(b, "1:0=x")
	if len(b.Blocked) != 0 || b.Receipt.String() == first {
		s.Errorf("a batch holds what was in it before: %+v", b)
	}
}
