package loadgen

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/podmq/podmq/pkg/core"
	"github.com/podmq/podmq/pkg/core/memory"
	"github.com/podmq/podmq/pkg/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve is a broker on a socket of its own.
func serve(t *testing.T, w Work) (*Broker, *transport.Server) {
	t.Helper()
	engine := memory.New(memory.Options{MaxBytes: 1 << 30})
	t.Cleanup(func() { _ = engine.Close() })
	spec := core.TopicSpec{Partitions: core.Some(2), Capacity: core.Some(core.MaxCapacity)}
	if _, err := engine.CreateTopic(context.Background(), "t", spec); err != nil {
		t.Fatal(err)
	}
	for i := range w.Groups {
		if _, err := engine.CreateGroup(context.Background(), "t", Group(i), core.GroupSpec{}); err != nil {
			t.Fatal(err)
		}
	}
	dir, err := os.MkdirTemp("", "loadgen") // shorter than t.TempDir, for the socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	b := &Broker{Network: "unix", Address: filepath.Join(dir, "s"), Topic: "t", Format: Frames}
	l, err := transport.Listen(b.Address, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	server := transport.NewServer(transport.Config{Engine: engine})
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		engine.Drain()
		if err := errors.Join(server.Shutdown(context.Background()), <-served); err != nil {
			t.Error(err)
		}
	})
	return b, server
}

func drive(ctx context.Context, t *testing.T, b *Broker, w Work, loops int) (*Meter, error) {
	t.Helper()
	m := NewMeter(w)
	talks, err := b.Talks(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	return m, Drive(ctx, m.Tally, loops, talks, func() error { return nil })
}

func TestEveryMessageIsDeliveredOnceToEachGroup(t *testing.T) {
	for name, c := range map[string]struct {
		work   Work
		format Format
		loops  int
	}{
		"one by one":         {Work{Producers: 3, Consumers: 2, Groups: 1, Batch: 1, Size: 64}, Frames, 1},
		"frames, two loops":  {Work{Producers: 3, Consumers: 4, Groups: 2, Batch: 10, Size: 256, Window: 500}, Frames, 2},
		"JSON":               {Work{Producers: 2, Consumers: 3, Groups: 3, Batch: 10, Size: 100}, JSON, 1},
		"beyond one buffer":  {Work{Producers: 2, Consumers: 1, Groups: 1, Batch: 20, Size: 70_000, Window: 100}, Frames, 1},
		"at a rate":          {Work{Producers: 2, Consumers: 1, Groups: 1, Batch: 2, Size: 32, Rate: 10_000}, Frames, 1},
		"without a consumer": {Work{Producers: 2, Groups: 1, Batch: 1, Size: 32}, Frames, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.work.Duration = 30 * time.Millisecond
			b, _ := serve(t, c.work)
			b.Format = c.format
			m, err := drive(t.Context(), t, b, c.work, c.loops)
			if err != nil {
				t.Fatal(err)
			}
			want := m.Tally.Stored() * uint64(c.work.Groups)
			if c.work.Consumers == 0 {
				want = 0
			}
			if m.Tally.Stored() == 0 || m.Tally.Delivered() != want {
				t.Errorf("%d stored, %d delivered, want %d", m.Tally.Stored(), m.Tally.Delivered(), want)
			}
			if n := m.Publish().TotalCount(); n*int64(c.work.Batch) != int64(m.Tally.Stored()) {
				t.Errorf("%d latencies of batches of %d for %d messages", n, c.work.Batch, m.Tally.Stored())
			}
			if n := m.Delivery().TotalCount(); c.work.Rate > 0 && n != int64(m.Tally.Delivered()) {
				t.Errorf("%d latencies of %d deliveries", n, m.Tally.Delivered())
			}
		})
	}
}

func TestAnInterruptedRunEndsWithAllDelivered(t *testing.T) {
	t.Parallel()
	w := Work{Producers: 2, Consumers: 1, Groups: 1, Batch: 1, Size: 32, Duration: time.Hour}
	b, _ := serve(t, w)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m, err := drive(ctx, t, b, w, 1)
	if err != nil || m.Tally.Delivered() != m.Tally.Stored() {
		t.Errorf("%v; %d stored, %d delivered", err, m.Tally.Stored(), m.Tally.Delivered())
	}
}

func TestABrokerThatLeavesEndsARun(t *testing.T) {
	t.Parallel()
	w := Work{Producers: 2, Consumers: 1, Groups: 1, Batch: 1, Size: 32, Duration: time.Hour}
	b, server := serve(t, w)
	m := NewMeter(w)
	talks, err := b.Talks(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for m.Tally.Delivered() == 0 && t.Context().Err() == nil {
			<-time.After(time.Millisecond)
		}
		gone, cancel := context.WithCancel(context.Background())
		cancel()
		_ = server.Shutdown(gone)
	}()
	if err := Drive(t.Context(), m.Tally, 2, talks, func() error { return nil }); err == nil {
		t.Error("no error")
	}
}

func TestARefusalSaysWhatTheBrokerSaid(t *testing.T) {
	t.Parallel()
	w := Work{Producers: 1, Batch: 1, Size: core.DefaultMessageBytes + 1, Duration: time.Hour}
	b, _ := serve(t, w)
	_, err := drive(t.Context(), t, b, w, 1)
	if err == nil || !strings.Contains(err.Error(), "413") || !strings.Contains(err.Error(), string(core.CodeTooLarge)) {
		t.Errorf("got %v", err)
	}
}

func TestNobodyToDialIsAnError(t *testing.T) {
	t.Parallel()
	if _, err := DialAll(t.Context(), "unix", filepath.Join(t.TempDir(), "none"), 2); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestAConnectionWithoutADescriptorIsRefused(t *testing.T) {
	t.Parallel()
	l, err := NewLoop(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ours, theirs := net.Pipe()
	defer theirs.Close()
	if err := l.Add(ours, nil); err == nil {
		t.Error("no error")
	}
}
