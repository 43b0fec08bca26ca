package client_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/podmq/podmq/pkg/core"
	"github.com/podmq/podmq/pkg/core/memory"
	"github.com/podmq/podmq/pkg/transport"
	"github.com/podmq/podmq/pkg/transport/client"
)

// patience is when a wait for something that must happen is given up. No test
// passes or fails by how long anything takes below it.
const patience = time.Minute

// A broker is one that runs in the test's process, on a real socket.
type broker struct {
	t      *testing.T
	path   string
	engine core.Engine
	server *transport.Server
	served chan error
	*client.Client
}

// startBroker starts one with a topic "orders" of its own settings, and with
// these groups.
func startBroker(t *testing.T, settings core.TopicSettings, groups ...string) *broker {
	t.Helper()
	dir, err := os.MkdirTemp("", "podmq") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	b := &broker{t: t, path: filepath.Join(dir, "s")}
	b.Client = dial(t, b.path)
	b.run(memory.New(memory.Options{Topic: settings, MaxBytes: 64 << 20}), groups...)
	t.Cleanup(b.stop)
	return b
}

func dial(t *testing.T, address string) *client.Client {
	t.Helper()
	c, err := client.New(client.Config{Address: address, DialRetry: patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// run serves an engine, in the place of the one before.
func (b *broker) run(e core.Engine, groups ...string) {
	b.t.Helper()
	l, err := transport.Listen(b.path, 0o600)
	if err != nil {
		b.t.Fatal(err)
	}
	b.engine, b.served = e, make(chan error, 1)
	for _, err := range prepare(e, groups) {
		b.t.Fatal(err)
	}
	b.server = transport.NewServer(transport.Config{Engine: e, TopicAdmin: true})
	go func(s *transport.Server, l net.Listener, served chan<- error) { served <- s.Serve(l) }(b.server, l, b.served)
}

func prepare(e core.Engine, groups []string) (errs []error) {
	_, err := e.CreateTopic(context.Background(), "orders", core.TopicSpec{})
	for _, g := range groups {
		if err == nil {
			_, err = e.CreateGroup(context.Background(), "orders", g, core.GroupSpec{})
		}
	}
	if err != nil {
		return []error{err}
	}
	return nil
}

// stop ends it as SIGTERM does, unless it is ended.
func (b *broker) stop() {
	if b.server == nil {
		return
	}
	b.engine.Drain()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := b.server.Shutdown(ctx); err != nil {
		b.t.Errorf("Shutdown returned %v", err)
	}
	if err := <-b.served; err != nil {
		b.t.Errorf("Serve returned %v", err)
	}
	_ = b.engine.Close()
	b.server = nil
}

// one is a topic with one partition.
var one = core.TopicSettings{Partitions: 1, Capacity: 1024, AckTimeout: time.Minute}

func (b *broker) publish(payloads ...string) {
	b.t.Helper()
	publish(b.t, b.Client, payloads...)
}

func publish(t *testing.T, c *client.Client, payloads ...string) {
	t.Helper()
	ms := make([]client.Message, len(payloads))
	for i, p := range payloads {
		ms[i] = client.Message{Key: []byte("k"), Payload: []byte(p)}
	}
	if _, err := c.PublishBatch(t.Context(), "orders", ms); err != nil {
		t.Fatal(err)
	}
}

// A consumption is a Consume in the background.
type consumption struct {
	t      *testing.T
	cancel context.CancelFunc
	got    chan *client.Delivery // what the handler got
	errs   chan error            // what OnError was told
	ended  chan error            // what Consume returned
}

// consume starts one. Its handler is work, after it has noted the delivery.
func consume(t *testing.T, c *client.Client, cfg client.ConsumeConfig, work client.Handler) *consumption {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	k := &consumption{
		t: t, cancel: cancel, got: make(chan *client.Delivery, 4096), errs: make(chan error, 4096), ended: make(chan error, 1),
	}
	cfg.Topic, cfg.OnError = "orders", func(err error) { k.errs <- err }
	go func() {
		k.ended <- c.Consume(ctx, cfg, func(ctx context.Context, d *client.Delivery) error {
			k.got <- d
			return work(ctx, d)
		})
	}()
	t.Cleanup(k.end)
	return k
}

// end ends it. It may be called again.
func (k *consumption) end() {
	k.t.Helper()
	k.cancel()
	if err := <-k.ended; err != context.Canceled {
		k.t.Errorf("Consume returned %v, want the end of its context", err)
	}
	k.ended <- context.Canceled
}

// next is what the handler gets next.
func (k *consumption) next() *client.Delivery {
	k.t.Helper()
	select {
	case d := <-k.got:
		return d
	case err := <-k.ended:
		k.t.Fatalf("Consume ended with %v", err)
	case <-time.After(patience):
		k.t.Fatalf("the handler was not called within %v", patience)
	}
	return nil
}

// told waits for OnError to be told of this.
func (k *consumption) told(part string) {
	k.t.Helper()
	for giveUp := time.After(patience); ; {
		select {
		case err := <-k.errs:
			if strings.Contains(err.Error(), part) {
				return
			}
		case <-giveUp:
			k.t.Fatalf("OnError was not told of %q within %v", part, patience)
		}
	}
}

func (b *broker) wantCommitted(group string, want int64) {
	b.t.Helper()
	g, err := b.Group(b.t.Context(), "orders", group)
	if err != nil || g.Cursors[0].Committed != want || g.Cursors[0].Next != want {
		b.t.Errorf("group %s is %+v, %v, want committed and next %d", group, g, err, want)
	}
}

// eventually waits for something that no answer or event tells.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for giveUp := time.After(patience); !ok(); {
		select {
		case <-time.After(time.Millisecond):
		case <-giveUp:
			t.Fatalf("it is not so within %v: %s", patience, what)
		}
	}
}

func done(context.Context, *client.Delivery) error { return nil }
