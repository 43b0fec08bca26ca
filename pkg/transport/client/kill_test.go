package client_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/podmq/podmq/pkg/transport/client"
)

// A sidecar is a real process.
type sidecar struct {
	t       *testing.T
	program string
	socket  string
	cmd     *exec.Cmd
}

func startSidecar(t *testing.T) *sidecar {
	t.Helper()
	dir, err := os.MkdirTemp("", "podmq") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &sidecar{t: t, program: filepath.Join(dir, "sidecar"), socket: filepath.Join(dir, "s")}
	if out, err := exec.Command("go", "build", "-o", s.program, "github.com/podmq/podmq/cmd/sidecar").CombinedOutput(); err != nil {
		t.Fatalf("cannot build the sidecar: %v\n%s", err, out)
	}
	s.start()
	t.Cleanup(s.kill)
	return s
}

func (s *sidecar) start() {
	s.t.Helper()
	s.cmd = exec.Command(s.program)
	s.cmd.Env = append(os.Environ(), "PODMQ_SOCKET="+s.socket, "PODMQ_METRICS_ADDR=127.0.0.1:0", "PODMQ_TOPICS=orders?groups=billing")
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
}

// kill is kill -9.
func (s *sidecar) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

func TestConsumeOutlivesAKilledBroker(t *testing.T) {
	t.Parallel()
	s := startSidecar(t)
	c := dial(t, s.socket)
	publish(t, c, "a", "b", "c")
	handling, release := make(chan struct{}, 1), make(chan struct{})
	k := consume(t, c, client.ConsumeConfig{Group: "billing"}, func(_ context.Context, d *client.Delivery) error {
		if string(d.Payload) == "a" {
			handling <- struct{}{}
			<-release
		}
		return nil
	})
	<-handling
	s.kill()
	s.start()
	close(release)
	k.told("ack of 0:0 refused: stale_receipt")
	publish(t, c, "d") // to the declared group, which is there again
	for _, want := range []string{"a", "b", "c", "d"} {
		if d := k.next(); string(d.Payload) != want {
			t.Errorf("the handler got %q, want %q", d.Payload, want)
		}
	}

	eventually(t, "the poll that acks d has arrived", func() bool {
		g, err := c.Group(t.Context(), "orders", "billing")
		return err == nil && g.Cursors[0].Committed == 1
	})
	s.kill()
	k.told("poll failed: ")
	s.start()
	publish(t, c, "e")
	if d := k.next(); string(d.Payload) != "e" || d.Offset != 0 {
		t.Errorf("the handler got %d:%q, want 0:e", d.Offset, d.Payload)
	}
	k.end()
}
