package transport

import (
	"net"
	"strings"
	"testing"
)

// overTCP lets the rig's server serve on TCP as well.
func (r *rig) overTCP() (dial func() *wire) {
	r.Helper()
	l, err := ListenLoopback("127.0.0.1:0")
	r.must(err)
	served := make(chan error, 1)
	go func() { served <- r.server.Serve(l) }()
	r.Cleanup(func() {
		_ = l.Close()
		_ = receive(r, "Serve ends", served)
	})
	return func() *wire {
		c, err := net.Dial("tcp", l.Addr().String())
		r.must(err)
		return r.wireOf(c)
	}
}

// The end of the stream may be reported together with the last bytes, or after
// them while they are served. A server that misses it waits for ever.
func TestTheEndOfARequestsStreamIsSeen(t *testing.T) {
	t.Parallel()
	r := start(t, quiet)
	tcp := r.overTCP()
	for name, dial := range map[string]func() *wire{"unix": r.wire, "tcp": tcp} {
		for _, before := range []string{"", request("GET /v1/topics", "")} {
			for range 300 {
				w := dial()
				if before != "" {
					w.send(before)
					w.read()
				}
				w.send(request("GET /v1/topics", ""))
				w.halfClose()
				if a := w.read(); a.StatusCode != 200 {
					t.Fatalf("%s: %d %s", name, a.StatusCode, a.body)
				}
				w.ended()
				_ = w.Close()
				w = dial()
				w.send(request("GET /v1/topics", ""))
				_ = w.Close()
			}
		}
	}
	r.eventually("all connections have ended", func() bool { return r.server.Stats().Connections == 0 })
}

// A request is served at once when it came whole, and otherwise by reads that
// block. Wherever it is cut, alone or among others, its answer is the same.
func TestARequestMayBeCutAnywhere(t *testing.T) {
	t.Parallel()
	r := start(t, quiet)
	r.want(201, "PUT /v1/topics/t", nil) // without a group it keeps nothing
	one := request(publishT+"?key=k", "0123456789", "Podmq-Meta-A: 1")
	chunks := request(publishT, "", "Transfer-Encoding: chunked") + "5\r\n01234\r\n0\r\n\r\n"
	refused := request("POST /nowhere", "unread")
	for name, dial := range map[string]func() *wire{"unix": r.wire, "tcp": r.overTCP()} {
		w := dial()
		for _, c := range []struct {
			text   string
			status int
		}{{one, 201}, {chunks, 201}, {refused, 404}} {
			for at := range len(c.text) {
				w.send(one + c.text[:at])
				if a := w.read(); a.StatusCode != 201 {
					t.Fatalf("%s: the request before: %d %s", name, a.StatusCode, a.body)
				}
				w.send(c.text[at:] + one)
				for _, want := range []int{c.status, 201} {
					if a := w.read(); a.StatusCode != want {
						t.Fatalf("%s: %q, cut at %d: %d %s", name, c.text, at, a.StatusCode, a.body)
					}
				}
			}
		}
	}
}

// A read that fills the buffer may have left something.
func TestRequestsThatFillTheBufferExactlyAreServed(t *testing.T) {
	t.Parallel()
	r := start(t, quiet)
	r.want(201, "PUT /v1/topics/t", nil) // without a group it keeps nothing
	w := r.wire()
	for _, size := range []int{readSize - 1, readSize, readSize + 1, 2 * readSize} {
		for _, n := range []int{1, 3} {
			w.send(strings.Repeat(sizedRequest(t, size), n))
			for i := range n {
				if a := w.read(); a.StatusCode != 201 {
					t.Fatalf("%d bytes, answer %d: %d %s", size, i, a.StatusCode, a.body)
				}
			}
		}
	}
}

// sizedRequest is a publish of size bytes in all.
func sizedRequest(t *testing.T, size int) string {
	body := strings.Repeat("x", size)
	body = body[len(request(publishT, body))-size:]
	text := request(publishT, body)
	if len(text) != size { // its length has a digit less
		t.Fatalf("cannot make a request of %d bytes", size)
	}
	return text
}

func TestAParkedPollIsFollowedByWhatCameMeanwhile(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.topic("")
	w := r.wire()
	w.send(request(pollG+"?wait=60s", ""))
	r.parked(1)
	w.send(request("GET /v1/topics", ""))
	w.send(sizedRequest(t, 3*readSize))
	r.want(201, publishT, "woken")
	for i, want := range []int{200, 200, 201} {
		if a := w.read(); a.StatusCode != want {
			t.Fatalf("answer %d: %d %s", i, a.StatusCode, a.body)
		}
	}
}

// A connection that is no socket is served as well: by reads that block.
type pipeListener struct {
	net.Listener
	conns chan net.Conn
}

func (l *pipeListener) Accept() (net.Conn, error) {
	if c, ok := <-l.conns; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (l *pipeListener) Close() error   { return nil }
func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func TestAConnectionThatIsNoSocketIsServed(t *testing.T) {
	t.Parallel()
	r := start(t)
	l := &pipeListener{conns: make(chan net.Conn, 1)}
	served := make(chan error, 1)
	go func() { served <- r.server.Serve(l) }()
	ours, theirs := net.Pipe()
	l.conns <- theirs
	w := r.wireOf(ours)
	for range 3 {
		w.send(request("GET /v1/topics", ""))
		if a := w.read(); a.StatusCode != 200 {
			t.Errorf("%d %s", a.StatusCode, a.body)
		}
	}
	_ = ours.Close()
	close(l.conns)
	_ = receive(r, "Serve ends", served)
}
