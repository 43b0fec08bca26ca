package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/podmq/podmq/pkg/core"
	"github.com/podmq/podmq/pkg/transport/client"
)

// longest is the longest that a call may wait: a test that ends before it has
// seen the call end early.
var longest = url.Values{"wait": {"60s"}}

// parked is a broker on which everything that can hang, hangs.
type parked struct {
	*child
	polls    []*request
	publish  *request
	slow     *request // asked for more than a socket's buffers hold, and does not read
	halfSent net.Conn
}

const parkedSettings = "full?capacity=1&groups=g; quiet?groups=g; large?groups=g"

func startParked(t *testing.T, settings map[string]string) *parked {
	t.Helper()
	settings["PODMQ_TOPICS"] = parkedSettings
	p := &parked{child: startChild(t, settings)}
	k := p.client()
	ctx := context.Background()
	if _, err := k.Publish(ctx, "full", client.Message{Payload: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	for i := range 16 {
		big := client.Message{Payload: make([]byte, 512<<10)}
		if _, err := k.Publish(ctx, "large", big); err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
	}
	p.slow = p.post("large/groups/g/poll", url.Values{"max": {"100"}, "max-bytes": {"8MiB"}}, "")
	for range 3 {
		p.polls = append(p.polls, p.post("quiet/groups/g/poll", longest, ""))
	}
	p.publish = p.post("full/messages", longest, "y")
	var err error
	if p.halfSent, err = net.Dial("unix", p.socket); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.halfSent.Close() })
	if _, err := p.halfSent.Write([]byte("POST /v1/topics/quiet/messages HTTP/1.1\r\nHost: podmq\r\nContent-Length: 100\r\n\r\nhalf")); err != nil {
		t.Fatal(err)
	}
	p.awaitMetric(`podmq_polls_waiting{group="g",topic="quiet"}`, 3)
	p.awaitMetric(`podmq_publish_waiting{topic="full"}`, 1)
	p.awaitMetric(`podmq_group_in_flight{group="g",topic="large"}`, 16)
	return p
}

func (p *parked) expectAllAnswered() {
	p.t.Helper()
	for i, poll := range p.polls {
		poll.expect(fmt.Sprintf("parked poll %d", i), 503, `"draining"`)
	}
	p.publish.expect("waiting publish", 503, `"draining"`)
}

func TestG24NativeModeAnswersWhatIsParkedAndLeaves(t *testing.T) {
	for _, s := range []os.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			p := startParked(t, map[string]string{})
			p.signal(s)
			p.expectAllAnswered()
			if code := p.exitCode(); code != exitOK {
				t.Errorf("exit code %d, want 0:\n%s", code, p.log)
			}
			if _, err := os.Lstat(p.socket); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the socket is left behind: %v", err)
			}
		})
	}
}

func TestG24ContainerModeServesTheAppsLastCalls(t *testing.T) {
	t.Parallel()
	p := startParked(t, map[string]string{"PODMQ_SIDECAR_MODE": "container", "PODMQ_DRAIN_TIMEOUT": "60s"})
	ctx := context.Background()
	k := p.client()
	full, err := k.Poll(ctx, "full", "g", client.PollRequest{})
	if err != nil || len(full.Messages) != 1 {
		t.Fatalf("poll: %+v, %v", full, err)
	}

	p.signal(syscall.SIGTERM)
	p.expectAllAnswered()
	if status, body := p.health("/readyz"); status != 503 || !strings.Contains(body, "draining") {
		t.Errorf("/readyz is %d %s, want 503", status, body)
	}
	if status, _ := p.health("/livez"); status != 200 {
		t.Errorf("/livez is %d while draining", status)
	}
	if _, err := k.Publish(ctx, "quiet", client.Message{Payload: []byte("last")}); err != nil {
		t.Errorf("publish while draining: %v", err)
	}
	last, err := k.Poll(ctx, "quiet", "g", client.PollRequest{Wait: core.MaxWait})
	if err != nil || len(last.Messages) != 1 {
		t.Fatalf("poll of what is there while draining: %+v, %v", last, err)
	}
	if _, err := k.Poll(ctx, "full", "g", client.PollRequest{Wait: core.MaxWait}); core.CodeOf(err) != core.CodeDraining {
		t.Errorf("poll of nothing while draining: %v, want draining", err)
	}
	for topic, b := range map[string]*client.Batch{"full": full, "quiet": last} {
		if _, err := k.Ack(ctx, topic, "g", b.Receipt); err != nil {
			t.Errorf("ack while draining: %v", err)
		}
	}
	_ = p.slow.conn.Close() // its lease is given back: nothing is out any more
	_ = p.halfSent.Close()
	if code := p.exitCode(); code != exitOK {
		t.Errorf("exit code %d, want 0:\n%s", code, p.log)
	}
	if e := p.log.await(t, "drained", p.ended); e["ended_by"] != "quiet" {
		t.Errorf("the drain was ended by %v, want quiet", e["ended_by"])
	}
}

func TestG24ADrainEndsAtItsTimeoutWithALeaseOut(t *testing.T) {
	t.Parallel()
	p := startParked(t, map[string]string{"PODMQ_SIDECAR_MODE": "container", "PODMQ_DRAIN_TIMEOUT": "300ms"})
	p.signal(syscall.SIGTERM)
	if code := p.exitCode(); code != exitOK {
		t.Errorf("exit code %d, want 0:\n%s", code, p.log)
	}
	if e := p.log.await(t, "drained", p.ended); e["ended_by"] != "timeout" {
		t.Errorf("the drain was ended by %v, want timeout", e["ended_by"])
	}
}

func TestAKilledBrokerIsReplacedOnItsSocket(t *testing.T) {
	t.Parallel()
	settings := map[string]string{"PODMQ_TOPICS": "orders?groups=g"}
	first := startChild(t, settings)
	k := first.client() // it goes on, as an app's does
	ctx := context.Background()
	if _, err := k.Publish(ctx, "orders", client.Message{Payload: []byte("before")}); err != nil {
		t.Fatal(err)
	}
	epoch := k.Epoch()
	first.signal(syscall.SIGKILL)
	<-first.ended
	if info, err := os.Lstat(first.socket); err != nil || info.Mode().Type() != os.ModeSocket {
		t.Fatalf("no stale socket to replace: %v", err)
	}

	second := newChild(t, first.socket, settings).start(true)
	placed, err := k.Publish(ctx, "orders", client.Message{Payload: []byte("after")})
	if err != nil {
		// A connection that was kept from before the kill may fail once.
		placed, err = k.Publish(ctx, "orders", client.Message{Payload: []byte("after")})
	}
	if err != nil || placed.Offset != 0 || k.Epoch() == epoch || k.Epoch() == "" {
		t.Errorf("publish after the restart: %+v, %v, epoch %q after %q", placed, err, k.Epoch(), epoch)
	}
	second.signal(syscall.SIGTERM)
	if code := second.exitCode(); code != exitOK {
		t.Errorf("exit code %d, want 0", code)
	}
}

func TestASecondBrokerOnTheSocketIsRefused(t *testing.T) {
	t.Parallel()
	first := startChild(t, map[string]string{"PODMQ_TOPICS": "orders"})
	second := newChild(t, first.socket, nil).start(false)
	if code := second.exitCode(); code != exitFailure || !strings.Contains(second.log.String(), "another broker runs here") {
		t.Errorf("exit code %d, want 1 and the reason:\n%s", code, second.log)
	}
	if r := first.run(0, "probe"); r.code != 0 || !strings.Contains(r.stdout, "1 topics") {
		t.Errorf("the first broker no longer answers: %+v", r)
	}
}

func TestWhatIsNoSocketIsLeftAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(shortDir(t), "podmq.sock")
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := newChild(t, path, nil).start(false)
	if code := c.exitCode(); code != exitFailure || !strings.Contains(c.log.String(), "a file is there, which is left alone") {
		t.Errorf("exit code %d, want 1 and the reason:\n%s", code, c.log)
	}
	if b, err := os.ReadFile(path); string(b) != "precious" {
		t.Errorf("the file holds %q, %v", b, err)
	}
}

func TestAnotherUserCanUseTheSocketWhateverTheUmask(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: only root can start a process as another user")
	}
	const nobody, app = 65534, 12345
	dir := shortDir(t)
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	c := newChild(t, filepath.Join(dir, "podmq.sock"), map[string]string{"PODMQ_TOPICS": "orders?groups=g"}, "sh", "-c", `umask 077; exec "$@"`, "sh")
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	c.cmd.Dir = "/"
	c.start(true)
	if info, err := os.Stat(c.socket); err != nil || info.Mode().Perm() != 0o666 {
		t.Fatalf("the socket is %v, %v, want 0666", info.Mode(), err)
	}
	if r := c.run(app, "publish", "orders", "hello"); r.code != 0 {
		t.Errorf("publish as another user: %+v", r)
	}
	if r := c.run(app, "poll", "orders", "g", "--ack", "-o", "raw"); r.code != 0 || r.stdout != "hello\n" {
		t.Errorf("poll as another user: %+v", r)
	}

	closed := newChild(t, filepath.Join(dir, "closed.sock"), map[string]string{"PODMQ_SOCKET_MODE": "0600"})
	closed.cmd.SysProcAttr = c.cmd.SysProcAttr
	closed.cmd.Dir = "/"
	closed.start(true)
	if r := closed.run(app, "probe"); r.code != exitFailure || !strings.Contains(r.stderr, "permission denied") {
		t.Errorf("probe of a socket of mode 0600 as another user: %+v", r)
	}
}

func TestBadSettingsStartNothing(t *testing.T) {
	t.Parallel()
	c := newChild(t, filepath.Join(shortDir(t), "podmq.sock"), map[string]string{
		"PODMQ_CAPACITY": "none", "PODMQ_TOPICS": "a?b=c", "PODMQ_GROUPS": "nosuch/group",
	}).start(false)
	if code := c.exitCode(); code != exitSettings {
		t.Errorf("exit code %d, want 2", code)
	}
	log := c.log.String()
	for _, want := range []string{"PODMQ_CAPACITY: ", "PODMQ_TOPICS, entry 1 (a?b=c): ", "topic nosuch is not in PODMQ_TOPICS"} {
		if !strings.Contains(log, want) {
			t.Errorf("no %q in\n%s", want, log)
		}
	}
	if strings.Count(log, "\n") != 3 {
		t.Errorf("want a line for each of three faults and nothing else:\n%s", log)
	}
	if _, err := os.Lstat(c.socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a socket was made: %v", err)
	}
}

func TestAProbeStartedBeforeItsBrokerWaitsForIt(t *testing.T) {
	t.Parallel()
	c := newChild(t, filepath.Join(shortDir(t), "podmq.sock"), nil)
	if r := c.run(0, "probe"); r.code != exitFailure || !strings.Contains(r.stderr, "cannot reach a broker at "+c.socket) {
		t.Errorf("probe without a broker: %+v", r)
	}
	probed := make(chan result)
	go func() { probed <- c.run(0, "probe", "--wait=30s") }()
	c.start(true)
	if r := <-probed; r.code != 0 || !strings.Contains(r.stdout, "a broker answers at "+c.socket) {
		t.Errorf("probe --wait: %+v", r)
	}
}

func TestTheProgramIsStampedAndSmall(t *testing.T) {
	t.Parallel()
	c := newChild(t, filepath.Join(shortDir(t), "podmq.sock"), nil)
	if r := c.run(0, "version"); r.code != 0 || !strings.HasPrefix(r.stdout, "sidecar v0.0.0-test (commit ") {
		t.Errorf("version: %+v", r)
	}
	if raceEnabled {
		return // the race detector's own code is in it
	}
	info, err := os.Stat(programPath(t))
	if err != nil {
		t.Fatal(err)
	}
	if most := int64(16_000_000); info.Size() >= most {
		t.Errorf("the program has %d bytes, want less than %d", info.Size(), most)
	}
}
