package enginetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

var lifeTests = []test{
	{"G23 nothing grows with polls that give up", exactEngine, pollsGiveUp},
	{"G23 nothing grows with topics and groups that are deleted", exactEngine, deletedLeaveNothing},
	{"G23 nothing grows with members that come and go", exactEngine, membersComeAndGo},
	{"G24 a drain answers parked polls and waiting publishes", exactCapacity, drainAnswers},
	{"G24 while draining publishes and settles go on", denseOffsets, drainGoesOn},
	{"G24 while draining nothing waits", denseOffsets, drainNoWait},
	{"G24 closing while calls are parked answers them", exactCapacity, closeAnswers},
	{"Calls whose caller is gone change nothing", denseOffsets, contextGone},
	{"Calls may run while topics and groups come and go", anyEngine, everythingAtOnce},
}

func pollsGiveUp(s *script) {
	s.topic(4, 10)
	g, q := s.ordered("billing"), s.queue("jobs")
	g.join("c1")
	q.join("c1")
	for i := range 500 {
		for _, in := range []*group{g, q} {
			ctx, cancel := context.WithCancel(s.Context())
			req := ask("c1", 10)
			req.Wait = core.MaxWait
			if i%2 == 0 {
				cancel()
			} else {
				time.AfterFunc(time.Millisecond, cancel)
			}
			if _, err := in.tryPoll(ctx, req); !errors.Is(err, context.Canceled) {
				s.Fatalf("a poll that gave up: %v", err)
			}
			cancel()
		}
	}
	for _, gs := range s.stats().Groups {
		if gs.PollsWaiting != 0 || len(gs.Members) != 1 {
			s.Errorf("%s: %d polls wait, %d members; want 0 and 1", gs.Name, gs.PollsWaiting, len(gs.Members))
		}
	}
	s.publish(0, "a")
	g.poll("c1", 1, "0:0=a") // nobody who left has it
	q.poll("c1", 1, "0:0=a")
}

func deletedLeaveNothing(s *script) {
	cycle := func(i int) {
		on := s.on(fmt.Sprintf("t%d", i%7))
		on.topic(4, 10)
		g, q := on.ordered("billing"), on.group("jobs", core.GroupSpec{Type: core.Some(core.Queue), Expires: core.Some(time.Hour)})
		for p := range 4 {
			on.publish(p, "a", "b")
		}
		g.nackAfter(g.pollLike(ask("c1", 3)).Receipt, time.Hour)
		q.pollLike(ask("c1", 3))
		if i%2 == 0 {
			s.ok("DeleteGroup", s.engine.DeleteGroup(s.Context(), on.topicName, "jobs"))
		}
		s.ok("DeleteTopic", s.engine.DeleteTopic(s.Context(), on.topicName))
	}
	for i := range 200 {
		cycle(i)
	}
	if st := s.engine.Stats(); len(st.Topics) != 0 || st.MemoryBytes != 0 || st.LeasesOut != 0 {
		s.Errorf("of deleted topics is left: %+v", st)
	}
	for i := range 50 {
		s.pass(time.Hour) // timers of what was deleted find nothing to do
		cycle(i)
	}
}

func membersComeAndGo(s *script) {
	s.topic(4, 10)
	g, q := s.ordered("billing"), s.queue("jobs")
	for i := range 3000 {
		member := fmt.Sprintf("web-%d", i)
		g.join(member)
		q.join(member)
		if i%2 == 0 {
			g.leave(member)
			q.leave(member)
		}
		if i%100 == 0 {
			s.pass(2 * session)
		}
	}
	s.pass(2 * session)
	for _, gs := range s.stats().Groups {
		if len(gs.Members) != 0 {
			s.Errorf("%s has %d members, want none", gs.Name, len(gs.Members))
		}
	}
}

func drainAnswers(s *script) {
	s.topic(1, 1)
	g, q := s.ordered("billing"), s.queue("jobs")
	s.publish(0, "a")
	r := g.poll("c1", 1, "0:0=a").Receipt
	q.poll("c1", 1, "0:0=a")
	polls := []*call[core.Batch]{g.park("c1", 1, core.MaxWait), q.park("c1", 1, core.MaxWait), q.park("c2", 1, core.MaxWait)}
	publish := s.parkPublish(0, core.MaxWait, "b")
	s.engine.Drain()
	s.engine.Drain()
	for _, p := range polls {
		p.failed(core.CodeDraining)
	}
	publish.failed(core.CodeDraining)
	s.state(0, "log 0..0, backlog 1/1, billing committed 0 next 1, jobs committed 0 next 1")
	g.ack(r)
}

func drainGoesOn(s *script) {
	s.topic(1, 10)
	g, q := s.ordered("billing"), s.queue("jobs")
	s.publish(0, "a", "b")
	r := g.poll("c1", 1, "0:0=a").Receipt
	s.engine.Drain()
	g.extend(r, time.Minute)
	g.nack(r)
	g.ack(g.poll("c1", 1, "0:0=a#2").Receipt)
	s.publish(0, "c")
	g.ack(g.poll("c1", 10, "0:1=b 0:2=c").Receipt)
	q.ack(q.poll("c1", 10, "0:0=a 0:1=b 0:2=c").Receipt)
	if n := s.engine.Stats().LeasesOut; n != 0 {
		s.Errorf("%d leases are out, want none", n)
	}
	g.leave("c1")
}

func drainNoWait(s *script) {
	s.topic(1, 1)
	g := s.ordered("billing")
	s.engine.Drain()
	req := ask("c1", 1)
	for _, wait := range []time.Duration{0, core.MaxWait} {
		req.Wait = wait
		_, err := g.tryPoll(s.Context(), req)
		s.refused(core.CodeDraining, err)
		if e := err.(*core.Error); !e.Retryable() || e.RetryAfter <= 0 {
			s.Errorf("draining: retryable %v after %v, want a time", e.Retryable(), e.RetryAfter)
		}
	}
	s.publish(0, "a")
	_, err := s.tryPublish(s.Context(), core.MaxWait, 0, "b")
	s.refused(core.CodeDraining, err)
	_, err = s.tryPublish(s.Context(), 0, 0, "b")
	s.refused(core.CodePartitionFull, err)
}

func closeAnswers(s *script) {
	other := s.with(Options{Topic: defaults, MaxBytes: scriptBytes})
	e := s.open(s.T, Options{Topic: defaults, MaxBytes: scriptBytes})
	other.engine = e
	other.topic(1, 1)
	g := other.ordered("billing")
	other.publish(0, "a")
	g.poll("c1", 1, "0:0=a")
	poll, publish := g.park("c1", 1, core.MaxWait), other.parkPublish(0, core.MaxWait, "b")
	s.ok("Close", e.Close())
	poll.failed(core.CodeDraining)
	publish.failed(core.CodeDraining)
}

func contextGone(s *script) {
	s.topic(1, 10)
	g := s.ordered("billing")
	s.publish(0, "a")
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	// A call that had no need to wait may have been done; one that ends with the
	// context's error has changed nothing.
	if b, err := g.tryPoll(ctx, ask("c1", 1)); errors.Is(err, context.Canceled) {
		g.cursor(0, 0, 0, 1)
	} else {
		s.ok("Poll", err)
		g.ack(g.got(b, "0:0=a").Receipt)
	}
	before := describe(s.stats(), 0)
	req := ask("c1", 1)
	req.Wait, req.Partition = core.MaxWait, 0
	if g.look().Cursors[0].Lag == 0 {
		if _, err := g.tryPoll(ctx, req); !errors.Is(err, context.Canceled) {
			s.Errorf("a poll that would wait for a caller who is gone: %v", err)
		}
	}
	if now := describe(s.stats(), 0); now != before {
		s.Errorf("it changed %s to %s", before, now)
	}
}

// everythingAtOnce only looks for crashes, races, dead locks and codes that no
// such call may end with.
func everythingAtOnce(s *script) {
	var all sync.WaitGroup
	for w := range 8 {
		all.Go(func() {
			for i := range 300 {
				if call, err := s.anything(w, i); err != nil {
					s.Errorf("%s: %v", call, err)
				}
				s.engine.Stats()
			}
		})
	}
	all.Wait()
}

// anything does one of all calls, and returns what must not come of it.
func (s *script) anything(w, i int) (call string, err error) {
	ctx := s.Context()
	on := &group{s.on(fmt.Sprint("t", (w+i)%2)), fmt.Sprint("g", i%3), false}
	member := fmt.Sprint("c", w%3)
	allowed := []core.Code{"", core.CodeUnknownTopic, core.CodeUnknownGroup}
	switch (i*7 + w) % 10 {
	case 0:
		call = "CreateTopic"
		_, err = s.engine.CreateTopic(ctx, on.topicName, core.TopicSpec{Partitions: core.Some(3), Capacity: core.Some(5)})
	case 1:
		call, allowed = "CreateGroup", append(allowed, core.CodeGroupExists)
		types := []core.GroupType{core.Ordered, core.Queue}
		_, err = s.engine.CreateGroup(ctx, on.topicName, on.name, core.GroupSpec{Type: core.Some(types[i%2])})
	case 2:
		call = "Delete"
		if i%20 == 0 {
			err = s.engine.DeleteTopic(ctx, on.topicName)
		} else {
			err = s.engine.DeleteGroup(ctx, on.topicName, on.name)
		}
	case 3:
		call, err = "Leave", s.engine.Leave(ctx, on.topicName, on.name, member)
	case 4, 5:
		call, allowed = "Publish", append(allowed, core.CodePartitionFull)
		_, err = on.tryPublish(ctx, time.Millisecond, core.AnyPartition, "m", "m")
	default:
		call, allowed = "Poll and Ack", append(allowed, core.CodeStaleReceipt)
		req := ask(member, 3)
		req.Wait = time.Duration(i%2) * time.Millisecond
		var b core.Batch
		if b, err = on.tryPoll(ctx, req); err == nil && len(b.Deliveries) > 0 && i%3 > 0 {
			_, err = on.tryAck(b.Receipt)
		}
	}
	if slices.Contains(allowed, core.CodeOf(err)) {
		return call, nil
	}
	return call, err
}
