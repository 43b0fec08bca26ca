package enginetest

import (
	"time"

	"github.com/podmq/podmq/pkg/core"
)

var sessionTests = []test{
	{"A silent member is gone after its session", virtualTime, sessionEnds},
	{"Every call of a member keeps it", virtualTime, sessionKept},
	{"A parked poll keeps its member", virtualTime, sessionParked},
	{"A lease that is out keeps its member, and silence never ends it", virtualTime, sessionLease},
	{"The partitions of a member that is gone move to a parked poll", virtualTime, sessionMoves},
	{"An expiring group is deleted once it was without members that long", virtualTime, groupExpires},
	{"An expiring group that nobody ever joined is deleted", virtualTime, groupExpiresUnused},
	{"An expiring group that goes frees the publishers that wait for it", virtualTime, groupExpiresFrees},
	{"A member in time keeps its expiring group", virtualTime, groupKept},
}

const session = 10 * time.Second

func sessionEnds(s *script) {
	s.topic(2, 10)
	g := s.group("billing", roundRobin)
	g.join("c1")
	s.pass(session / 2)
	g.join("c2")
	s.pass(session/2 - 1)
	g.members("c1:0 c2:1")
	s.pass(1)
	g.members("c2:0,1")
	g.owners("c2 c2")
	s.pass(session / 2)
	g.members("")
	g.owners("- -")
}

func sessionKept(s *script) {
	s.topic(1, 10)
	g := s.ordered("billing")
	s.publish(0, "a", "b", "c", "d")
	keep := func(what string, call func()) {
		s.Helper()
		call()
		s.pass(session - 1)
		if got := assigned(g.look()); got != "c1:0" {
			s.Fatalf("after %s the group is shared as %q, want c1 to stay", what, got)
		}
	}
	var r core.Receipt
	keep("Join", func() { g.join("c1") })
	keep("Join again", func() { g.join("c1") })
	keep("Poll", func() { r = g.poll("c1", 1, "0:0=a").Receipt })
	keep("Ack", func() { g.ack(r) })
	keep("Ack by offset", func() { g.poll("c1", 1, "0:1=b"); s.pass(session / 2); g.ackOffset("c1", 0, 1) })
	keep("Nack", func() { r = g.poll("c1", 1, "0:2=c").Receipt; s.pass(session / 2); g.nack(r) })
	g.join("c1")
	r = g.poll("c1", 1, "0:2=c#2").Receipt
	s.pass(time.Second)
	g.extend(r, time.Second)
	s.pass(time.Second)
	g.members("c1:0") // the lease has ended, the session runs from the extend at the earliest
	s.pass(session - 2*time.Second)
	g.members("c1:0")
	s.pass(3 * time.Second)
	g.members("")
}

func sessionParked(s *script) {
	s.topic(1, 10)
	g := s.ordered("billing")
	waiting := g.park("c1", 10, core.MaxWait)
	s.pass(core.MaxWait - 1)
	g.members("c1:0")
	s.pass(1)
	g.got(waiting.result(), "")
	s.pass(session - 1) // from the end of the poll
	g.members("c1:0")
	s.pass(1)
	g.members("")
}

func sessionLease(s *script) {
	s.topic(1, 10)
	g := s.ordered("billing")
	s.publish(0, "a")
	r := g.poll("c1", 10, "0:0=a").Receipt
	waiting := g.park("c2", 10, core.MaxWait)
	s.pass(defaults.AckTimeout - 1)
	g.owners("c1")
	waiting.parked()
	if _, err := g.tryExtend(r, core.Some(defaults.AckTimeout)); err != nil {
		s.Fatalf("extending after three sessions of silence: %v", err)
	}
	s.pass(session)
	g.ack(r)
	g.owners("c1")
	s.pass(session)
	g.owners("c2")
}

func sessionMoves(s *script) {
	s.topic(2, 10)
	g := s.group("billing", roundRobin)
	g.join("c1")
	waiting := g.park("c2", 10, core.MaxWait)
	s.publish(0, "a")
	waiting.parked()
	s.pass(session)
	g.got(waiting.result(), "0:0=a")
	g.members("c2:0,1")
}

func expiring(d time.Duration) core.GroupSpec { return core.GroupSpec{Expires: core.Some(d)} }

func groupExpires(s *script) {
	s.topic(1, 10)
	g := s.group("tail", expiring(time.Minute))
	g.join("c1")
	s.publish(0, "a")
	s.pass(session)
	g.members("")
	s.pass(time.Minute - 1)
	g.members("")
	s.pass(1)
	_, err := s.engine.Group(s.Context(), s.topicName, "tail")
	s.refused(core.CodeUnknownGroup, err)
	s.state(0, "log empty at 1, backlog 0/10")
	_, err = g.tryPoll(s.Context(), ask("c1", 1))
	s.refused(core.CodeUnknownGroup, err)

	g = s.group("tail", expiring(time.Minute)) // its name is free again
	g.join("c1")
	g.leave("c1")
	s.pass(time.Minute)
	_, err = s.engine.Group(s.Context(), s.topicName, "tail")
	s.refused(core.CodeUnknownGroup, err)
}

func groupExpiresUnused(s *script) {
	s.topic(1, 10)
	s.group("tail", expiring(time.Minute))
	s.ordered("stays")
	s.pass(time.Minute - 1)
	if n := len(s.stats().Groups); n != 2 {
		s.Errorf("there are %d groups, want both", n)
	}
	s.pass(1)
	if gs := s.stats().Groups; len(gs) != 1 || gs[0].Name != "stays" {
		s.Errorf("the groups are %+v, want the one that stays", gs)
	}
	s.pass(30 * 24 * time.Hour)
	if n := len(s.stats().Groups); n != 1 {
		s.Errorf("a group that does not expire is gone")
	}
}

func groupExpiresFrees(s *script) {
	s.topic(1, 1)
	s.group("tail", expiring(20*time.Second))
	s.publish(0, "a")
	waiting := s.parkPublish(0, time.Minute, "b")
	s.pass(20*time.Second - 1)
	waiting.parked()
	s.pass(1)
	if placed := waiting.result(); placed[0].Offset != 1 {
		s.Errorf("placed %v, want offset 1", placed)
	}
}

func groupKept(s *script) {
	s.topic(1, 10)
	g := s.group("tail", expiring(time.Minute))
	for range 3 {
		s.pass(time.Minute - 1)
		g.join("c1")
		g.leave("c1")
	}
	waiting := g.park("c1", 1, core.MaxWait)
	s.pass(core.MaxWait)
	g.got(waiting.result(), "")
	g.members("c1:0")
}
