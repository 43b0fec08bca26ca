package transport

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/podmq/podmq/pkg/core"
	"github.com/podmq/podmq/pkg/core/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must happen. Nothing depends on how
// soon it does.
const patience = 20 * time.Second

// An engine is the real one, and what a test puts in its place.
type engine struct {
	core.Engine
	publish func(context.Context, *core.PublishRequest) error
	poll    func(context.Context, *core.PollRequest, *core.Batch) error
	topic   func() error
	returns chan core.Receipt // gets what was given back, if it has room
}

func (e *engine) Publish(ctx context.Context, topic string, req *core.PublishRequest, placed []core.Placement) ([]core.Placement, error) {
	if e.publish != nil {
		return placed, e.publish(ctx, req)
	}
	return e.Engine.Publish(ctx, topic, req, placed)
}

func (e *engine) Poll(ctx context.Context, topic, group string, req *core.PollRequest, batch *core.Batch) error {
	if e.poll != nil {
		return e.poll(ctx, req, batch)
	}
	return e.Engine.Poll(ctx, topic, group, req, batch)
}

func (e *engine) Topic(ctx context.Context, topic string) (core.TopicStats, error) {
	if e.topic != nil {
		return core.TopicStats{}, e.topic()
	}
	return e.Engine.Topic(ctx, topic)
}

func (e *engine) Return(ctx context.Context, topic, group string, receipt *core.Receipt) error {
	err := e.Engine.Return(ctx, topic, group, receipt)
	select {
	case e.returns <- *receipt:
	default:
	}
	return err
}

// A rig is a server on a socket of its own, and a client of it.
type rig struct {
	*testing.T
	engine *engine
	server *Server
	path   string
	client *http.Client
	logs   *lockedBuffer
}

// start serves a broker until the test ends. change may change the server before
// it does.
func start(t *testing.T, change ...func(*Server)) *rig {
	t.Helper()
	return startWith(t, Config{TopicAdmin: true}, change...)
}

func startWith(t *testing.T, c Config, change ...func(*Server)) *rig {
	t.Helper()
	r := &rig{T: t, path: filepath.Join(socketDir(t), "s"), logs: &lockedBuffer{}}
	r.engine = &engine{
		Engine: memory.New(memory.Options{
			Topic:    core.TopicSettings{Partitions: 1, Capacity: 1024, AckTimeout: core.DefaultAckTimeout},
			MaxBytes: 256 << 20,
		}),
		returns: make(chan core.Receipt, 1),
	}
	c.Engine = r.engine
	c.Logger = slog.New(slog.NewTextHandler(r.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	r.server = NewServer(c)
	for _, f := range change {
		f(r.server)
	}
	l, err := Listen(r.path, 0o666)
	r.must(err)
	served := make(chan error, 1)
	go func() { served <- r.server.Serve(l) }()
	r.client = &http.Client{Transport: &http.Transport{
		DialContext:        func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", r.path) },
		DisableCompression: true,
	}}
	t.Cleanup(func() {
		r.client.CloseIdleConnections()
		r.engine.Drain()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := r.server.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
		if err := r.engine.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return r
}

// quiet is for tests of speed or size: they log nothing.
func quiet(s *Server) { s.log = slog.New(slog.DiscardHandler) }

// socketDir is a directory whose path is short enough for a socket.
func socketDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "podmq")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func (r *rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func (r *rig) dial() net.Conn {
	r.Helper()
	c, err := net.Dial("unix", r.path)
	if err != nil {
		r.Fatal(err)
	}
	return c
}

// An answer is one answer, read.
type answer struct {
	*http.Response
	body []byte
}

func (a *answer) text() string { return string(a.body) }

// member returns a member of the JSON object that is the body.
func (a *answer) member(name string) any {
	var o map[string]any
	if json.Unmarshal(a.body, &o) != nil {
		return nil
	}
	return o[name]
}

// call makes one call: "POST /v1/topics". headers are "Name: value".
func (r *rig) call(what string, body any, headers ...string) *answer {
	r.Helper()
	a, err := r.try(what, body, headers...)
	r.must(err)
	return a
}

func (r *rig) try(what string, body any, headers ...string) (*answer, error) {
	method, target, _ := strings.Cut(what, " ")
	var from io.Reader
	switch b := body.(type) {
	case string:
		from = strings.NewReader(b)
	case []byte:
		from = bytes.NewReader(b)
	case io.Reader:
		from = b
	}
	req, err := http.NewRequest(method, "http://podmq"+target, from)
	if err != nil {
		return nil, err
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Add(name, value)
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return &answer{resp, text}, err
}

// want makes a call that must be answered with a status.
func (r *rig) want(status int, what string, body any, headers ...string) *answer {
	r.Helper()
	a := r.call(what, body, headers...)
	if a.StatusCode != status {
		r.Fatalf("%s: %d %s, want %d", what, a.StatusCode, a.body, status)
	}
	return a
}

// refused makes a call that must be refused with a code, with text in its
// detail.
func (r *rig) refused(code core.Code, text, what string, body any, headers ...string) *answer {
	r.Helper()
	a := r.call(what, body, headers...)
	detail, _ := a.member("detail").(string)
	if a.StatusCode != problems[code].status || a.member("code") != string(code) || !strings.Contains(detail, text) {
		r.Fatalf("%s: %d %s, want %s with %q", what, a.StatusCode, a.body, code, text)
	}
	return a
}

// topic makes the topic t with a group g.
func (r *rig) topic(options string) {
	r.Helper()
	r.want(201, "PUT /v1/topics/t?"+options, nil)
	r.want(201, "PUT /v1/topics/t/groups/g", nil)
}

// A wire is a connection of which a test decides each byte.
type wire struct {
	*testing.T
	net.Conn
	in *bufio.Reader
}

func (r *rig) wire() *wire {
	r.Helper()
	return r.wireOf(r.dial())
}

func (r *rig) wireOf(c net.Conn) *wire {
	r.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	return &wire{r.T, c, bufio.NewReader(c)}
}

func (w *wire) send(text string) {
	w.Helper()
	if _, err := io.WriteString(w.Conn, text); err != nil {
		w.Fatal(err)
	}
}

// request is a request of "POST /path", as text.
func request(what, body string, headers ...string) string {
	text := what + " HTTP/1.1\r\nHost: podmq\r\n"
	for _, h := range headers {
		text += h + "\r\n"
	}
	if body != "" {
		text += fmt.Sprintf("Content-Length: %d\r\n", len(body))
	}
	return text + "\r\n" + body
}

// read reads the next answer.
func (w *wire) read() *answer {
	w.Helper()
	resp, err := http.ReadResponse(w.in, nil)
	if err != nil {
		w.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		w.Fatal(err)
	}
	return &answer{resp, body}
}

// ended waits for the end of the connection, with nothing before it.
func (w *wire) ended() {
	w.Helper()
	if b, err := io.ReadAll(w.in); err != nil || len(b) > 0 {
		w.Fatalf("the connection went on with %q, %v", b, err)
	}
}

func (w *wire) halfClose() {
	w.Helper()
	if err := w.Conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		w.Fatal(err)
	}
}

// eventually waits until ok holds.
func (r *rig) eventually(what string, ok func() bool) {
	r.Helper()
	for end := time.Now().Add(patience); !ok(); {
		if time.Now().After(end) {
			r.Fatalf("waited in vain: %s", what)
		}
		<-time.After(time.Millisecond)
	}
}

// busy waits until a request has begun on n connections, and all are accepted. Only
// then is it certain what becomes of them when the server stops: a connection
// whose bytes nobody has read yet is idle.
func (r *rig) busy(n, connections int) {
	r.Helper()
	r.eventually(fmt.Sprintf("%d of %d connections are busy", n, connections), func() bool {
		r.server.mu.Lock()
		defer r.server.mu.Unlock()
		found := 0
		for c := range r.server.conns {
			if c.phase() != idle {
				found++
			}
		}
		return found == n && len(r.server.conns) == connections
	})
}

// group is what the engine says of the group g of topic t.
func (r *rig) group() core.GroupStats {
	r.Helper()
	g, err := r.engine.Group(context.Background(), "t", "g")
	r.must(err)
	return g
}

// parked waits until n polls are parked.
func (r *rig) parked(n int) {
	r.Helper()
	r.eventually(fmt.Sprintf("%d polls are parked", n), func() bool { return r.group().PollsWaiting == n })
}

func receive[T any](r *rig, what string, c <-chan T) (v T) {
	r.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		r.Fatalf("waited in vain: %s", what)
	}
	return v
}
