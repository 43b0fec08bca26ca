// Package clients_test runs the example clients of every language against a real
// sidecar, and against one that refuses as a busy one does.
package clients_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/podmq/podmq/pkg/core"
	"github.com/podmq/podmq/pkg/core/memory"
	"github.com/podmq/podmq/pkg/transport"
	"github.com/podmq/podmq/pkg/transport/client"
)

// A language is one directory of examples.
type language struct {
	name    string
	argv    []string // its interpreter and the program
	install string   // the Debian package that has the interpreter
	exit    int      // its code after SIGTERM
}

var languages = []language{
	{"python", []string{"python3", "python/podmq.py"}, "python3", 0},
	{"node", []string{"node", "node/podmq.mjs"}, "nodejs", 0},
	{"ruby", []string{"ruby", "ruby/podmq.rb"}, "ruby", 0},
	{"php", []string{"php", "php/podmq.php"}, "php-cli", 0},
	{"java", []string{"java", "java/PodMQ.java"}, "openjdk-17-jdk-headless", 128 + int(syscall.SIGTERM)}, // a JVM's way to end in order
	{"shell", []string{"sh", "shell/podmq.sh"}, "curl", 0},
}

// each runs a test for each language that this machine has. In CI it must have
// them all.
func each(t *testing.T, test func(t *testing.T, l *language)) {
	for i := range languages {
		l := &languages[i]
		t.Run(l.name, func(t *testing.T) {
			need(t, l.argv[0], l.install)
			if l.name == "shell" {
				need(t, "curl", l.install)
			}
			test(t, l)
		})
	}
}

func need(t *testing.T, program, install string) {
	t.Helper()
	if _, err := exec.LookPath(program); err == nil {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is missing: apt-get install %s", program, install)
	}
	t.Skipf("NOT TESTED: %s is missing: apt-get install %s", program, install)
}

func (l *language) start(t *testing.T, socket string, args ...string) *process {
	t.Helper()
	return start(t, l.name+" "+args[0], []string{socket}, slices.Concat(l.argv, args)...)
}

// stop ends a consumer.
func (l *language) stop(t *testing.T, consumer *process) {
	t.Helper()
	if code := consumer.signal(syscall.SIGTERM); code != l.exit {
		t.Errorf("the consumer ended with code %d, want %d; it complained:%s", code, l.exit, consumer.complaints())
	}
}

// stopParked ends a consumer while its poll is parked, and checks that it leaves
// its group. (A client that hangs up and leaves in the moment in which its poll
// arrives may stay a member for its session timeout.)
func (l *language) stopParked(t *testing.T, consumer *process, e core.Engine) {
	t.Helper()
	look := func() core.GroupStats {
		g, err := e.Group(t.Context(), "orders", "billing")
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	for giveUp := time.After(patience); look().PollsWaiting != 1; {
		select {
		case <-time.After(time.Millisecond):
		case <-giveUp:
			t.Fatalf("the group is %+v, want a parked poll; the consumer complained:%s", look(), consumer.complaints())
		}
	}
	l.stop(t, consumer)
	if g := look(); len(g.Members) != 0 || g.Cursors[0].Committed != 1 {
		t.Errorf("after the consumer's end its group is %+v, want its message acked and no members", g)
	}
}

func TestClientsSurviveAKilledBroker(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, l *language) {
		t.Parallel()
		const capacity, count = 8, 20
		b := startBroker(t, fmt.Sprintf("orders?capacity=%d&groups=billing", capacity))

		// With nobody to consume, the producer is caught in the middle for certain:
		// waiting for room. The broker dies then.
		producer := l.start(t, b.env[0], "produce", "orders", strconv.Itoa(count))
		for i := 1; i <= capacity; i++ {
			if got, want := producer.next(), fmt.Sprintf("0:%d %s %d", i-1, l.name, i); got != want {
				t.Fatalf("the producer printed %q, want %q", got, want)
			}
		}
		b.kill()
		producer.complains("broker away")
		b.start()

		// The rest arrives in order. Offsets start anew: the broker kept nothing.
		consumer := l.start(t, b.env[0], "consume", "orders", "billing")
		for i := capacity + 1; i <= count; i++ {
			want := fmt.Sprintf("0:%d %s %d", i-1-capacity, l.name, i)
			if got := producer.next(); got != want {
				t.Fatalf("the producer printed %q, want %q", got, want)
			}
			if got := consumer.next(); got != want {
				t.Fatalf("the consumer printed %q, want %q", got, want)
			}
		}
		if code := producer.exit(); code != 0 {
			t.Errorf("the producer ended with code %d; it complained:%s", code, producer.complaints())
		}

		// The consumer is caught in the middle too, and goes on.
		b.kill()
		consumer.complains("broker away")
		b.start()
		for i, payload := range oddPayloads() {
			if _, err := b.client.Publish(t.Context(), "orders", client.Message{Key: []byte("k"), Payload: payload}); err != nil {
				t.Fatalf("cannot publish %.20q: %v; the broker complained:%s", payload, err, b.complaints())
			}
			if got, want := consumer.next(), fmt.Sprintf("0:%d %s", i, payload); got != want {
				t.Errorf("the consumer printed %q, want %q", got, want)
			}
		}
		l.stop(t, consumer)
	})
}

// oddPayloads hold every byte but the one that ends a line of output.
func oddPayloads() [][]byte {
	all := make([]byte, 0, 255)
	for b := range 256 {
		if b != '\n' {
			all = append(all, byte(b))
		}
	}
	return [][]byte{all, {}, []byte("grün 🙂 \\ \" %41+%"), bytes.Repeat([]byte("long "), 20_000), []byte("\xff")}
}

// A moody engine refuses the first calls of each kind.
type moody struct {
	core.Engine
	publishes, polls, acks atomic.Int32
}

func (m *moody) Publish(ctx context.Context, topic string, r *core.PublishRequest, to []core.Placement) ([]core.Placement, error) {
	switch m.publishes.Add(1) {
	case 1:
		return to, &core.Error{Code: core.CodePartitionFull, Detail: "cannot publish: full", RetryAfter: time.Second}
	case 2:
		return to, &core.Error{Code: core.CodeDraining, Detail: "cannot publish: draining", RetryAfter: time.Second}
	}
	return m.Engine.Publish(ctx, topic, r, to)
}

func (m *moody) Poll(ctx context.Context, topic, group string, r *core.PollRequest, b *core.Batch) error {
	switch m.polls.Add(1) {
	case 1:
		return &core.Error{Code: core.CodeDraining, Detail: "cannot poll: draining", RetryAfter: time.Second}
	case 2:
		return core.Errorf(core.CodeUnknownGroup, "cannot poll: no such group")
	}
	return m.Engine.Poll(ctx, topic, group, r, b)
}

func (m *moody) Ack(ctx context.Context, topic, group string, r *core.AckRequest) (core.Settled, error) {
	if m.acks.Add(1) == 1 { // stale, and the messages come again
		for _, receipt := range r.Receipts {
			if err := m.Engine.Return(ctx, topic, group, &receipt); err != nil {
				return core.Settled{}, err
			}
		}
		return core.Settled{}, core.Errorf(core.CodeStaleReceipt, "cannot ack: handed out again since")
	}
	return m.Engine.Ack(ctx, topic, group, r)
}

func TestClientsGoOnAfterRefusals(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, l *language) {
		t.Parallel()
		engine := memory.New(memory.Options{Topic: core.TopicSettings{Partitions: 1, Capacity: 8, AckTimeout: time.Minute}, MaxBytes: 1 << 20})
		t.Cleanup(func() { _ = engine.Close() })
		if _, err := engine.CreateTopic(t.Context(), "orders", core.TopicSpec{}); err != nil {
			t.Fatal(err)
		}
		if _, err := engine.CreateGroup(t.Context(), "orders", "billing", core.GroupSpec{}); err != nil {
			t.Fatal(err)
		}
		m := &moody{Engine: engine}
		socket := serve(t, m)

		producer := l.start(t, "PODMQ_SOCKET="+socket, "produce", "orders", "1")
		want := fmt.Sprintf("0:0 %s 1", l.name)
		if got := producer.next(); got != want {
			t.Errorf("the producer printed %q, want %q", got, want)
		}
		if code := producer.exit(); code != 0 || m.publishes.Load() != 3 {
			t.Errorf("the producer ended with code %d after %d publishes, want 0 after 3", code, m.publishes.Load())
		}

		consumer := l.start(t, "PODMQ_SOCKET="+socket, "consume", "orders", "billing")
		for range 2 { // the first time its ack is refused
			if got := consumer.next(); got != want {
				t.Errorf("the consumer printed %q, want %q", got, want)
			}
		}
		consumer.complains("stale")
		l.stopParked(t, consumer, engine)
	})
}

// serve serves an engine on a socket.
func serve(t *testing.T, e core.Engine) (socket string) {
	t.Helper()
	socket = filepath.Join(socketDir(t), "podmq.sock")
	l, err := transport.Listen(socket, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	s := transport.NewServer(transport.Config{Engine: e, MaxMessageBytes: core.DefaultMessageBytes, TopicAdmin: true, InflightBytes: 32 << 20})
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		e.Drain()
		if err := s.Shutdown(context.Background()); err != nil {
			t.Errorf("Shutdown returned %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("Serve returned %v", err)
		}
	})
	return socket
}

func TestFramesInTenLinesOfPython(t *testing.T) {
	t.Parallel()
	need(t, "python3", "python3")
	b := startBroker(t, "orders?groups=billing")
	p := start(t, "frames.py", b.env[:1], "python3", "python/frames.py", "orders", "billing")
	all := make([]string, 256)
	for i := range all {
		all[i] = fmt.Sprintf("%02x", i)
	}
	for i, payload := range []string{fmt.Sprintf("%x", "plain"), "", strings.Join(all, "")} {
		if got, want := p.next(), fmt.Sprintf("0:%d %s", i, payload); got != want {
			t.Errorf("it printed %q, want %q", got, want)
		}
	}
	if code := p.exit(); code != 0 {
		t.Errorf("it ended with code %d and complained:%s", code, p.complaints())
	}
	topic, err := b.client.Topic(t.Context(), "orders")
	if err != nil || topic.Partitions[0].Groups[0].Committed != 3 {
		t.Errorf("the topic is %+v, %v, want 3 messages acked", topic, err)
	}
}
