package enginetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

// defaults is what a topic of a script gets that does not say.
var defaults = core.TopicSettings{Partitions: 1, Capacity: 100, AckTimeout: 30 * time.Second}

const scriptBytes = 1 << 20 // of all topics together

// A script talks with one engine. Its methods check what every call promises
// and fail the test where a call is refused that must not be.
type script struct {
	*testing.T
	engine    core.Engine
	open      func(testing.TB, Options) core.Engine
	features  Features
	topicName string
}

func newScript(t *testing.T, open func(testing.TB, Options) core.Engine, features Features) *script {
	s := &script{T: t, open: open, features: features, topicName: "orders"}
	s.engine = s.another(Options{Topic: defaults, MaxBytes: scriptBytes})
	return s
}

// another makes one more engine, closed when the test ends.
func (s *script) another(o Options) core.Engine {
	s.Helper()
	e := s.open(s.T, o)
	s.Cleanup(func() {
		if err := e.Close(); err != nil {
			s.Errorf("Close: %v", err)
		}
	})
	return e
}

// with is the same script with another engine.
func (s *script) with(o Options) *script {
	other := *s
	other.engine = s.another(o)
	return &other
}

// on is the same script about another topic.
func (s *script) on(topic string) *script {
	other := *s
	other.topicName = topic
	return &other
}

func (s *script) ok(what string, err error) {
	s.Helper()
	if err != nil {
		s.Fatalf("%s: %v", what, err)
	}
}

// refused checks that err is a refusal with the code, and that its text is as
// every error text of ours.
func (s *script) refused(code core.Code, err error) {
	s.Helper()
	var e *core.Error
	if !errors.As(err, &e) {
		s.Fatalf("got error %v, want code %s", err, code)
	}
	if e.Code != code {
		s.Fatalf("got %v, want code %s", err, code)
	}
	if !strings.HasPrefix(e.Detail, "cannot ") {
		s.Errorf("the text %q does not begin with \"cannot\"", e.Detail)
	}
}

// names checks that a refusal tells the value, in its text or beside it.
func (s *script) names(err error, value any) {
	s.Helper()
	var e *core.Error
	if !errors.As(err, &e) {
		s.Fatalf("got error %v, want one that names %v", err, value)
	}
	in := func(f core.Field) bool { return fmt.Sprint(f.Value) == fmt.Sprint(value) }
	if !slices.ContainsFunc(e.Fields, in) && !strings.Contains(e.Detail, fmt.Sprint(value)) {
		s.Errorf("%v %v does not name %v", err, e.Fields, value)
	}
}

// topic makes the script's topic.
func (s *script) topic(partitions, capacity int) {
	s.Helper()
	s.topicLike(core.TopicSpec{Partitions: core.Some(partitions), Capacity: core.Some(capacity)})
}

func (s *script) topicLike(spec core.TopicSpec) {
	s.Helper()
	created, err := s.engine.CreateTopic(s.Context(), s.topicName, spec)
	s.ok("CreateTopic", err)
	if !created {
		s.Fatalf("topic %s exists already", s.topicName)
	}
}

// group makes a group of the script's topic.
func (s *script) group(name string, spec core.GroupSpec) *group {
	s.Helper()
	created, err := s.engine.CreateGroup(s.Context(), s.topicName, name, spec)
	s.ok("CreateGroup", err)
	if !created {
		s.Fatalf("group %s exists already", name)
	}
	return &group{s, name, spec.Type.Or(core.Ordered) == core.Queue}
}

func (s *script) ordered(name string) *group { s.Helper(); return s.group(name, core.GroupSpec{}) }

func (s *script) queue(name string) *group {
	s.Helper()
	return s.group(name, core.GroupSpec{Type: core.Some(core.Queue)})
}

// payload makes a message without a key.
func (s *script) payload(payload string) core.Message {
	s.Helper()
	return s.message(core.Content{Payload: []byte(payload)})
}

func (s *script) message(c core.Content) core.Message {
	s.Helper()
	m, err := core.NewMessage(&c, core.DefaultMessageBytes)
	s.ok("NewMessage", err)
	return m
}

// tryPublish publishes payloads to one partition, or to any.
func (s *script) tryPublish(ctx context.Context, wait time.Duration, partition int, payloads ...string) ([]core.Placement, error) {
	s.Helper()
	req := core.PublishRequest{Partition: partition, Wait: wait}
	for _, p := range payloads {
		req.Messages = append(req.Messages, s.payload(p))
	}
	return s.engine.Publish(ctx, s.topicName, &req, nil)
}

// publish stores each payload by a call of its own.
func (s *script) publish(partition int, payloads ...string) {
	s.Helper()
	for _, p := range payloads {
		placed, err := s.tryPublish(s.Context(), 0, partition, p)
		s.ok("Publish "+p, err)
		if len(placed) != 1 || partition != core.AnyPartition && placed[0].Partition != partition {
			s.Fatalf("%s was placed %v, want one place in partition %d", p, placed, partition)
		}
	}
}

// publishKey stores a message under a key and checks where.
func (s *script) publishKey(key, payload string, want core.Placement) {
	s.Helper()
	placed, err := s.tryPublishKey(key, payload)
	s.ok("Publish "+payload, err)
	if len(placed) != 1 || placed[0] != want {
		s.Fatalf("%s was placed %v, want %v", payload, placed, want)
	}
}

func (s *script) tryPublishKey(key, payload string) ([]core.Placement, error) {
	s.Helper()
	m := s.message(core.Content{Key: []byte(key), HasKey: true, Payload: []byte(payload)})
	return s.engine.Publish(s.Context(), s.topicName, &core.PublishRequest{Messages: []core.Message{m}, Partition: core.AnyPartition}, nil)
}

// stats looks at the script's topic.
func (s *script) stats() core.TopicStats {
	s.Helper()
	ts, err := s.engine.Topic(s.Context(), s.topicName)
	s.ok("Topic", err)
	return ts
}

// state checks one partition, in the words of the seed's trace.
func (s *script) state(partition int, want string) {
	s.Helper()
	if got := describe(s.stats(), partition); got != want {
		s.Fatalf("partition %d:\n got %s\nwant %s", partition, got, want)
	}
}

func describe(ts core.TopicStats, partition int) string {
	p := ts.Partitions[partition]
	var b strings.Builder
	if p.Start == p.End {
		fmt.Fprintf(&b, "log empty at %d", p.End)
	} else {
		fmt.Fprintf(&b, "log %d..%d", p.Start, p.End-1)
	}
	fmt.Fprintf(&b, ", backlog %d/%d", p.Backlog, ts.Settings.Capacity)
	for _, g := range ts.Groups {
		c := g.Cursors[partition]
		fmt.Fprintf(&b, ", %s committed %d next %d", g.Name, c.Committed, c.Next)
	}
	return b.String()
}

// pass lets time pass, and whatever comes of it happen.
func (s *script) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}
