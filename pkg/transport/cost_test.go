package transport

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// These tests hold what a request costs, in allocations and in system calls, as
// the kernel counts them; never in time. When one fails because a change made
// things cheaper, its bound is to follow.

// A blocking is a client whose system calls are known: for each exchange one
// write, and as many reads as it counts. It allocates nothing.
type blocking struct {
	*testing.T
	fd    int
	in    []byte
	calls int
}

func (r *rig) blocking() *blocking {
	r.Helper()
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	r.must(err)
	r.Cleanup(func() { _ = syscall.Close(fd) })
	r.must(syscall.Connect(fd, &syscall.SockaddrUnix{Name: r.path}))
	return &blocking{T: r.T, fd: fd, in: make([]byte, 1<<20)}
}

// exchange sends requests and reads as many answers, of which it returns the
// last one.
func (b *blocking) exchange(requests []byte, n int) []byte {
	if _, err := syscall.Write(b.fd, requests); err != nil {
		b.Fatal(err)
	}
	b.calls++
	from, have := 0, 0
	for {
		size := answerSize(b.in[from:have])
		if size > 0 {
			if n--; n == 0 {
				return b.in[from : from+size]
			}
			from += size
			continue
		}
		got, err := syscall.Read(b.fd, b.in[have:])
		b.calls++
		if err != nil || got == 0 {
			b.Fatalf("%d bytes, %v, after %q", got, err, b.in[:have])
		}
		have += got
	}
}

// answerSize is the size of the answer at the start of in, 0 if it is not whole.
func answerSize(in []byte) int {
	end := bytes.Index(in, []byte("\r\n\r\n"))
	if end < 0 {
		return 0
	}
	_, after, _ := bytes.Cut(in[:end+2], []byte("Content-Length: "))
	n := 0
	for i := 0; i < len(after) && after[i] != '\r'; i++ {
		n = 10*n + int(after[i]-'0')
	}
	if size := end + 4 + n; size <= len(in) {
		return size
	}
	return 0
}

// A costRun publishes and takes, again and again, so that it can go on for ever.
type costRun struct {
	*blocking
	publish []byte
	poll    []byte // up to the receipt
	accept  string
	request []byte
	receipt []byte
}

// take polls, acknowledging what it got last.
func (c *costRun) take() {
	c.request = append(c.request[:0], c.poll...)
	if len(c.receipt) > 0 {
		c.request = append(append(c.request, "&ack="...), c.receipt...)
	}
	c.request = append(append(c.request, " HTTP/1.1\r\nHost: podmq\r\n"...), c.accept...)
	c.request = append(c.request, "\r\n"...)
	answer := c.exchange(c.request, 1)
	c.receipt = c.receipt[:0]
	mark, end := []byte("Podmq-Receipt: "), byte('\r')
	if c.accept == "" {
		mark, end = []byte(`"receipt":"`), '"'
	}
	if _, after, found := bytes.Cut(answer, mark); found {
		receipt, _, _ := bytes.Cut(after, []byte{end})
		c.receipt = append(c.receipt, receipt...)
	} else {
		c.Fatalf("nothing was handed out: %.300s", answer)
	}
}

const (
	costPayload   = 256
	costBatch     = 100
	acceptsFrames = "Accept: " + framesType + "\r\n"
)

func costFrames() string {
	var b []byte
	for range costBatch {
		b = binary.BigEndian.AppendUint32(b, 4+costPayload)
		b = append(b, 0xFF, 0xFF, 0, 0)
		b = append(b, make([]byte, costPayload)...)
	}
	return string(b)
}

func costJSON() string {
	one := `{"payload":"` + strings.Repeat("x", costPayload) + `"}`
	return `{"messages":[` + strings.Repeat(one+",", costBatch-1) + one + `]}`
}

func (r *rig) costRun(publish, max, accept string) *costRun {
	return &costRun{
		blocking: r.blocking(),
		publish:  []byte(publish),
		poll:     fmt.Appendf(nil, "%s?max=%s&wait=1s", pollG, max),
		accept:   accept,
	}
}

// costs runs a case and returns what one run of it costs: allocations, and
// system calls of the server.
func costs(c *costRun, run func()) (allocs, calls float64) {
	const warm, runs = 300, 500
	for range warm {
		run()
	}
	allocs = testing.AllocsPerRun(runs, run)
	before, own := systemCalls(c.T), c.calls
	for range runs {
		run()
	}
	return allocs, float64(systemCalls(c.T)-before-(c.calls-own)) / runs
}

// systemCalls are the reads and writes of this process so far; those that found
// nothing to read count as well.
func systemCalls(t *testing.T) (n int) {
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if name == "syscr" || name == "syscw" {
			of, err := strconv.Atoi(value)
			if err != nil {
				t.Fatal(err)
			}
			n += of
		}
	}
	return n
}

func TestCostOfAMessage(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	one := request(publishT, strings.Repeat("x", costPayload))
	batch := "POST /v1/topics/t/batch"
	for _, c := range []struct {
		name        string
		publish     string
		answers     int // to publish
		max, accept string
		// Of publish and of one poll that acknowledges the one before. A request
		// is read once and its answer is written once, a batch of 30 KB as well.
		allocs, calls float64
	}{
		{"one", one, 1, "1", acceptsFrames, 1, 2 + 2},
		{"one in JSON", one, 1, "1", "", 1, 2 + 2},
		{"ten in one write", strings.Repeat(one, 10), 10, "10", acceptsFrames, 10, 2 + 2},
		{"a batch of frames", request(batch, costFrames(), "Content-Type: "+framesType), 1, "100", acceptsFrames, costBatch + 2, 2 + 2},
		{"a batch in JSON", request(batch, costJSON(), "Content-Type: "+jsonType), 1, "100", "", costBatch + 3, 2 + 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := start(t, quiet)
			r.topic("")
			k := r.costRun(c.publish, c.max, c.accept)
			allocs, calls := costs(k, func() {
				k.exchange(k.publish, c.answers)
				k.take()
			})
			t.Logf("%.2f allocations, %.2f reads and writes", allocs, calls)
			// The runtime itself allocates and wakes its poller now and then, most
			// of all when it collects garbage often.
			const slack = 0.5
			if allocs > c.allocs+slack {
				t.Errorf("%.2f allocations, want %v", allocs, c.allocs)
			}
			if calls > c.calls+slack {
				t.Errorf("%.2f reads and writes, want %v at most", calls, c.calls)
			}
		})
	}
}
