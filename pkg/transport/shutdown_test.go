package transport

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

// hasty are limits that a test need not wait for long. They may end any client,
// so only those who are to be ended should be clients.
func hasty(s *Server) {
	s.limits = limits{head: time.Millisecond, body: time.Millisecond, write: time.Millisecond, sweep: time.Millisecond}
}

func TestSlowClientsAreEnded(t *testing.T) {
	t.Parallel()
	r := start(t, hasty)
	r.topicInEngine()
	for name, text := range map[string]string{
		"half a head":    "GET /v1/topics HTTP/1.1\r\nHost: ",
		"half a body":    strings.TrimSuffix(request(publishT, "half"), "lf"),
		"a large one":    strings.TrimSuffix(request(publishT, strings.Repeat("x", 100_000)), "x"),
		"half a chunk":   request(publishT, "", "Transfer-Encoding: chunked") + "5\r\nhal",
		"an unread body": strings.TrimSuffix(request("POST /nowhere", "half"), "lf"),
	} {
		w := r.wire()
		w.send(text)
		b, err := io.ReadAll(w.in)
		if err != nil && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%s: %q, %v", name, b, err)
		}
		if strings.Contains(string(b), "201") {
			t.Errorf("%s was stored: %s", name, b)
		}
	}
	r.budgetIsWhole()
	if lag := r.group().Cursors[0].Lag; lag != 0 {
		t.Errorf("%d messages were stored", lag)
	}
}

func TestG3AClientThatStopsReadingIsEndedAndItsBatchGivenBack(t *testing.T) {
	t.Parallel()
	r := start(t, func(s *Server) {
		s.limits = limits{head: time.Hour, body: time.Hour, write: time.Millisecond, sweep: time.Millisecond}
	})
	r.topicInEngine()
	for range 4 {
		_, err := r.engine.Publish(context.Background(), "t", publishOf(t, strings.Repeat("x", 1<<20-100)), nil)
		r.must(err)
	}
	for _, accept := range []string{"*/*", framesType} {
		w := r.wire()
		w.send(request(pollG+"?max-bytes=16MiB", "", "Accept: "+accept))
		receive(r, "the batch is given back", r.engine.returns) // with the client still there
		r.budgetIsWhole()
	}
}

// topicInEngine makes the topic t with a group g, without a client.
func (r *rig) topicInEngine() {
	r.Helper()
	_, err := r.engine.CreateTopic(context.Background(), "t", core.TopicSpec{})
	r.must(err)
	_, err = r.engine.CreateGroup(context.Background(), "t", "g", core.GroupSpec{})
	r.must(err)
}

func publishOf(t *testing.T, payload string) *core.PublishRequest {
	t.Helper()
	m, err := core.NewMessage(&core.Content{Payload: []byte(payload)}, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return &core.PublishRequest{Messages: []core.Message{m}, Partition: core.AnyPartition}
}

func TestIdleAndParkedClientsHaveNoLimit(t *testing.T) {
	t.Parallel()
	c := newClock()
	began := map[phase]int64{}
	for p := idle; p <= sending; p++ {
		began[p] = c.moment(p)
	}
	l := defaultLimits
	for _, after := range []time.Duration{0, min(l.head, l.body, l.write), max(l.head, l.body, l.write) + 1, 24 * time.Hour} {
		c.tick(c.start.Add(after))
		for p, m := range began {
			limited := p != idle && p != working
			if got, want := c.overdue(m, &l), limited && after > max(l.head, l.body, l.write); got != want {
				t.Errorf("after %v phase %d is overdue: %v, want %v", after, p, got, want)
			}
		}
	}
}

func TestG24ShutdownFinishesAnswersAndEndsTheRest(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.topic("")
	idle, used, half, parked := r.wire(), r.wire(), r.wire(), r.wire()
	used.send(request("GET /v1/topics", ""))
	used.read()
	r.want(201, "PUT /v1/topics/u", nil)
	half.send(strings.TrimSuffix(request("POST /v1/topics/u/messages", "half"), "lf"))
	parked.send(request(pollG+"?wait=60s", ""))
	r.parked(1)
	r.busy(2, 5)

	done := make(chan error, 1)
	go func() { done <- r.server.Shutdown(context.Background()) }()
	idle.ended()
	used.ended()
	half.send("lf")
	if a := half.read(); a.StatusCode != 201 || !a.Close {
		t.Errorf("the half request: %d %s", a.StatusCode, a.body)
	}
	half.ended()
	r.engine.Drain()
	if a := parked.read(); a.StatusCode != 503 || a.member("code") != "draining" || a.Header.Get("Retry-After") == "" || !a.Close {
		t.Errorf("the parked poll: %d %s", a.StatusCode, a.body)
	}
	parked.ended()
	r.must(receive(r, "Shutdown ends", done))
	if _, err := net.Dial("unix", r.path); err == nil {
		t.Error("it still accepts")
	}
	if _, err := os.Lstat(r.path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
	r.must(r.server.Shutdown(context.Background()))
}

func TestG24ShutdownCutsWhatDoesNotEndInTime(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.topic("")
	parked, half, slow := r.wire(), r.wire(), r.wire()
	for range 4 {
		r.want(201, publishT, strings.Repeat("x", 1<<20-100))
	}
	half.send("POST /v1/top")
	slow.send(request(pollG+"?max-bytes=16MiB", ""))
	r.eventually("the answer is being written", func() bool { return r.group().InFlight == 4 })
	parked.send(request(pollG+"?wait=60s&member=b", ""))
	r.parked(1)
	r.busy(3, 4)
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("time is up"))
	if err := r.server.Shutdown(ctx); err == nil || !strings.Contains(err.Error(), "time is up") {
		t.Errorf("Shutdown: %v", err)
	}
	parked.ended()
	half.ended()
	receive(r, "the batch is given back", r.engine.returns)
	if n := r.server.Stats().Connections; n != 0 {
		t.Errorf("%d connections are left", n)
	}
	r.budgetIsWhole()
}

func TestNothingIsServedAfterShutdown(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.must(r.server.Shutdown(context.Background()))
	l, err := Listen(r.path+"2", 0o600)
	r.must(err)
	r.must(r.server.Serve(l))
	if _, err := os.Lstat(r.path + "2"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
}

func TestShutdownOfAServerThatNeverServed(t *testing.T) {
	t.Parallel()
	r := start(t)
	s := NewServer(Config{Engine: r.engine})
	r.must(s.Shutdown(context.Background()))
	r.must(s.Shutdown(context.Background()))
}

// brokenListener fails with each of its errors and then with net.ErrClosed.
type brokenListener struct {
	net.Listener
	errs []error
}

func (l *brokenListener) Accept() (net.Conn, error) {
	if len(l.errs) == 0 {
		return l.Listener.Accept()
	}
	err := l.errs[0]
	l.errs = l.errs[1:]
	return nil, err
}

func TestAcceptingGoesOnWhenItCan(t *testing.T) {
	t.Parallel()
	r := start(t)
	l, err := Listen(r.path+"2", 0o666)
	r.must(err)
	served := make(chan error, 1)
	go func() {
		served <- r.server.Serve(&brokenListener{l, []error{os.NewSyscallError("accept4", syscall.EMFILE), os.NewSyscallError("accept4", syscall.ECONNABORTED)}})
	}()
	c, err := net.Dial("unix", r.path+"2")
	r.must(err)
	_, err = c.Write([]byte(request("GET /v1/topics", "", "Connection: close")))
	r.must(err)
	if b, err := io.ReadAll(c); err != nil || !strings.HasPrefix(string(b), "HTTP/1.1 200") {
		t.Errorf("%q, %v", b, err)
	}
	_ = c.Close()
	if !strings.Contains(r.logs.String(), "too many open files") {
		t.Error("it was not logged")
	}
	r.must(r.server.Shutdown(context.Background()))
	r.must(receive(r, "Serve ends", served))

	s := NewServer(Config{Engine: r.engine})
	l, err = Listen(r.path+"3", 0o666)
	r.must(err)
	if err := s.Serve(&brokenListener{l, []error{os.NewSyscallError("accept4", syscall.EINVAL)}}); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("Serve: %v", err)
	}
	r.must(s.Shutdown(context.Background()))
}
