package transport

import (
	"context"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/podmq/podmq/pkg/core"
)

// nothingIsLeased publishes and makes sure that another consumer has it at once,
// at its first attempt.
func (r *rig) nothingIsLeased() {
	r.Helper()
	r.want(201, publishT, "after")
	a := r.want(200, pollG+"?wait=20s&format=raw", nil)
	if a.text() != "after" || a.Header.Get("Podmq-Attempt") != "1" {
		r.Fatalf("%d %s, attempt %s", a.StatusCode, a.body, a.Header.Get("Podmq-Attempt"))
	}
	r.want(200, "POST /v1/topics/t/groups/g/ack?receipt="+a.Header.Get("Podmq-Receipt"), nil)
}

func TestG3AClientThatHangsUpWhileParkedGetsNothing(t *testing.T) {
	t.Parallel()
	for name, rest := range map[string]string{
		"idle":                            "",
		"with a pipelined request unread": request("GET /v1/topics", ""),
		"with half a request unread":      "POST /v1/top",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t)
			r.topic("")
			w := r.wire()
			w.send(request(pollG+"?wait=60s", ""))
			r.parked(1)
			if rest != "" {
				w.send(rest)
			}
			_ = w.Close()
			r.parked(0)
			r.nothingIsLeased()
		})
	}
}

func TestG3AClientThatDiesWithAnAnswerUnreadIsSeen(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.topic("")
	w := r.wire()
	w.send(request("GET /v1/topics", "") + request(pollG+"?wait=60s", ""))
	r.parked(1)
	_ = w.Close() // with the answer of the first request in its socket
	r.parked(0)
	r.nothingIsLeased()
}

func TestAHalfClosedClientIsServed(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.topic("")
	w := r.wire()
	w.send(request(pollG+"?wait=60s", ""))
	r.parked(1)
	w.halfClose()
	r.want(201, publishT, "late")
	if a := w.read(); a.StatusCode != 200 || !strings.Contains(a.text(), `"payload":"late"`) {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	w.ended()
	// one that closes its side first and goes while it is parked
	w = r.wire()
	w.send(request(pollG+"?member=b&wait=60s", ""))
	w.halfClose()
	r.parked(1)
	_ = w.Close()
	r.parked(0)
}

func TestG5APublishWhoseClientHungUpIsNotStored(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.topic("capacity=1")
	r.want(201, publishT, "full")
	w := r.wire()
	w.send(request(publishT+"?wait=60s", "lost"))
	r.eventually("the publish waits", func() bool {
		s, err := r.engine.Topic(context.Background(), "t")
		return err == nil && s.Publishing == 1
	})
	_ = w.Close()
	r.eventually("the publish is gone", func() bool {
		s, err := r.engine.Topic(context.Background(), "t")
		return err == nil && s.Publishing == 0
	})
	a := r.want(200, pollG+"?format=raw", nil)
	r.want(200, "POST /v1/topics/t/groups/g/ack?receipt="+a.Header.Get("Podmq-Receipt"), nil)
	r.want(204, pollG+"?format=raw&wait=0", nil)
}

func TestG3AnAnswerThatCannotBeWrittenIsGivenBack(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.topic("")
	r.want(201, publishT, "m")
	// The client goes in the moment between the lease and the answer.
	w := r.wire()
	r.engine.poll = func(ctx context.Context, req *core.PollRequest, b *core.Batch) error {
		err := r.engine.Engine.Poll(context.Background(), "t", "g", req, b)
		_ = w.Close()
		<-ctx.Done()
		return err
	}
	w.send(request(pollG, ""))
	receive(r, "the batch is given back", r.engine.returns)
	r.engine.poll = nil
	a := r.want(200, pollG+"?wait=0&format=raw", nil)
	if a.text() != "m" || a.Header.Get("Podmq-Attempt") != "1" {
		t.Errorf("%s at attempt %s", a.body, a.Header.Get("Podmq-Attempt"))
	}
}

func TestG3AnAnswerThatIsNotReadIsGivenBack(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.topic("")
	for range 4 {
		r.want(201, publishT, strings.Repeat("x", 1<<20-100))
	}
	w := r.wire() // it reads nothing: the answer does not fit into its socket
	w.send(request(pollG+"?max-bytes=16MiB", ""))
	r.eventually("the batch is out", func() bool { return r.group().InFlight == 4 })
	_ = w.Close()
	receive(r, "the batch is given back", r.engine.returns)
	if a := r.want(200, pollG+"?wait=20s&max-bytes=16MiB", nil); strings.Count(a.text(), `"attempt":1}`) != 4 {
		t.Errorf("%d bytes, not four messages at their first attempt", len(a.body))
	}
}

func TestG3AnAnswerThatCannotBeMadeIsGivenBack(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.topic("")
	r.want(201, publishT, "m")
	r.engine.poll = func(ctx context.Context, req *core.PollRequest, b *core.Batch) error {
		err := r.engine.Engine.Poll(ctx, "t", "g", req, b)
		b.Deliveries = append(b.Deliveries, core.Delivery{}) // no message: its encoding panics
		return err
	}
	r.refused(core.CodeInternal, "", pollG, nil)
	receive(r, "the batch is given back", r.engine.returns)
}

func TestOnTCPAHalfCloseIsAHangUp(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.topic("")
	l, err := ListenLoopback("127.0.0.1:0")
	r.must(err)
	served := make(chan error, 1)
	go func() { served <- r.server.Serve(l) }()
	t.Cleanup(func() {
		_ = r.server.Shutdown(context.Background())
		r.must(<-served)
	})
	for _, leave := range []func(*net.TCPConn) error{(*net.TCPConn).Close, (*net.TCPConn).CloseWrite} {
		c, err := net.Dial("tcp", l.Addr().String())
		r.must(err)
		_, err = c.Write([]byte(request(pollG+"?wait=60s", "")))
		r.must(err)
		r.parked(1)
		r.must(leave(c.(*net.TCPConn)))
		r.parked(0)
		_ = c.Close()
		r.nothingIsLeased()
	}
}

func TestG23DisconnectsLeaveNothingBehind(t *testing.T) {
	r := start(t)
	r.topic("")
	r.want(200, "GET /v1/topics", nil)
	before := descriptors(t)
	states := []string{
		"", "POST /v1/to", request(publishT, "12345")[:70], request("GET /v1/topics", ""),
		request(pollG+"?wait=60s", ""), request(pollG+"?wait=60s", "") + "GET /pipelined",
	}
	const rounds = 1000
	for i := range rounds {
		c := r.dial()
		if _, err := c.Write([]byte(states[i%len(states)])); err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
	}
	// The last of them may not even be accepted yet.
	r.eventually("all connections end, and their descriptors with them", func() bool {
		r.server.hangups.mu.Lock()
		watched := len(r.server.hangups.conns)
		r.server.hangups.mu.Unlock()
		return r.server.Stats().Connections == 1 && watched == 1 && descriptors(t) <= before
	})
	r.parked(0)
	r.nothingIsLeased()
}

func descriptors(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}
