package client

import (
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

func TestPollReadsFramesByteForByte(t *testing.T) {
	at := time.Unix(1_800_000_000, 123_456_789)
	want := []Delivery{
		{Partition: 1, Offset: 1 << 40, Attempt: 3, PublishedAt: at, Message: Message{Key: []byte{}, Payload: allBytes()}},
		{Partition: 1023, Offset: 0, Attempt: 1, PublishedAt: at, Receipt: "Rq", Message: Message{Headers: []Header{{Name: "a", Value: "b"}}}},
	}
	c, _ := newFake(t, func(string, url.Values, *http.Request) (*http.Response, error) {
		var body []byte
		for i := range want {
			body = appendDelivery(t, body, &want[i])
		}
		h := http.Header{}
		for name, value := range map[string]string{"Podmq-Receipt": "R", "Podmq-Lease-Ms": "29950", "Podmq-Generation": "4", "Podmq-Count": "2"} {
			h.Set(name, value)
		}
		return response(200, h, body), nil
	})
	b, err := c.Poll(t.Context(), "orders", "billing", PollRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if b.Receipt != "R" || b.Lease != 29950*time.Millisecond || b.Generation != 4 || b.Epoch != "e1" || len(b.Messages) != 2 {
		t.Errorf("the batch is %+v", b)
	}
	for i := range want {
		g, w := &b.Messages[i], &want[i]
		if !same(&g.Message, &w.Message) || g.Partition != w.Partition || g.Offset != w.Offset || g.Attempt != w.Attempt ||
			!g.PublishedAt.Equal(w.PublishedAt) || g.Receipt != w.Receipt {
			t.Errorf("delivery %d is %+v, want %+v", i, g, w)
		}
	}
}

func TestPollSaysWhatIsBlockedStaleAndSkipped(t *testing.T) {
	c, _ := newFake(t, func(string, url.Values, *http.Request) (*http.Response, error) {
		h := http.Header{}
		h.Set("Podmq-Blocked", `[{"partition":2,"member":"c1","lease_ms":1500}]`)
		h.Set("Podmq-Stale", `[{"partition":1,"from":4,"to":6}]`)
		h.Set("Podmq-Skipped", `[{"partition":0,"from":7,"to":9}]`)
		return response(200, h, nil), nil
	})
	b, err := c.Poll(t.Context(), "orders", "billing", PollRequest{})
	if err != nil || len(b.Messages) != 0 ||
		!slices.Equal(b.Blocked, []Blocked{{2, "c1", 1500 * time.Millisecond}}) ||
		!slices.Equal(b.Stale, []core.StaleRange{{Partition: 1, From: 4, To: 6}}) ||
		!slices.Equal(b.Skipped, []core.Skipped{{Partition: 0, From: 7, To: 9}}) {
		t.Errorf("Poll returned %+v, %v", b, err)
	}
}

func TestPollRefusesAnAnswerThatContradictsItself(t *testing.T) {
	for name, value := range map[string]string{
		"Podmq-Count": "1", "Podmq-Lease-Ms": "soon", "Podmq-Generation": "x", "Podmq-Blocked": "{", "Podmq-Stale": "7", "Podmq-Skipped": "no",
	} {
		c, _ := newFake(t, func(string, url.Values, *http.Request) (*http.Response, error) {
			h := http.Header{}
			h.Set(name, value)
			return response(200, h, nil), nil
		})
		if b, err := c.Poll(t.Context(), "orders", "billing", PollRequest{}); core.CodeOf(err) != core.CodeInternal {
			t.Errorf("with %s: %s Poll returned %+v, %v", name, value, b, err)
		}
	}
}

func TestPollAsksForWhatItWasTold(t *testing.T) {
	c, _ := newFake(t, func(_ string, _ url.Values, r *http.Request) (*http.Response, error) {
		const want = "ack=A&ack=B&max=7&max-bytes=4096B&member=a%40b&partition=0&poll-id=p+1&wait=2s"
		if got := r.URL.Query().Encode(); r.Method != http.MethodPost || got != want {
			t.Errorf("the request was %s %s, want %s", r.Method, got, want)
		}
		return response(200, nil, nil), nil
	})
	if _, err := c.Poll(t.Context(), "orders", "billing", PollRequest{
		Member: "a@b", Max: 7, MaxBytes: 4096, Wait: 2 * time.Second, Partition: core.Some(0), Acks: []string{"A", "B"}, PollID: "p 1",
	}); err != nil {
		t.Error(err)
	}
}

func FuzzReadBatch(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(appendDelivery(&testing.T{}, nil, &Delivery{PublishedAt: time.Unix(0, 1), Receipt: "R", Message: Message{Key: []byte("k"), Payload: []byte("p"), ID: "7"}}))
	f.Fuzz(func(t *testing.T, body []byte) {
		h := http.Header{}
		h.Set("Podmq-Count", "1")
		b, err := readBatch(&answer{status: 200, header: h, body: body})
		if err != nil {
			if core.CodeOf(err) != core.CodeInternal {
				t.Errorf("readBatch returned %v", err)
			}
			return
		}
		// Written again it may lack what says nothing, such as an empty id.
		once := appendDelivery(t, nil, &b.Messages[0])
		again, err := readBatch(&answer{status: 200, header: h, body: once})
		if err != nil || !reflect.DeepEqual(again.Messages, b.Messages) || len(once) > len(body) {
			t.Errorf("%+v is read again as %+v: %v", b.Messages, again, err)
		}
	})
}
