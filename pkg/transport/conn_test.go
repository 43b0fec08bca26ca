package transport

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/podmq/podmq/pkg/core"
)

const (
	publishT = "POST /v1/topics/t/messages"
	pollG    = "POST /v1/topics/t/groups/g/poll"
)

func TestPipelinedRequestsAreAnsweredInOrder(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.topic("")
	w := r.wire()
	var all strings.Builder
	for i := range 200 {
		all.WriteString(request(publishT, fmt.Sprint("message ", i)))
	}
	w.send(all.String())
	for i := range 200 {
		if a := w.read(); a.StatusCode != 201 || a.text() != fmt.Sprintf(`{"partition":0,"offset":%d}`, i) {
			t.Fatalf("answer %d: %d %s", i, a.StatusCode, a.body)
		}
	}
}

func TestAnAnswerNeverWaitsBehindALaterRequest(t *testing.T) {
	t.Parallel()
	poll := request(pollG+"?wait=30s", "")
	for name, later := range map[string]string{
		"a poll that parks":            poll,
		"a publish that waits":         request(publishT+"?wait=30s", "no room"),
		"a batch that waits":           request("POST /v1/topics/t/batch?wait=30s", `{"messages":[{"payload":"no room"}]}`, "Content-Type: application/json"),
		"a request of half a head":     poll[:len(poll)-1],
		"a request of half a body":     request(publishT, "12345")[:len(request(publishT, "12345"))-2],
		"a large body that never ends": request(publishT, strings.Repeat("x", 100_000))[:50_000],
		"a chunk that never comes":     request(publishT, "", "Transfer-Encoding: chunked") + "5\r\n123",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t)
			r.topic("capacity=1")
			w := r.wire()
			w.send(request(publishT, "the only one") + request("POST /v1/topics/t/groups/g/poll", "") + later)
			if a := w.read(); a.StatusCode != 201 {
				t.Errorf("the publish: %d %s", a.StatusCode, a.body)
			}
			if a := w.read(); a.StatusCode != 200 {
				t.Errorf("the poll: %d %s", a.StatusCode, a.body)
			}
		})
	}
}

func TestABodyMayComeInChunks(t *testing.T) {
	t.Parallel()
	r := startWith(t, Config{TopicAdmin: true, MaxMessageBytes: 200_000})
	r.topic("")
	w := r.wire()
	for _, size := range []int{0, 1, 5000, freeOfBudget - 1, freeOfBudget, freeOfBudget + 1, 200_000} {
		w.send(request(publishT, "", "Transfer-Encoding: chunked", "Trailer: X-Sum"))
		chunks := chunked1000(size)
		w.send(chunks + "0\r\nX-Sum: 1\r\n\r\n")
		if a := w.read(); a.StatusCode != 201 {
			t.Fatalf("%d bytes: %d %s", size, a.StatusCode, a.body)
		}
		a := r.want(200, pollG+"?format=raw", nil)
		if len(a.body) != size {
			t.Errorf("%d bytes came back as %d", size, len(a.body))
		}
		r.want(200, "POST /v1/topics/t/groups/g/ack?receipt="+a.Header.Get("Podmq-Receipt"), nil)
	}
	w.send(request(publishT, "", "Transfer-Encoding: chunked") + chunked1000(200_001) + "0\r\n\r\n")
	if a := w.read(); a.StatusCode != 413 || !a.Close {
		t.Errorf("one byte too many: %d %s", a.StatusCode, a.body)
	}
	w.ended()
	r.budgetIsWhole()
}

// chunked1000 is size bytes in chunks of 1000.
func chunked1000(size int) string {
	var b strings.Builder
	for ; size > 0; size -= 1000 {
		n := min(size, 1000)
		fmt.Fprintf(&b, "%x;ext=1\r\n%s\r\n", n, strings.Repeat("c", n))
	}
	return b.String()
}

func TestABrokenBodyIsRefused(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.topic("")
	for _, body := range []string{"xyz\r\n", "5\r\n12345678\r\n", "-1\r\n", "FFFFFFFFFFFFFFFFFF\r\n"} {
		w := r.wire()
		w.send(request(publishT, "", "Transfer-Encoding: chunked") + body)
		if a := w.read(); a.StatusCode != 400 || !a.Close {
			t.Errorf("%q: %d %s", body, a.StatusCode, a.body)
		}
	}
	if g := r.group(); g.Cursors[0].Lag != 0 {
		t.Errorf("%d messages were stored", g.Cursors[0].Lag)
	}
}

func TestExpectContinueIsAnswered(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.topic("")
	w := r.wire()
	for _, size := range []int{10, 5000, 1 << 20} {
		body := strings.Repeat("x", size)
		head := strings.TrimSuffix(request(publishT, body, "Expect: 100-continue"), body)
		w.send(head)
		if line, err := w.in.ReadString('\n'); err != nil || line != "HTTP/1.1 100 Continue\r\n" {
			t.Fatalf("%d bytes: %q, %v", size, line, err)
		}
		if line, err := w.in.ReadString('\n'); err != nil || line != "\r\n" {
			t.Fatalf("after it: %q, %v", line, err)
		}
		w.send(body)
		if a := w.read(); a.StatusCode != 201 {
			t.Errorf("%d bytes: %d %s", size, a.StatusCode, a.body)
		}
	}
	w.send(strings.TrimSuffix(request(publishT, strings.Repeat("x", 1<<20+1), "Expect: 100-continue"), strings.Repeat("x", 1<<20+1)))
	if a := w.read(); a.StatusCode != 413 || !a.Close {
		t.Errorf("one byte too many: %d %s", a.StatusCode, a.body)
	}
	w.ended()
}

func TestTheConnectionOutlivesASmallRefusedBody(t *testing.T) {
	t.Parallel()
	r := startWith(t, Config{TopicAdmin: true, MaxMessageBytes: 1000})
	r.topic("")
	w := r.wire()
	for _, body := range []string{strings.Repeat("x", 1001), strings.Repeat("x", 60_000), "small"} {
		for _, what := range []string{"POST /v1/topics/t/messages?watt=1", "POST /nowhere", "PATCH /v1/topics"} {
			w.send(request(what, body))
			if a := w.read(); a.StatusCode < 400 || a.Close {
				t.Errorf("%s with %d bytes: %d, closed: %v", what, len(body), a.StatusCode, a.Close)
			}
		}
	}
	w.send(request(publishT, strings.Repeat("x", 1001)) + request(publishT, "fits"))
	if a := w.read(); a.StatusCode != 413 {
		t.Errorf("too large: %d %s", a.StatusCode, a.body)
	}
	if a := w.read(); a.StatusCode != 201 {
		t.Errorf("after it: %d %s", a.StatusCode, a.body)
	}
}

func TestALargeRefusedBodyDoesNotCostTheAnswer(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.topic("")
	w := r.wire()
	sent := make(chan error, 1)
	go func() {
		_, err := io.WriteString(w.Conn, request(publishT, strings.Repeat("x", 8<<20)))
		sent <- err
	}()
	if a := w.read(); a.StatusCode != 413 || a.member("code") != "too_large" || !a.Close {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if err := receive(r, "the client stops sending", sent); err != nil && !errors.Is(err, syscall.EPIPE) {
		t.Error(err) // EPIPE: it was slower than we are patient, and has its answer all the same
	}
}

func TestHeadsOfEverySizeAreRead(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.topic("")
	w := r.wire()
	header := "Podmq-Meta-Long: " + strings.Repeat("v", 16000)
	key := strings.Repeat("%ff", core.MaxKeyBytes)
	for range 3 { // after a large one, small ones, and again
		w.send(request(publishT+"?key="+key, "large", header, "X-Other: "+strings.Repeat("o", 20_000)) + request(publishT, "small"))
		for range 2 {
			if a := w.read(); a.StatusCode != 201 {
				t.Fatalf("%d %s", a.StatusCode, a.body)
			}
		}
	}
	// many receipts
	var all strings.Builder
	for range 60 {
		r.want(201, publishT, "x")
	}
	a := r.want(200, pollG, nil)
	for range 80 {
		all.WriteString("&receipt=" + a.member("receipt").(string))
	}
	r.want(200, "POST /v1/topics/t/groups/g/ack?"+all.String()[1:], nil)

	for _, head := range []string{"GET /" + strings.Repeat("x", readSize) + " HTTP/1.1\r\n\r\n", request("GET /v1/topics", "", "X: "+strings.Repeat("x", readSize))} {
		w = r.wire()
		w.send(head)
		if a := w.read(); a.StatusCode != 413 || a.member("max_bytes") != float64(readSize) {
			t.Errorf("%d %s", a.StatusCode, a.body)
		}
		w.ended()
	}
}

func TestWhatIsNoRequestIsRefused(t *testing.T) {
	t.Parallel()
	r := start(t)
	for name, text := range map[string]string{
		"no HTTP":           "hello\r\n\r\n",
		"HTTP/2":            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"no Host":           "GET /v1/topics HTTP/1.1\r\n\r\n",
		"two lengths":       "POST /v1/topics/t/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
		"no number":         "POST /v1/topics/t/messages HTTP/1.1\r\nHost: x\r\nContent-Length: one\r\n\r\na",
		"odd encoding":      "POST /v1/topics/t/messages HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\na",
		"a control in it":   "GET /v1/\x00topics HTTP/1.1\r\nHost: x\r\n\r\n",
		"header without it": "GET /v1/topics HTTP/1.1\r\nHost: x\r\nnothing\r\n\r\n",
	} {
		w := r.wire()
		w.send(text)
		if a := w.read(); a.StatusCode != 400 || a.member("code") != "invalid_request" || !a.Close || len(a.body) > 700 {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.body)
		}
		w.ended()
	}
}

func TestOldAndClosingClientsAreServed(t *testing.T) {
	t.Parallel()
	r := start(t)
	w := r.wire()
	w.send("GET /v1/topics HTTP/1.0\r\n\r\n")
	if a := w.read(); a.StatusCode != 200 || !a.Close {
		t.Errorf("HTTP/1.0: %d, closed: %v", a.StatusCode, a.Close)
	}
	w.ended()
	w = r.wire()
	for range 2 {
		w.send("GET /v1/topics HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
		if a := w.read(); a.StatusCode != 200 || a.Header.Get("Connection") != "keep-alive" {
			t.Errorf("HTTP/1.0 with keep-alive: %d, Connection: %q", a.StatusCode, a.Header.Get("Connection"))
		}
	}
	w = r.wire()
	w.send(request("GET /v1/topics", "", "Connection: close") + request("GET /v1/topics", ""))
	if a := w.read(); a.StatusCode != 200 || !a.Close {
		t.Errorf("Connection: close: %d, closed: %v", a.StatusCode, a.Close)
	}
	w.ended()
}

func TestARequestMayComeByteByByte(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.topic("")
	w := r.wire()
	for _, c := range request(publishT+"?key=k", "payload", "Podmq-Meta-A: 1") {
		w.send(string(c))
	}
	if a := w.read(); a.StatusCode != 201 {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	r := start(t, func(s *Server) { s.max = 2 })
	one, two := r.wire(), r.wire()
	for _, w := range []*wire{one, two} {
		w.send(request("GET /v1/topics", ""))
		w.read()
	}
	for range 2 {
		w := r.wire()
		if a := w.read(); a.StatusCode != 503 || a.member("code") != "too_many_connections" || a.member("retryable") != true || a.Header.Get("Retry-After") != "1" {
			t.Errorf("the third: %d %s", a.StatusCode, a.body)
		}
		w.ended()
	}
	if n := strings.Count(r.logs.String(), "refusing connections"); n != 1 {
		t.Errorf("it was logged %d times", n)
	}
	_ = one.Close()
	r.eventually("there is room again", func() bool { return r.server.Stats().Connections < 2 })
	w := r.wire()
	w.send(request("GET /v1/topics", ""))
	if a := w.read(); a.StatusCode != 200 {
		t.Errorf("after one left: %d %s", a.StatusCode, a.body)
	}
}

func TestLargeAnswersArriveWhole(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.topic("")
	payload := bytes.Repeat([]byte("0123456789abcdef"), 1<<16) // 1 MiB
	for range 8 {
		r.want(201, publishT, payload[:len(payload)-100])
	}
	w := r.wire()
	w.send(request(pollG+"?max=100&max-bytes=16MiB", "") + request("GET /v1/topics", ""))
	if a := w.read(); a.StatusCode != 200 || len(a.body) < 8<<20-800 {
		t.Errorf("%d, %d bytes", a.StatusCode, len(a.body))
	}
	if a := w.read(); a.StatusCode != 200 {
		t.Errorf("after it: %d", a.StatusCode)
	}
}

func TestTheGoClientOfTheStandardLibraryKeepsItsConnection(t *testing.T) {
	t.Parallel()
	r := start(t)
	for range 10 {
		r.want(200, "GET /v1/topics", nil)
		r.want(404, "GET /nowhere", nil)
	}
	if n := r.server.Stats().Connections; n != 1 {
		t.Errorf("%d connections for one client", n)
	}
}
