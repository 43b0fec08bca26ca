package enginetest

import (
	"fmt"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

var ownerTests = []test{
	{"Members share the partitions round robin at first", anyEngine, shareFirst},
	{"Round robin gives partition p to member p mod n", anyEngine, shareRoundRobin},
	{"G11 sticky moves only what it must", anyEngine, shareSticky},
	{"More members than partitions: the rest idle", anyEngine, moreMembers},
	{"A poll joins its member", denseOffsets, pollJoins},
	{"Joining again changes nothing", anyEngine, joinAgain},
	{"The generation grows with every change of the members", anyEngine, generations},
	{"A poll of a partition that is not the member's is refused", denseOffsets, notOwner},
	{"A group without members keeps its backlog", denseOffsets, noMembers},
	{"A member that leaves gives back at once and uncounted", denseOffsets, leaving},
	{"A member that leaves ends its parked polls empty", anyEngine, leavingParked},
	{"Leaving without being a member is no error", anyEngine, leavingAgain},
}

// roundRobin makes assignments that a script can know.
var roundRobin = core.GroupSpec{Strategy: core.Some(core.RoundRobin)}

func shareFirst(s *script) {
	s.topic(5, 10)
	g := s.ordered("billing")
	if m := g.join("c1"); fmt.Sprint(m.Partitions) != "[0 1 2 3 4]" {
		s.Errorf("the first member is assigned %v, want all", m.Partitions)
	}
	g.owners("c1 c1 c1 c1 c1")
}

func shareRoundRobin(s *script) {
	s.topic(5, 10)
	g := s.group("billing", roundRobin)
	for _, step := range []struct{ member, want string }{
		{"z", "z:0,1,2,3,4"},
		{"a", "z:0,2,4 a:1,3"},
		{"m", "z:0,3 a:1,4 m:2"},
	} {
		g.join(step.member)
		g.members(step.want)
	}
	g.leave("z")
	g.members("a:0,2,4 m:1,3")
	g.owners("a m a m a")
	g.join("z") // last in the order of joining now
	g.members("a:0,3 m:1,4 z:2")
}

func shareSticky(s *script) {
	s.topic(6, 10)
	g := s.ordered("billing")
	had := make(map[string][]int)
	sizes := func(want string) {
		s.Helper()
		now := make(map[string][]int)
		seen, least, most := 0, 6, 0
		for _, m := range g.look().Members {
			now[m.Member] = m.Partitions
			seen += len(m.Partitions)
			least, most = min(least, len(m.Partitions)), max(most, len(m.Partitions))
		}
		if seen != 6 || most-least > 1 {
			s.Fatalf("%s: the shares are %v, want 6 partitions shared evenly", want, now)
		}
		kept := 0
		for m, ps := range now {
			for _, p := range ps {
				for _, q := range had[m] {
					if p == q {
						kept++
					}
				}
			}
		}
		if got := fmt.Sprint("kept ", kept); len(had) > 0 && got != want {
			s.Errorf("from %v to %v: %s, want %s", had, now, got, want)
		}
		had = now
	}
	g.join("c1")
	sizes("")
	g.join("c2")
	sizes("kept 3")
	g.join("c3")
	sizes("kept 4")
	g.leave("c2") // its two go to the others, who keep theirs
	sizes("kept 4")
	g.join("c4")
	sizes("kept 4")
}

func moreMembers(s *script) {
	s.topic(2, 10)
	g := s.ordered("billing")
	for i := range 4 {
		g.join(fmt.Sprintf("c%d", i))
	}
	idle := 0
	for _, m := range g.look().Members {
		if len(m.Partitions) == 0 {
			idle++
		}
	}
	if idle != 2 {
		s.Errorf("%q: %d members idle, want 2", assigned(g.look()), idle)
	}
	s.publish(0, "a")
	s.publish(1, "b")
	got := 0
	for i := range 4 {
		got += len(g.pollLike(ask(fmt.Sprintf("c%d", i), 10)).Deliveries)
	}
	if got != 2 {
		s.Errorf("four members got %d messages, want 2", got)
	}
}

func pollJoins(s *script) {
	s.topic(1, 10)
	g := s.ordered("billing")
	g.members("")
	s.publish(0, "a")
	b := g.poll("c1", 10, "0:0=a")
	g.members("c1:0")
	gs := g.look()
	if b.Generation != gs.Generation || b.Receipt.Generation != gs.Generation {
		s.Errorf("the batch is of generation %d, its receipt of %d, the group of %d", b.Generation, b.Receipt.Generation, gs.Generation)
	}
}

func joinAgain(s *script) {
	s.topic(2, 10)
	g := s.ordered("billing")
	m, joined, err := g.engine.Join(s.Context(), s.topicName, g.name, "c1")
	if err != nil || !joined {
		s.Fatalf("Join: joined %v, %v", joined, err)
	}
	again, joined, err := g.engine.Join(s.Context(), s.topicName, g.name, "c1")
	if err != nil || joined || fmt.Sprint(again) != fmt.Sprint(m) {
		s.Errorf("Join again: %+v, joined %v, %v; want %+v, as before", again, joined, err, m)
	}
}

func generations(s *script) {
	s.topic(2, 10)
	g := s.ordered("billing")
	last := g.look().Generation
	grows := func(what string, want bool) {
		s.Helper()
		now := g.look().Generation
		if (now > last) != want || now < last {
			s.Errorf("%s: the generation went from %d to %d, want it to grow: %v", what, last, now, want)
		}
		last = now
	}
	g.join("c1")
	grows("c1 joined", true)
	g.join("c2")
	grows("c2 joined", true)
	g.join("c2")
	grows("c2 joined again", false)
	g.poll("c1", 1, "")
	grows("c1 polled", false)
	g.leave("c1")
	grows("c1 left", true)
	g.leave("c1")
	grows("c1 left again", false)
}

func notOwner(s *script) {
	s.topic(2, 10)
	g := s.group("billing", roundRobin)
	g.join("c1")
	g.join("c2")
	s.publish(1, "a")
	req := ask("c1", 10)
	req.Partition = 1
	_, err := g.tryPoll(s.Context(), req)
	s.refused(core.CodeNotOwner, err)
	s.names(err, "c2")
	req.Member = "c2"
	g.got(g.pollLike(req), "1:0=a")
}

func noMembers(s *script) {
	s.topic(1, 10)
	g := s.ordered("billing")
	s.publish(0, "a", "b")
	g.join("c1")
	g.leave("c1")
	g.owners("-")
	s.state(0, "log 0..1, backlog 2/10, billing committed 0 next 0")
	g.poll("c2", 10, "0:0=a 0:1=b")
}

func leaving(s *script) {
	s.topic(1, 10)
	g := s.ordered("billing")
	s.publish(0, "a", "b", "c")
	r := g.poll("c1", 10, "0:0=a 0:1=b 0:2=c").Receipt
	_, err := g.tryAckUpto(r, 0, 0)
	s.ok("Ack", err)
	waiting := g.park("c2", 10, time.Minute)
	g.leave("c1")
	g.got(waiting.result(), "0:1=b 0:2=c")
	if r := g.look().Redelivered; r != (core.Redelivered{Leave: 2}) {
		s.Errorf("two came again because their member left: %+v", r)
	}
}

func leavingParked(s *script) {
	s.topic(1, 10)
	g := s.ordered("billing")
	one, two := g.park("c1", 10, time.Minute), g.park("c1", 10, time.Minute)
	other := g.park("c2", 10, time.Minute)
	g.leave("c1")
	g.got(one.result(), "")
	g.got(two.result(), "")
	if !s.features.RealTime {
		other.parked()
	}
	g.members("c2:0")
}

func leavingAgain(s *script) {
	s.topic(1, 10)
	g := s.ordered("billing")
	g.leave("nobody")
	g.join("c1")
	g.leave("c1")
	g.leave("c1")
	g.members("")
}
