package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/podmq/podmq/pkg/transport/client"
)

// programDir is where the program is built, from TestMain on.
var programDir string

// program builds the real program, once for all tests that need it.
var program = sync.OnceValues(func() (path string, err error) {
	path = filepath.Join(programDir, "sidecar")
	args := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X main.version=v0.0.0-test", "-o", path}
	if raceEnabled {
		args = append(args, "-race")
	}
	out, err := exec.Command("go", append(args, ".")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("cannot build the program: %w\n%s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	var err error
	if programDir, err = os.MkdirTemp("", "podmq-program"); err != nil {
		panic(err)
	}
	if err := os.Chmod(programDir, 0o755); err != nil { // other users run it too
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(programDir)
	os.Exit(code)
}

func programPath(t *testing.T) string {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// A child is the program in a process of its own.
type child struct {
	t       *testing.T
	socket  string
	metrics string // address, once it serves
	cmd     *exec.Cmd
	log     *logLines
	ended   chan struct{} // closed when the process is gone
}

// newChild prepares a broker on that socket; wrapper comes before the program on
// the command line.
func newChild(t *testing.T, socket string, settings map[string]string, wrapper ...string) *child {
	t.Helper()
	c := &child{t: t, socket: socket, log: newLogLines(), ended: make(chan struct{})}
	line := append(wrapper, programPath(t), "serve")
	c.cmd = exec.Command(line[0], line[1:]...)
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, prefix+"_") {
			c.cmd.Env = append(c.cmd.Env, e)
		}
	}
	c.cmd.Env = append(c.cmd.Env, "PODMQ_SOCKET="+socket, "PODMQ_METRICS_ADDR=127.0.0.1:0")
	for name, value := range settings {
		c.cmd.Env = append(c.cmd.Env, name+"="+value)
	}
	c.cmd.Stdout, c.cmd.Stderr = c.log, c.log
	return c
}

// start starts it; serving says that it gets that far.
func (c *child) start(serving bool) *child {
	c.t.Helper()
	if err := c.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	go func() {
		_ = c.cmd.Wait() // the exit code is in its ProcessState
		close(c.ended)
	}()
	c.t.Cleanup(func() {
		_ = c.cmd.Process.Kill()
		<-c.ended
		if strings.Contains(c.log.String(), "DATA RACE") {
			c.t.Errorf("the race detector reports:\n%s", c.log)
		}
	})
	if serving {
		c.metrics, _ = c.log.await(c.t, "serving", c.ended)["metrics"].(string)
	}
	return c
}

func startChild(t *testing.T, settings map[string]string) *child {
	t.Helper()
	return newChild(t, filepath.Join(shortDir(t), "podmq.sock"), settings).start(true)
}

func (c *child) signal(s os.Signal) {
	c.t.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		c.t.Fatal(err)
	}
}

// exitCode waits for the end.
func (c *child) exitCode() int {
	c.t.Helper()
	select {
	case <-c.ended:
		return c.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		c.t.Fatalf("the process does not end:\n%s", c.log)
		return -1
	}
}

// client is a Go client of the broker.
func (c *child) client() *client.Client {
	c.t.Helper()
	k, err := client.New(client.Config{Address: c.socket, DialRetry: patience})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(k.Close)
	return k
}

// run runs a command of the program against the broker, as user uid where that
// is not 0.
func (c *child) run(uid uint32, args ...string) result {
	c.t.Helper()
	cmd := exec.Command(programPath(c.t), args...)
	cmd.Env = []string{"PODMQ_SOCKET=" + c.socket}
	if uid != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		cmd.Dir = "/"
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); cmd.ProcessState == nil {
		c.t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// A request is one on a connection of its own, so that a test decides what is
// read and when.
type request struct {
	t    *testing.T
	conn net.Conn
}

func (c *child) post(path string, query url.Values, body string) *request {
	c.t.Helper()
	conn, err := net.Dial("unix", c.socket)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = conn.Close() })
	_, err = fmt.Fprintf(conn, "POST /v1/topics/%s?%s HTTP/1.1\r\nHost: podmq\r\nContent-Length: %d\r\n\r\n%s", path, query.Encode(), len(body), body)
	if err != nil {
		c.t.Fatal(err)
	}
	return &request{c.t, conn}
}

// answer reads the answer.
func (r *request) answer() (status int, body string) {
	r.t.Helper()
	if err := r.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		r.t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(r.conn), nil)
	if err != nil {
		r.t.Fatalf("no answer: %v", err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatalf("no whole answer: %v", err)
	}
	return resp.StatusCode, string(b)
}

func (r *request) expect(what string, status int, text string) {
	r.t.Helper()
	if got, body := r.answer(); got != status || !strings.Contains(body, text) {
		r.t.Errorf("%s: got %d %s, want %d with %q", what, got, body, status, text)
	}
}

// health asks the port of health and metrics.
func (c *child) health(path string) (status int, body string) {
	c.t.Helper()
	resp, err := http.Get("http://" + c.metrics + path)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// awaitMetric waits until a series has a value: how a test sees from outside
// that a call is parked.
func (c *child) awaitMetric(series string, value int) {
	c.t.Helper()
	line := fmt.Sprintf("\n%s %d\n", series, value)
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for {
		_, body := c.health("/metrics")
		if strings.Contains(body, line) {
			return
		}
		select {
		case <-again.C:
		case <-deadline.C:
			c.t.Fatalf("%s never was %d:\n%s", series, value, body)
		}
	}
}
