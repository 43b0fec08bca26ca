package client

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

// allBytes holds every byte, so that whatever escapes one of them wrongly shows.
func allBytes() []byte {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

func TestG20BatchesTravelInFramesByteForByte(t *testing.T) {
	want := []Message{
		{},
		{Key: []byte{}, Payload: allBytes()},
		{Key: allBytes(), Headers: []Header{{Name: "a", Value: "line\nline"}, {Name: "b", Value: ""}}, ContentType: "x/y", Sender: "s", ID: "7"},
	}
	var got []Message
	c, _ := newFake(t, func(verb string, q url.Values, r *http.Request) (*http.Response, error) {
		if verb != "batch" || r.Header.Get("Content-Type") != framesType || r.URL.Query().Get("wait") != "1.5s" {
			t.Errorf("the request was %s %s of %q", r.Method, r.URL, r.Header.Get("Content-Type"))
		}
		body, _ := io.ReadAll(r.Body)
		for len(body) > 0 {
			var m Message
			var err error
			if m, body, err = decode(body); err != nil {
				t.Fatal(err)
			}
			got = append(got, m)
		}
		return response(201, nil, []byte(`{"messages":[{"partition":0,"offset":0},{"partition":2,"offset":1},{"partition":1,"offset":5}]}`)), nil
	})
	placed, err := c.PublishBatch(t.Context(), "orders", want, Wait(1500*time.Millisecond))
	if err != nil || len(placed) != 3 || placed[2] != (Placement{1, 5}) {
		t.Errorf("PublishBatch returned %v, %v", placed, err)
	}
	for i := range want {
		if !same(&got[i], &want[i]) {
			t.Errorf("message %d arrived as %+v, sent was %+v", i, got[i], want[i])
		}
	}
}

// same compares messages; a key that is nil is another than an empty one.
func same(a, b *Message) bool {
	ok := (a.Key == nil) == (b.Key == nil) && bytes.Equal(a.Key, b.Key) && bytes.Equal(a.Payload, b.Payload) &&
		a.ContentType == b.ContentType && a.Sender == b.Sender && a.ID == b.ID && len(a.Headers) == len(b.Headers)
	for i := 0; ok && i < len(a.Headers); i++ {
		ok = a.Headers[i] == b.Headers[i]
	}
	return ok
}

func TestG20AKeyOfAnyBytesTravelsInAQuery(t *testing.T) {
	c, _ := newFake(t, func(verb string, _ url.Values, r *http.Request) (*http.Response, error) {
		q := r.URL.Query()
		body, _ := io.ReadAll(r.Body)
		if verb != "messages" || q.Get("key") != string(allBytes()) || q.Get("partition") != "3" || q.Get("sender") != "a+b &c" || !bytes.Equal(body, allBytes()) {
			t.Errorf("the request was %s %s with %q", r.Method, r.URL, body)
		}
		if r.Header.Get("Podmq-Meta-Trace") != "x=1" || r.Header.Get("Content-Type") != "a/b" {
			t.Errorf("the headers were %v", r.Header)
		}
		return response(201, nil, []byte(`{"partition":3,"offset":8}`)), nil
	})
	at, err := c.Publish(t.Context(), "orders", Message{
		Key: allBytes(), Payload: allBytes(), ContentType: "a/b", Sender: "a+b &c", Headers: []Header{{Name: "trace", Value: "x=1"}},
	}, ToPartition(3))
	if err != nil || at != (Placement{3, 8}) {
		t.Errorf("Publish returned %v, %v", at, err)
	}
}

func TestPublishRefusesWhatCannotBeSent(t *testing.T) {
	c, fake := newFake(t, nil)
	publish := func(m Message, o ...PublishOption) error {
		_, err := c.Publish(t.Context(), "orders", m, o...)
		return err
	}
	for name, err := range map[string]error{
		"a long key":             publish(Message{Key: make([]byte, core.MaxKeyBytes+1)}),
		"a header of no text":    publish(Message{Headers: []Header{{Name: "a", Value: "\xff"}}}),
		"a line for a partition": publish(Message{Headers: []Header{{Name: "a", Value: "x\r\ny: z"}}}, ToPartition(0)),
		"a name for a partition": publish(Message{Headers: []Header{{Name: "a b", Value: "x"}}}, ToPartition(0)),
		"a type for a partition": publish(Message{ContentType: "a\nb"}, ToPartition(0)),
	} {
		if code := core.CodeOf(err); code != core.CodeInvalidRequest && code != core.CodeTooLarge || Unknown(err) {
			t.Errorf("%s: Publish returned %v", name, err)
		}
	}
	if _, err := c.PublishBatch(t.Context(), "orders", []Message{{}}, ToPartition(0)); core.CodeOf(err) != core.CodeInvalidRequest {
		t.Errorf("PublishBatch to a partition returned %v", err)
	}
	if _, err := c.Publish(t.Context(), "a/b", Message{}); core.CodeOf(err) != core.CodeInvalidRequest || !strings.Contains(err.Error(), "a/b") {
		t.Errorf("Publish to a bad name returned %v", err)
	}
	if calls := fake.log(); len(calls) > 0 {
		t.Errorf("it called %q", calls)
	}
}
