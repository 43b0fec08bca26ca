package enginetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

var adminTests = []test{
	{"Creating a topic again is fine when it is as asked", anyEngine, topicAgain},
	{"A topic that exists otherwise is refused", anyEngine, topicExists},
	{"A topic gets the engine's settings where it does not say", anyEngine, topicDefaults},
	{"Creating a group again is fine when it is as asked", anyEngine, groupAgain},
	{"What is out of bounds is refused by name", anyEngine, outOfBounds},
	{"What does not exist is refused by its kind", anyEngine, unknown},
	{"Bad names are refused", anyEngine, badNames},
	{"The bounds on groups and members hold", exactEngine, tooMany},
	{"The bounds on topics and partitions hold", exactEngine, tooManyTopics},
	{"Stats name topics and groups in order", anyEngine, statsInOrder},
	{"Every run has an epoch of its own", anyEngine, epochs},
	{"A topic made again starts anew", denseOffsets, topicAnew},
}

func topicAgain(s *script) {
	s.topic(2, 3)
	for _, spec := range []core.TopicSpec{
		{}, {Partitions: core.Some(2)}, {Partitions: core.Some(2), Capacity: core.Some(3), AckTimeout: core.Some(defaults.AckTimeout)},
	} {
		created, err := s.engine.CreateTopic(s.Context(), "orders", spec)
		if created || err != nil {
			s.Errorf("CreateTopic %+v again: created %v, %v; want neither", spec, created, err)
		}
	}
}

func topicExists(s *script) {
	s.topic(2, 3)
	for _, spec := range []core.TopicSpec{
		{Partitions: core.Some(1)}, {Capacity: core.Some(4)}, {MaxBytes: core.Some(int64(1000))}, {AckTimeout: core.Some(time.Second)},
	} {
		created, err := s.engine.CreateTopic(s.Context(), "orders", spec)
		s.refused(core.CodeTopicExists, err)
		if created {
			s.Error("a refused topic counts as created")
		}
	}
	if got := s.stats().Settings; got.Partitions != 2 || got.Capacity != 3 {
		s.Errorf("refusals changed the topic to %+v", got)
	}
}

func topicDefaults(s *script) {
	s.topicLike(core.TopicSpec{Partitions: core.Some(7)})
	want := defaults
	want.Partitions = 7
	if got := s.stats().Settings; got != want {
		s.Errorf("the topic has %+v, want %+v", got, want)
	}
}

func groupAgain(s *script) {
	s.topic(1, 3)
	g := s.ordered("billing")
	s.publish(0, "a")
	for _, spec := range []core.GroupSpec{{}, {Type: core.Some(core.Ordered)}, {Start: core.Some(core.Earliest)}} {
		if created, err := s.engine.CreateGroup(s.Context(), "orders", "billing", spec); created || err != nil {
			s.Errorf("CreateGroup %+v again: created %v, %v; want neither", spec, created, err)
		}
	}
	for _, spec := range []core.GroupSpec{
		{Type: core.Some(core.Queue)}, {Strategy: core.Some(core.RoundRobin)}, {SessionTimeout: core.Some(time.Minute)},
		{MaxLease: core.Some(time.Minute)}, {Expires: core.Some(time.Minute)},
	} {
		_, err := s.engine.CreateGroup(s.Context(), "orders", "billing", spec)
		s.refused(core.CodeGroupExists, err)
	}
	g.poll("c1", 10, "0:0=a")
}

func outOfBounds(s *script) {
	s.topic(1, 3)
	g := s.ordered("billing")
	ctx := s.Context()
	tries := map[string]func() error{
		"partitions": func() error {
			_, err := s.engine.CreateTopic(ctx, "t", core.TopicSpec{Partitions: core.Some(0)})
			return err
		},
		"capacity": func() error {
			_, err := s.engine.CreateTopic(ctx, "t", core.TopicSpec{Capacity: core.Some(-1)})
			return err
		},
		"session-timeout": func() error { return tryGroup(s, core.GroupSpec{SessionTimeout: core.Some(time.Duration(0))}) },
		"strategy":        func() error { return tryGroup(s, core.GroupSpec{Strategy: core.Some(core.Strategy("x"))}) },
		"max":             func() error { _, err := g.tryPoll(ctx, ask("c1", 0)); return err },
		"max ":            func() error { _, err := g.tryPoll(ctx, ask("c1", core.MaxPollMessages+1)); return err },
		"max-bytes":       func() error { r := ask("c1", 1); r.MaxBytes = 0; _, err := g.tryPoll(ctx, r); return err },
		"max-bytes ": func() error {
			r := ask("c1", 1)
			r.MaxBytes = core.MaxPollBytes + 1
			_, err := g.tryPoll(ctx, r)
			return err
		},
		"wait":            func() error { r := ask("c1", 1); r.Wait = core.MaxWait + 1; _, err := g.tryPoll(ctx, r); return err },
		"wait ":           func() error { r := ask("c1", 1); r.Wait = -1; _, err := g.tryPoll(ctx, r); return err },
		"wait of publish": func() error { _, err := s.tryPublish(ctx, core.MaxWait+1, 0, "x"); return err },
		"no message":      func() error { _, err := s.tryPublish(ctx, 0, 0); return err },
	}
	for name, try := range tries {
		err := try()
		if core.CodeOf(err) != core.CodeInvalidRequest {
			s.Errorf("%s: got %v, want code %s", strings.TrimSpace(name), err, core.CodeInvalidRequest)
		}
	}
	if got := s.engine.Stats().Topics; len(got) != 1 || len(got[0].Groups) != 1 {
		s.Errorf("a refused topic or group is there: %+v", got)
	}
	s.state(0, "log empty at 0, backlog 0/3, billing committed 0 next 0")
}

func tryGroup(s *script, spec core.GroupSpec) error {
	_, err := s.engine.CreateGroup(s.Context(), s.topicName, "g", spec)
	return err
}

func unknown(s *script) {
	s.topic(2, 3)
	g := s.ordered("billing")
	s.publish(0, "a")
	b := g.poll("c1", 1, "0:0=a")
	ctx := s.Context()
	noTopic, noGroup := &group{s.on("nowhere"), "billing", false}, &group{s, "nobody", false}
	for code, there := range map[core.Code]*group{core.CodeUnknownTopic: noTopic, core.CodeUnknownGroup: noGroup} {
		topic, name := there.topicName, there.name
		tries := map[string]func() error{
			"Poll":        func() error { _, err := there.tryPoll(ctx, ask("c1", 1)); return err },
			"Ack":         func() error { _, err := there.tryAck(b.Receipt); return err },
			"Nack":        func() error { _, err := there.tryNack(core.NackRequest{Receipt: b.Receipt}); return err },
			"Extend":      func() error { _, err := there.tryExtend(b.Receipt, core.Opt[time.Duration]{}); return err },
			"Return":      func() error { return s.engine.Return(ctx, topic, name, &b.Receipt) },
			"Join":        func() error { _, _, err := s.engine.Join(ctx, topic, name, "c1"); return err },
			"Leave":       func() error { return s.engine.Leave(ctx, topic, name, "c1") },
			"Group":       func() error { _, err := s.engine.Group(ctx, topic, name); return err },
			"DeleteGroup": func() error { return s.engine.DeleteGroup(ctx, topic, name) },
		}
		for call, try := range tries {
			if err := try(); core.CodeOf(err) != code {
				s.Errorf("%s on %s/%s: %v, want code %s", call, topic, name, err, code)
			}
		}
	}
	s.unknownTopicOrPartition(g)
	// A typo must make nothing: a group holds back publishers.
	if got := s.engine.Stats().Topics; len(got) != 1 || len(got[0].Groups) != 1 {
		s.Errorf("calls on what does not exist made something: %+v", got)
	}
}

func (s *script) unknownTopicOrPartition(g *group) {
	s.Helper()
	ctx := s.Context()
	nowhere := s.on("nowhere")
	_, err := nowhere.tryPublish(ctx, 0, core.AnyPartition, "x")
	s.refused(core.CodeUnknownTopic, err)
	s.refused(core.CodeUnknownTopic, s.engine.DeleteTopic(ctx, "nowhere"))
	_, err = s.engine.Topic(ctx, "nowhere")
	s.refused(core.CodeUnknownTopic, err)
	s.refused(core.CodeUnknownTopic, tryGroup(nowhere, core.GroupSpec{}))

	for _, partition := range []int{2, -2, core.MaxPartitions} {
		_, err = s.tryPublish(ctx, 0, partition, "x")
		s.refused(core.CodeUnknownPartition, err)
		req := ask("c1", 1)
		req.Partition = partition
		_, err = g.tryPoll(ctx, req)
		s.refused(core.CodeUnknownPartition, err)
	}
}

func badNames(s *script) {
	s.topic(1, 3)
	g := s.ordered("billing")
	for _, name := range []string{"", " ", ".a", "a/b", "ä", "a\x00", strings.Repeat("n", core.MaxNameLen+1)} {
		_, err := s.engine.CreateTopic(s.Context(), name, core.TopicSpec{})
		s.refused(core.CodeInvalidRequest, err)
		_, err = s.engine.CreateGroup(s.Context(), "orders", name, core.GroupSpec{})
		s.refused(core.CodeInvalidRequest, err)
		_, _, err = s.engine.Join(s.Context(), "orders", "billing", name)
		s.refused(core.CodeInvalidRequest, err)
		_, err = g.tryPoll(s.Context(), ask(name, 1))
		s.refused(core.CodeInvalidRequest, err)
	}
	g.join("web-1:4242@node")
	g.members("web-1:4242@node:0")
}

func tooMany(s *script) {
	s.topic(1, 3)
	for i := range core.MaxGroups {
		s.ordered(fmt.Sprintf("g%d", i))
	}
	s.refused(core.CodeInvalidRequest, tryGroup(s, core.GroupSpec{}))
	s.ok("DeleteGroup", s.engine.DeleteGroup(s.Context(), "orders", "g0"))
	g := s.ordered("g")
	for i := range core.MaxMembers {
		g.join(fmt.Sprintf("m%d", i))
	}
	_, _, err := s.engine.Join(s.Context(), "orders", "g", "one-more")
	s.refused(core.CodeInvalidRequest, err)
	_, err = g.tryPoll(s.Context(), ask("one-more", 1))
	s.refused(core.CodeInvalidRequest, err)

}

func tooManyTopics(s *script) {
	for i := range 9 {
		s.on(fmt.Sprintf("t%d", i)).topic(core.MaxPartitions, 1)
	}
	_, err := s.engine.CreateTopic(s.Context(), "t9", core.TopicSpec{Partitions: core.Some(core.MaxPartitions)})
	s.refused(core.CodeInvalidRequest, err) // 10 x 1,024 are more than 10,000

	s = s.with(Options{Topic: defaults, MaxBytes: scriptBytes})
	for i := range core.MaxTopics {
		s.on(fmt.Sprintf("t%d", i)).topic(1, 1)
	}
	_, err = s.engine.CreateTopic(s.Context(), "one-more", core.TopicSpec{})
	s.refused(core.CodeInvalidRequest, err)
	created, err := s.engine.CreateTopic(s.Context(), "t0", core.TopicSpec{})
	if created || err != nil {
		s.Errorf("CreateTopic of one that exists, at the bound: created %v, %v", created, err)
	}
}

func statsInOrder(s *script) {
	for _, topic := range []string{"c", "a", "b"} {
		on := s.on(topic)
		on.topic(1, 1)
		for _, g := range []string{"z", "x", "y"} {
			on.ordered(g)
		}
	}
	var got []string
	for _, t := range s.engine.Stats().Topics {
		got = append(got, t.Name)
		for _, g := range t.Groups {
			got = append(got, g.Name)
		}
	}
	if want := "a x y z b x y z c x y z"; strings.Join(got, " ") != want {
		s.Errorf("Stats lists %v, want %s", got, want)
	}
}

func epochs(s *script) {
	other := s.with(Options{Topic: defaults, MaxBytes: scriptBytes})
	if a, b := s.engine.Epoch(), other.engine.Epoch(); a == "" || a == b {
		s.Errorf("two runs have the epochs %q and %q", a, b)
	}
	if first, second := s.engine.Epoch(), s.engine.Epoch(); first != second {
		s.Error("the epoch changes while the engine runs")
	}
}

func topicAnew(s *script) {
	s.topic(1, 3)
	s.ordered("billing")
	s.publish(0, "a", "b")
	s.ok("DeleteTopic", s.engine.DeleteTopic(s.Context(), "orders"))
	s.refused(core.CodeUnknownTopic, s.engine.DeleteTopic(s.Context(), "orders"))
	s.topic(1, 3)
	s.state(0, "log empty at 0, backlog 0/3")
	g := s.ordered("billing")
	s.publish(0, "c")
	g.poll("c1", 10, "0:0=c")
}
