package client

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

// A fakeBroker answers calls by a script, in the place of a connection, so that
// time can be virtual. It notes each call as "verb query".
type fakeBroker struct {
	t      *testing.T
	answer func(verb string, q url.Values, r *http.Request) (*http.Response, error)

	mu    sync.Mutex
	over  bool // no more calls are noted
	calls []string
}

// newFake returns a client whose calls script answers.
func newFake(t *testing.T, script func(verb string, q url.Values, r *http.Request) (*http.Response, error)) (*Client, *fakeBroker) {
	c, err := New(Config{Address: "/nowhere/podmq.sock", DialRetry: -1})
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeBroker{t: t, answer: script}
	c.http.Transport = f
	return c, f
}

func (f *fakeBroker) RoundTrip(r *http.Request) (*http.Response, error) {
	verb := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	if r.Method == http.MethodDelete {
		verb = "leave"
	}
	q := r.URL.Query()
	f.mu.Lock()
	if !f.over {
		f.calls = append(f.calls, describe(verb, q))
	}
	f.mu.Unlock()
	return f.answer(verb, q, r)
}

// describe leaves out of a call what is the same in all of them.
func describe(verb string, q url.Values) string {
	for _, same := range []string{"member", "wait", "max", "poll-id"} {
		q.Del(same)
	}
	text, _ := url.QueryUnescape(q.Encode())
	return strings.TrimSpace(verb + " " + text)
}

// log is what was called so far.
func (f *fakeBroker) log() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.calls...)
}

func (f *fakeBroker) stopNoting() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.over = true
}

// park is a poll that finds nothing before its client leaves.
func park(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func response(status int, header http.Header, body []byte) *http.Response {
	if header == nil {
		header = http.Header{}
	}
	if header.Get("Podmq-Epoch") == "" {
		header.Set("Podmq-Epoch", "e1")
	}
	return &http.Response{
		Status: fmt.Sprint(status, " ", http.StatusText(status)), StatusCode: status, Header: header,
		ContentLength: int64(len(body)), Body: io.NopCloser(bytes.NewReader(body)),
	}
}

// refuse answers with a problem document.
func refuse(status int, code core.Code, retryAfter time.Duration) (*http.Response, error) {
	body, _ := json.Marshal(map[string]any{
		"type": "about:blank", "title": "t", "status": status, "detail": "cannot do it",
		"code": code, "retryable": retryAfter > 0, "retry_after_ms": retryAfter.Milliseconds(),
	})
	return response(status, http.Header{"Content-Type": {problemType}}, body), nil
}

// settled answers an ack, nack or extend.
func settled(lease time.Duration) (*http.Response, error) {
	return response(200, nil, fmt.Appendf(nil, `{"cursors":[],"late":false,"stale":[],"lease_ms":%d}`, lease.Milliseconds())), nil
}

// handOut answers a poll with deliveries written "partition:offset=payload" or,
// in a queue group, "partition:offset=payload@receipt".
func handOut(t *testing.T, receipt string, lease time.Duration, deliveries ...string) (*http.Response, error) {
	var body []byte
	for _, text := range deliveries {
		var d Delivery
		place, payload, ok := strings.Cut(text, "=")
		if _, err := fmt.Sscanf(place, "%d:%d", &d.Partition, &d.Offset); err != nil || !ok {
			t.Errorf("bad delivery %q in a test", text)
		}
		payload, d.Receipt, _ = strings.Cut(payload, "@")
		d.Payload, d.Attempt = []byte(payload), 1
		body = appendDelivery(t, body, &d)
	}
	header := http.Header{}
	header.Set("Podmq-Receipt", receipt)
	header.Set("Podmq-Lease-Ms", fmt.Sprint(lease.Milliseconds()))
	header.Set("Podmq-Generation", "1")
	header.Set("Podmq-Count", fmt.Sprint(len(deliveries)))
	return response(200, header, body), nil
}

// appendDelivery writes d as a poll's answer in frames has it.
func appendDelivery(t *testing.T, b []byte, d *Delivery) []byte {
	m, err := d.encode()
	if err != nil {
		t.Errorf("cannot encode: %v", err)
		return b
	}
	b = binary.BigEndian.AppendUint32(b, uint32(d.Partition))
	b = binary.BigEndian.AppendUint64(b, uint64(d.Offset))
	b = binary.BigEndian.AppendUint32(b, uint32(d.Attempt))
	b = binary.BigEndian.AppendUint64(b, uint64(d.PublishedAt.UnixNano()))
	b = binary.BigEndian.AppendUint16(b, uint16(len(d.Receipt)))
	b = append(b, d.Receipt...)
	return append(b, m.Block()...)
}
