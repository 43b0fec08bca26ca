package transport

import (
	"bytes"
	"net"
	"strings"
	"testing"
)

// A lean client allocates nothing per exchange, so that what is counted is the
// server's.
type lean struct {
	t   *testing.T
	c   net.Conn
	buf []byte
}

func (l *lean) exchange(request []byte, status string) []byte {
	if _, err := l.c.Write(request); err != nil {
		l.t.Fatal(err)
	}
	n := 0
	for {
		more, err := l.c.Read(l.buf[n:])
		if err != nil {
			l.t.Fatal(err)
		}
		n += more
		head, body, ok := bytes.Cut(l.buf[:n], []byte("\r\n\r\n"))
		if !ok {
			continue
		}
		_, length, _ := bytes.Cut(head, []byte("Content-Length: "))
		length, _, _ = bytes.Cut(length, []byte("\r\n"))
		if want, err := parseInt(length); err != nil || len(body) < int(want) {
			continue
		}
		if !bytes.HasPrefix(head, []byte(status)) {
			l.t.Fatalf("%s", l.buf[:n])
		}
		return body
	}
}

// TestCostOfCallsIsAHandfulOfAllocations counts the objects that a call over the socket
// allocates: a publish its message, a poll and an ack nothing.
func TestCostOfCallsIsAHandfulOfAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	r := start(t, quiet)
	r.topic("partitions=4")
	l := &lean{t, r.dial(), make([]byte, 64<<10)}
	t.Cleanup(func() { _ = l.c.Close() })
	payload := strings.Repeat("p", 256)

	publish := []byte(request(publishT+"?key=user-7", payload))
	poll := []byte(request(pollG+"?max=10&wait=5s", ""))
	ack := make([]byte, 0, 1024)
	settle := func(body []byte) {
		_, receipt, _ := bytes.Cut(body, []byte(`],"receipt":"`))
		receipt, _, _ = bytes.Cut(receipt, []byte{'"'})
		ack = append(append(append(ack[:0], "POST /v1/topics/t/groups/g/ack?receipt="...), receipt...), " HTTP/1.1\r\nHost: podmq\r\n\r\n"...)
		l.exchange(ack, "HTTP/1.1 200")
	}
	round := func(publishes int) float64 {
		return testing.AllocsPerRun(200, func() {
			for range publishes {
				l.exchange(publish, "HTTP/1.1 201")
			}
			settle(l.exchange(poll, "HTTP/1.1 200"))
		})
	}
	one, two := round(1), round(9)
	perPublish := (two - one) / 8
	t.Logf("%.2f objects a publish; %.2f a poll and an ack", perPublish, one-perPublish)
	if perPublish > 1.2 {
		t.Errorf("a publish allocates %.2f objects, want the message alone", perPublish)
	}
	if rest := one - perPublish; rest > 0.2 {
		t.Errorf("a poll and its ack allocate %.2f objects, want none", rest)
	}

	withHeaders := []byte(request(publishT+"?key=user-7&sender=web&id=1", payload, "Content-Type: text/plain", "Podmq-Meta-Tenant: acme", "Traceparent: 00-1"))
	headers := testing.AllocsPerRun(200, func() { l.exchange(withHeaders, "HTTP/1.1 201") })
	t.Logf("%.2f objects a publish with a type, a sender, an id and two headers", headers)
	if headers > 1.2 {
		t.Errorf("a publish with two headers allocates %.2f objects, want the message alone", headers)
	}
}
