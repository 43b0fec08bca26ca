package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long a test waits for what must happen. It bounds a failure,
// and nothing is measured by it.
const patience = 30 * time.Second

// shortDir is a directory that every user can look into, and whose path leaves
// room for a socket's name.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "podmq")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// logLines is a log being written, line by line.
type logLines struct {
	mu      sync.Mutex
	text    bytes.Buffer
	partial []byte
	seen    map[string]map[string]any // by message
	changed chan struct{}             // closed, and made anew, with each line
}

func newLogLines() *logLines {
	return &logLines{seen: map[string]map[string]any{}, changed: make(chan struct{})}
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	l.partial = append(l.partial, p...)
	for {
		line, rest, ok := bytes.Cut(l.partial, []byte("\n"))
		if !ok {
			return len(p), nil
		}
		var event map[string]any
		if json.Unmarshal(line, &event) == nil {
			msg, _ := event["msg"].(string)
			l.seen[msg] = event
		}
		l.partial = rest
		close(l.changed)
		l.changed = make(chan struct{})
	}
}

func (l *logLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// await waits for the event of that message, or until ended is closed.
func (l *logLines) await(t *testing.T, message string, ended <-chan struct{}) map[string]any {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		l.mu.Lock()
		event, changed := l.seen[message], l.changed
		l.mu.Unlock()
		if event != nil {
			return event
		}
		select {
		case <-changed:
		case <-ended:
			t.Fatalf("the broker ended before it logged %q:\n%s", message, l)
		case <-deadline.C:
			t.Fatalf("the broker never logged %q:\n%s", message, l)
		}
	}
}

// A local broker runs in the process of the test, through run as main calls it.
type local struct {
	t       *testing.T
	socket  string
	metrics string // address
	log     *logLines
	signals chan os.Signal
	ended   chan struct{} // closed when run has returned
	code    int           // its exit code, once ended
}

// startLocal runs a broker with these settings, and one socket of its own, which
// the commands of this test find by PODMQ_SOCKET.
func startLocal(t *testing.T, settings map[string]string) *local {
	t.Helper()
	b := &local{
		t:       t,
		socket:  filepath.Join(shortDir(t), "podmq.sock"),
		log:     newLogLines(),
		signals: make(chan os.Signal, 2),
		ended:   make(chan struct{}),
	}
	env := map[string]string{"PODMQ_SOCKET": b.socket, "PODMQ_METRICS_ADDR": "127.0.0.1:0"}
	for name, value := range settings {
		env[name] = value
	}
	setEnv(t, env)
	go func() {
		defer close(b.ended)
		b.code = run(&process{stderr: b.log, stdout: b.log, signals: b.signals, terminationLog: os.DevNull})
	}()
	t.Cleanup(func() { b.stop() })
	b.metrics, _ = b.log.await(t, "serving", b.ended)["metrics"].(string)
	return b
}

// stop ends the broker as a SIGTERM does and returns the exit code.
func (b *local) stop() int {
	b.t.Helper()
	select {
	case b.signals <- syscall.SIGTERM:
	default: // there are two in it
	}
	select {
	case <-b.ended:
		return b.code
	case <-time.After(patience):
		b.t.Fatalf("the broker did not leave:\n%s", b.log)
		return -1
	}
}

// A result is what one command did.
type result struct {
	code           int
	stdout, stderr string
}

// command runs a command line in this process.
func command(stdin string, args ...string) result {
	return commandUntil(nil, stdin, args...)
}

// commandUntil does the same until a signal comes.
func commandUntil(signals <-chan os.Signal, stdin string, args ...string) result {
	var out, errs bytes.Buffer
	code := run(&process{args: args, stdin: strings.NewReader(stdin), stdout: &out, stderr: &errs, signals: signals, terminationLog: os.DevNull})
	return result{code, out.String(), errs.String()}
}
