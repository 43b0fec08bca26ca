package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/podmq/podmq/pkg/core"
	"github.com/podmq/podmq/pkg/transport/client"
)

// A stuck consumer is a process that has a message, and cannot get done with it:
// its output goes into a pipe that nobody reads.
type stuck struct {
	cmd    *exec.Cmd
	output *os.File // of its pipe, the end to read
}

// work is more than a pipe holds.
var work = bytes.Repeat([]byte("work"), 64<<10)

// startStuck publishes work and lets a process take it.
func (c *child) startStuck(k *client.Client) *stuck {
	c.t.Helper()
	if _, err := k.Publish(context.Background(), "orders", client.Message{Payload: work}); err != nil {
		c.t.Fatal(err)
	}
	output, input, err := os.Pipe()
	if err != nil {
		c.t.Fatal(err)
	}
	s := &stuck{exec.Command(programPath(c.t), "poll", "orders", "g", "--ack", "--follow", "-o", "raw"), output}
	s.cmd.Env = []string{"PODMQ_SOCKET=" + c.socket}
	s.cmd.Stdout = input
	if err := s.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	_ = input.Close()
	c.t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		_ = output.Close()
	})
	c.awaitMetric(`podmq_group_in_flight{group="g",topic="orders"}`, 1)
	return s
}

func (s *stuck) signal(t *testing.T, sig os.Signal) {
	t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

func startForStuck(t *testing.T) (*child, *client.Client) {
	t.Helper()
	c := startChild(t, map[string]string{"PODMQ_TOPICS": "orders?ack-timeout=1s", "PODMQ_GROUPS": "orders/g?type=queue"})
	return c, c.client()
}

func TestG3TheMessagesOfAKilledConsumerComeBack(t *testing.T) {
	t.Parallel()
	c, k := startForStuck(t)
	s := c.startStuck(k)
	s.signal(t, syscall.SIGKILL)
	b, err := k.Poll(context.Background(), "orders", "g", client.PollRequest{Wait: core.MaxWait})
	if err != nil || len(b.Messages) != 1 || b.Messages[0].Attempt != 2 || !bytes.Equal(b.Messages[0].Payload, work) {
		t.Errorf("got %+v, %v; want the message again, as its second attempt", b, err)
	}
}

func TestG3AParkedConsumerThatIsKilledGetsNothing(t *testing.T) {
	t.Parallel()
	c, k := startForStuck(t)
	parked := exec.Command(programPath(t), "poll", "orders", "g", "--ack", "--follow")
	parked.Env = []string{"PODMQ_SOCKET=" + c.socket}
	if err := parked.Start(); err != nil {
		t.Fatal(err)
	}
	c.awaitMetric(`podmq_polls_waiting{group="g",topic="orders"}`, 1)
	if err := parked.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parked.Wait()
	c.awaitMetric(`podmq_polls_waiting{group="g",topic="orders"}`, 0)
	if _, err := k.Publish(context.Background(), "orders", client.Message{Payload: work}); err != nil {
		t.Fatal(err)
	}
	b, err := k.Poll(context.Background(), "orders", "g", client.PollRequest{})
	if err != nil || len(b.Messages) != 1 || b.Messages[0].Attempt != 1 {
		t.Errorf("got %+v, %v; want the message at once, as its first attempt", b, err)
	}
}

// A consumer that hangs (a full disk, a paused virtual machine) wakes up after
// its lease and acks what another is working on.
func TestG9AConsumerThatWasStoppedCannotAckForAnother(t *testing.T) {
	t.Parallel()
	c, k := startForStuck(t)
	ctx := context.Background()
	s := c.startStuck(k)
	s.signal(t, syscall.SIGSTOP)
	b, err := k.Poll(ctx, "orders", "g", client.PollRequest{Member: "other", Wait: core.MaxWait})
	if err != nil || len(b.Messages) != 1 {
		t.Fatalf("got %+v, %v; want the message again", b, err)
	}
	if _, err := k.Extend(ctx, "orders", "g", b.Receipt, core.MaxWait); err != nil {
		t.Fatal(err)
	}

	go func() { _, _ = io.Copy(io.Discard, s.output) }() // ends with the pipe
	s.signal(t, syscall.SIGCONT)
	c.awaitMetric(`podmq_http_requests_total{code="409",route="poll"}`, 1) // its ack came, and was stale
	g, err := k.Group(ctx, "orders", "g")
	if err != nil || g.Cursors[0].Lag != 1 {
		t.Errorf("the group is %+v, %v; want its message unacked", g, err)
	}
	if settled, err := k.Ack(ctx, "orders", "g", b.Receipt); err != nil || settled.Late || len(settled.Stale) > 0 {
		t.Errorf("the ack of the other: %+v, %v", settled, err)
	}
}
