package clients_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/podmq/podmq/pkg/transport/client"
)

// patience is when a wait for something that must happen is given up. No test
// passes or fails by how long anything takes below it.
const patience = 2 * time.Minute

// A process is a program that a test runs, and what it prints, line by line.
type process struct {
	t      *testing.T
	name   string
	cmd    *exec.Cmd
	stdout chan string
	stderr chan string
	exited chan struct{} // closed when the process is gone and its output read
}

// start runs a program. The test ends it, if nothing else does.
func start(t *testing.T, name string, env []string, argv ...string) *process {
	t.Helper()
	p := &process{t: t, name: name, cmd: exec.Command(argv[0], argv[1:]...),
		// Room for more lines than any test prints, so that nobody waits for a
		// test that does not read them.
		stdout: make(chan string, 4096), stderr: make(chan string, 4096), exited: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	var reading sync.WaitGroup
	for to, pipe := range map[chan string]func() (io.ReadCloser, error){p.stdout: p.cmd.StdoutPipe, p.stderr: p.cmd.StderrPipe} {
		from, err := pipe()
		if err != nil {
			t.Fatal(err)
		}
		reading.Go(func() { p.lines(to, from) })
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("cannot start %s: %v", name, err)
	}
	go func() {
		reading.Wait()
		_ = p.cmd.Wait() // ProcessState has the outcome
		close(p.exited)
	}()
	t.Cleanup(p.kill)
	return p
}

func (p *process) lines(to chan<- string, from io.Reader) {
	defer close(to)
	for r := bufio.NewReader(from); ; {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		to <- strings.TrimSuffix(line, "\n")
	}
}

// next is the next line that it prints.
func (p *process) next() string {
	p.t.Helper()
	select {
	case line, ok := <-p.stdout:
		if ok {
			return line
		}
		p.t.Fatalf("%s ended without another line; it complained:%s", p.name, p.complaints())
	case <-time.After(patience):
		p.t.Fatalf("%s printed nothing for %v; it complained:%s", p.name, patience, p.complaints())
	}
	return ""
}

// complains waits for a line on stderr with this in it.
func (p *process) complains(part string) {
	p.t.Helper()
	giveUp := time.After(patience)
	for {
		select {
		case line, ok := <-p.stderr:
			if !ok {
				p.t.Fatalf("%s ended and never said %q", p.name, part)
			}
			if strings.Contains(line, part) {
				return
			}
		case <-giveUp:
			p.t.Fatalf("%s did not say %q within %v", p.name, part, patience)
		}
	}
}

// complaints is what it wrote to stderr and nobody read.
func (p *process) complaints() string {
	var b strings.Builder
	for {
		select {
		case line, ok := <-p.stderr:
			if !ok {
				return b.String()
			}
			b.WriteString("\n\t" + line)
		default:
			return b.String()
		}
	}
}

// signal sends a signal and returns the exit code.
func (p *process) signal(s os.Signal) int {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("cannot signal %s: %v", p.name, err)
	}
	return p.exit()
}

// exit waits for its end and returns the exit code.
func (p *process) exit() int {
	p.t.Helper()
	select {
	case <-p.exited:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		p.t.Fatalf("%s did not end within %v; it complained:%s", p.name, patience, p.complaints())
		return 0
	}
}

// kill ends it with SIGKILL, if it still runs.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// buildSidecar builds the program once for all tests.
var buildSidecar = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "podmq")
	if err != nil {
		return "", err
	}
	built = dir
	path := filepath.Join(dir, "sidecar")
	cmd := exec.Command("go", "build", "-o", path, "github.com/podmq/podmq/cmd/sidecar")
	cmd.Stderr = os.Stderr
	return path, cmd.Run()
})

// built is the directory of what buildSidecar made, "" before.
var built string

func TestMain(m *testing.M) {
	code := m.Run()
	if built != "" {
		_ = os.RemoveAll(built)
	}
	os.Exit(code)
}

// A broker is a real sidecar that can be killed and started again.
type broker struct {
	t      *testing.T
	env    []string
	client *client.Client
	*process
}

// startBroker starts a sidecar with these topics on a socket of its own.
func startBroker(t *testing.T, topics string) *broker {
	t.Helper()
	socket := filepath.Join(socketDir(t), "podmq.sock")
	b := &broker{t: t, env: []string{"PODMQ_SOCKET=" + socket, "PODMQ_METRICS_ADDR=127.0.0.1:0", "PODMQ_TOPICS=" + topics}}
	b.client = newClient(t, socket)
	b.start()
	return b
}

// start runs it and waits until it answers.
func (b *broker) start() {
	b.t.Helper()
	path, err := buildSidecar()
	if err != nil {
		b.t.Fatalf("cannot build the sidecar: %v", err)
	}
	b.process = start(b.t, "sidecar", b.env, path)
	if _, err := b.client.Topics(b.t.Context()); err != nil {
		b.t.Fatalf("the sidecar does not answer: %v%s", err, b.complaints())
	}
}

func newClient(t *testing.T, address string) *client.Client {
	t.Helper()
	c, err := client.New(client.Config{Address: address, DialRetry: patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// socketDir makes a directory whose path is short enough for a socket in it.
func socketDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "podmq")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
