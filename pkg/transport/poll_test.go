package transport

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

func TestAPollLooksAsTheContractShowsIt(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.want(201, "PUT /v1/topics/orders?partitions=2", nil)
	r.want(201, "PUT /v1/topics/orders/groups/billing", nil)
	before := time.Now().UTC().Add(-time.Millisecond)
	r.want(201, "POST /v1/topics/orders/messages?key=user-a&sender=web-1", "o-1", "Content-Type: text/plain")
	a := r.want(200, "POST /v1/topics/orders/groups/billing/poll", nil)
	text := a.text()
	const head = `{"messages":[{"partition":1,"offset":0,"key":"user-a","payload":"o-1","headers":{},"content_type":"text/plain","sender":"web-1","id":"","published_at":"`
	rest, ok := strings.CutPrefix(text, head)
	if !ok || a.Header.Get("Content-Type") != "application/json" {
		t.Fatalf("%s\nwant %s…", text, head)
	}
	at, err := time.Parse("2006-01-02T15:04:05.000Z", rest[:24])
	if err != nil || at.Before(before) || at.After(time.Now()) {
		t.Errorf("published at %q: %v", rest[:24], err)
	}
	receipt := a.member("receipt").(string)
	want := fmt.Sprintf(`","attempt":1}],"receipt":%q,"lease_ms":%v,"generation":1,"skipped":[]}`, receipt, a.member("lease_ms"))
	if rest[24:] != want {
		t.Errorf("it ends with %s, want %s", rest[24:], want)
	}
	a = r.want(200, "POST /v1/topics/orders/groups/billing/poll?wait=0&ack="+receipt, nil)
	if a.text() != `{"messages":[],"generation":1,"skipped":[],"stale":[],"blocked":[]}` {
		t.Errorf("nothing left: %s", a.body)
	}
}

func TestAnEmptyPollSaysWhatIsOut(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.topic("")
	r.want(201, publishT, "x")
	r.want(200, pollG, nil)
	r.want(201, publishT, "y")
	a := r.want(200, pollG+"?wait=0", nil)
	const head = `{"messages":[],"generation":1,"skipped":[],"blocked":[{"partition":0,"member":"default","lease_ms":`
	if !strings.HasPrefix(a.text(), head) {
		t.Errorf("%s", a.body)
	}
	a = r.want(200, pollG+"?wait=0", nil, "Accept: application/vnd.podmq.frames")
	if len(a.body) != 0 || a.Header.Get("Podmq-Count") != "0" || !strings.HasPrefix(a.Header.Get("Podmq-Blocked"), `[{"partition":0,"member":"default","lease_ms":`) ||
		a.Header.Get("Podmq-Receipt") != "" || a.Header.Get("Podmq-Generation") != "1" {
		t.Errorf("%v %q", a.Header, a.body)
	}
	a = r.want(204, pollG+"?wait=0&format=raw", nil)
	if a.Header.Get("Podmq-Blocked") == "" || a.Header.Get("Content-Length") != "" {
		t.Errorf("%v", a.Header)
	}
}

func TestAQueueGroupHasAReceiptForEachMessage(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.want(201, "PUT /v1/topics/t", nil)
	r.want(201, "PUT /v1/topics/t/groups/g?type=queue", nil)
	for i := range 3 {
		r.want(201, publishT, fmt.Sprint(i))
	}
	a := r.want(200, pollG, nil)
	messages := a.member("messages").([]any)
	if len(messages) != 3 {
		t.Fatalf("%s", a.body)
	}
	receipt := func(i int) string { s, _ := messages[i].(map[string]any)["receipt"].(string); return s }
	if receipt(0) == "" || receipt(0) == receipt(1) || receipt(1) == receipt(2) || a.member("receipt") == nil {
		t.Fatalf("%s", a.body)
	}
	r.want(200, "POST /v1/topics/t/groups/g/ack?receipt="+receipt(1), nil)
	r.want(200, "POST /v1/topics/t/groups/g/nack?receipt="+a.member("receipt").(string), nil)
	a = r.want(200, pollG, nil, "Accept: application/vnd.podmq.frames")
	var left []string
	for body := a.body; len(body) > 0; {
		n := int(binary.BigEndian.Uint16(body[24:]))
		if n == 0 {
			t.Fatal("a delivery of a queue group has no receipt")
		}
		m, rest, err := core.ParseMessage(body[deliveryFixed+n:], 1000)
		r.must(err)
		left = append(left, string(m.Payload()))
		r.want(200, "POST /v1/topics/t/groups/g/ack?receipt="+string(body[deliveryFixed:deliveryFixed+n]), nil)
		body = rest
	}
	if strings.Join(left, ",") != "0,2" || a.Header.Get("Podmq-Count") != "2" {
		t.Errorf("left are %v", left)
	}
	r.want(201, publishT, "raw")
	a = r.want(200, pollG+"?format=raw", nil)
	r.want(200, "POST /v1/topics/t/groups/g/ack?receipt="+a.Header.Get("Podmq-Receipt"), nil)
	if g := r.group(); g.Acked != 4 {
		t.Errorf("%d are acked, want 4", g.Acked)
	}
}

// Small messages are copied into the answer, large ones are written from where
// they lie; nobody can tell.
func TestFramesOfEverySizeComeInOrder(t *testing.T) {
	t.Parallel()
	r := startWith(t, Config{TopicAdmin: true, MaxMessageBytes: 1 << 20})
	r.want(201, "PUT /v1/topics/t", nil)
	r.want(201, "PUT /v1/topics/t/groups/g?type=queue", nil)
	head := len(publishOf(t, "").Messages[0].Block())
	sizes := []int{0, vectorFrom - head - 1, vectorFrom - head, vectorFrom - head + 1, 1, 2, 1<<20 - 100, 1<<20 - 100, 3, 100_000}
	for from := range sizes {
		var want []string
		for i := range sizes {
			size := sizes[(from+i)%len(sizes)]
			want = append(want, strings.Repeat(string(rune('a'+i)), size))
			_, err := r.engine.Publish(context.Background(), "t", publishOf(t, want[i]), nil)
			r.must(err)
		}
		a := r.want(200, pollG+"?max=100&max-bytes=16MiB", nil, "Accept: application/vnd.podmq.frames")
		body := a.body
		for i := range want {
			n := int(binary.BigEndian.Uint16(body[deliveryFixed-2:]))
			m, rest, err := core.ParseMessage(body[deliveryFixed+n:], 1<<20)
			r.must(err)
			if string(m.Payload()) != want[i] {
				t.Fatalf("message %d of %d bytes came as %d bytes", i, len(want[i]), len(m.Payload()))
			}
			body = rest
		}
		if len(body) > 0 {
			t.Errorf("%d bytes are left over", len(body))
		}
		r.want(200, "POST /v1/topics/t/groups/g/ack?receipt="+a.Header.Get("Podmq-Receipt"), nil)
	}
}

func TestAnIdleConsumerHoldsNoMessages(t *testing.T) {
	t.Parallel()
	large := publishOf(t, strings.Repeat("x", vectorFrom)).Messages[0]
	p := polling{used: true}
	p.batch.Deliveries = []core.Delivery{{Message: large.Published(1)}, {Message: large.Published(1)}}
	p.encoder.batch = &p.batch
	_, err := p.encoder.frames(nil)
	if err != nil || len(p.encoder.blocks) != 2 {
		t.Fatalf("%d blocks, %v", len(p.encoder.blocks), err)
	}
	p.reset()
	for _, b := range p.encoder.blocks[:cap(p.encoder.blocks)] {
		if b.bytes != nil {
			t.Errorf("a block of %d bytes is kept", len(b.bytes))
		}
	}
}

func TestFramesAreAsDocumented(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.topic("partitions=2")
	r.want(201, publishT+"?partition=1&key=k", "payload")
	r.want(201, publishT+"?partition=1", "")
	before := time.Now().Add(-time.Minute).UnixNano()
	a := r.want(200, pollG, nil, "Accept: text/html, application/vnd.podmq.frames;q=0.9")
	b := a.body
	if a.Header.Get("Content-Type") != "application/vnd.podmq.frames" || a.Header.Get("Podmq-Count") != "2" || a.Header.Get("Podmq-Receipt") == "" ||
		a.Header.Get("Podmq-Lease-Ms") == "" || a.Header.Get("Podmq-Generation") != "1" {
		t.Errorf("%v", a.Header)
	}
	for offset, size := range []int{4 + 1 + 7, 4} {
		if binary.BigEndian.Uint32(b) != 1 || binary.BigEndian.Uint64(b[4:]) != uint64(offset) || binary.BigEndian.Uint32(b[12:]) != 1 ||
			int64(binary.BigEndian.Uint64(b[16:])) < before || binary.BigEndian.Uint16(b[24:]) != 0 || int(binary.BigEndian.Uint32(b[26:])) != size {
			t.Fatalf("delivery %d: % x", offset, b)
		}
		b = b[26+4+size:]
	}
	if len(b) != 0 {
		t.Errorf("% x is left", b)
	}
}

func TestARawPollIsForShells(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.topic("")
	r.want(201, publishT+"?key=a/b%00%ff&sender=web&id=1", "one", "Content-Type: text/x", "Podmq-Meta-Tenant: acme", "Ce-Id: 5")
	r.want(201, publishT, "two")
	a := r.want(200, pollG+"?format=raw&max=10", nil)
	for name, want := range map[string]string{
		"Content-Type": "text/x", "Podmq-Partition": "0", "Podmq-Offset": "0", "Podmq-Attempt": "1", "Podmq-Key": "a%2Fb%00%FF",
		"Podmq-Sender": "web", "Podmq-Id": "1", "Podmq-Meta-Tenant": "acme", "Ce-Id": "5", "Podmq-Generation": "1",
	} {
		if a.Header.Get(name) != want {
			t.Errorf("%s: %q, want %q", name, a.Header.Get(name), want)
		}
	}
	if a.text() != "one" || a.Header.Get("Podmq-Receipt") == "" || a.Header.Get("Podmq-Lease-Ms") == "" || a.Header.Get("Podmq-Published-At") == "" {
		t.Errorf("%v %s", a.Header, a.body)
	}
	// What was published as raw comes back as raw: the same headers once more.
	r.want(200, "POST /v1/topics/t/groups/g/ack?receipt="+a.Header.Get("Podmq-Receipt"), nil)
	a = r.want(200, pollG+"?format=raw", nil)
	if _, typed := a.Header["Content-Type"]; typed || a.text() != "two" {
		t.Errorf("%v %s", a.Header, a.body)
	}
	if _, keyed := a.Header["Podmq-Key"]; keyed {
		t.Errorf("%v", a.Header)
	}
}

func TestNoMessageCanForgeALineOfARawAnswer(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.topic("")
	r.want(201, "POST /v1/topics/t/batch", `{"messages":[{"payload":"x","content_type":"a\r\nEvil: 1","sender":"s\nEvil: 2","id":"\u0000\u007f","headers":{"a\r\nEvil":"3","b: c":"\r\n\r\nEvil\t","é":"é"}}]}`,
		"Content-Type: application/json")
	w := r.wire()
	w.send(request(pollG+"?format=raw", ""))
	a := w.read()
	for name, want := range map[string]string{
		"Content-Type": "a%0D%0AEvil: 1", "Podmq-Sender": "s%0AEvil: 2", "Podmq-Id": "%00%7F",
		"Podmq-Meta-A%0d%0aevil": "3", "Podmq-Meta-B%3a%20c": "%0D%0A%0D%0AEvil", "Podmq-Meta-%C3%A9": "é",
	} {
		if a.Header.Get(name) != want {
			t.Errorf("%s: %q, want %q in %v", name, a.Header.Get(name), want, a.Header)
		}
	}
	if a.text() != "x" || a.Header.Get("Evil") != "" {
		t.Errorf("%v %s", a.Header, a.body)
	}
}

func TestAPollAcksFirst(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.topic("partitions=2")
	r.want(201, publishT+"?partition=0", "a")
	r.want(201, publishT+"?partition=1", "b")
	one := r.want(200, pollG+"?partition=0", nil).member("receipt").(string)
	two := r.want(200, pollG+"?partition=1", nil).member("receipt").(string)
	a := r.want(200, pollG+"?wait=0&ack="+one+"&ack="+two, nil)
	if a.text() != `{"messages":[],"generation":1,"skipped":[],"stale":[],"blocked":[]}` {
		t.Errorf("%s", a.body)
	}
	r.want(201, publishT+"?partition=0", "c")
	first := r.want(200, pollG, nil).member("receipt").(string)
	r.want(200, "POST /v1/topics/t/groups/g/nack?receipt="+first, nil)
	second := r.want(200, pollG, nil).member("receipt").(string)
	r.refused(core.CodeStaleReceipt, "", pollG+"?wait=0&ack="+first, nil)
	// One that counts and one that does not: what counts is applied.
	a = r.want(200, pollG+"?wait=0&ack="+first+"&ack="+second, nil)
	if !strings.Contains(a.text(), `"stale":[{"partition":0,"from":1,"to":2}]`) {
		t.Errorf("%s", a.body)
	}
	r.want(200, pollG+"?wait=0&member=second", nil) // it joins, and partition 1 is its
	r.refused(core.CodeNotOwner, "", pollG+"?wait=0&partition=1", nil)
	r.refused(core.CodeUnknownPartition, "", pollG+"?wait=0&partition=2", nil)
}

func TestStaleRangesStandInTheHeadOfFrames(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.topic("partitions=2")
	r.want(201, publishT+"?partition=0", "a")
	first := r.want(200, pollG, nil).member("receipt").(string)
	r.want(200, "POST /v1/topics/t/groups/g/nack?receipt="+first, nil)
	second := r.want(200, pollG, nil).member("receipt").(string)
	a := r.want(200, pollG+"?wait=0&ack="+first+"&ack="+second, nil, "Accept: application/vnd.podmq.frames")
	if a.Header.Get("Podmq-Stale") != `[{"partition":0,"from":0,"to":1}]` {
		t.Errorf("%v", a.Header)
	}
}

func TestG3ALostAnswerCanBeAskedForAgain(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.topic("")
	r.want(201, publishT, "x")
	a := r.want(200, pollG+"?poll-id=7", nil)
	b := r.want(200, pollG+"?poll-id=7", nil)
	if a.member("receipt") != b.member("receipt") || !strings.Contains(b.text(), `"payload":"x"`) {
		t.Errorf("%s\nand then %s", a.body, b.body)
	}
}

func TestSettlingLooksAsTheContractShowsIt(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.topic("")
	const group = "POST /v1/topics/t/groups/g"
	for i := range 3 {
		r.want(201, publishT, fmt.Sprint(i))
	}
	receipt := r.want(200, pollG, nil).member("receipt").(string)
	a := r.want(200, group+"/ack?partition=0&upto=0&receipt="+receipt, nil)
	if !strings.HasPrefix(a.text(), `{"cursors":[{"partition":0,"committed":1,"next":3}],"late":false,"stale":[],"lease_ms":`) || a.member("lease_ms") == 0.0 {
		t.Errorf("ack up to 0: %s", a.body)
	}
	a = r.want(200, group+"/extend?by=60s&receipt="+receipt, nil)
	if ms, _ := a.member("lease_ms").(float64); ms < 50_000 || ms > 60_000 {
		t.Errorf("extend: %s", a.body)
	}
	a = r.want(200, group+"/ack?partition=0&upto=1", nil)
	if !strings.HasPrefix(a.text(), `{"cursors":[{"partition":0,"committed":2,"next":3}],`) {
		t.Errorf("ack by offset: %s", a.body)
	}
	a = r.want(200, group+"/nack?partition=0&offset=2&delay=1ms&receipt="+receipt, nil)
	if a.text() != `{"cursors":[{"partition":0,"committed":2,"next":2}],"late":false,"stale":[],"lease_ms":0}` {
		t.Errorf("nack: %s", a.body)
	}
	r.refused(core.CodeStaleReceipt, "", group+"/nack?receipt="+receipt, nil)
	r.refused(core.CodeStaleReceipt, "", group+"/extend?receipt="+receipt, nil)
	r.refused(core.CodeNotInFlight, "", group+"/ack?partition=0&upto=7", nil)
	a = r.want(200, pollG, nil)
	if !strings.Contains(a.text(), `"payload":"2"`) || !strings.Contains(a.text(), `"attempt":2`) {
		t.Errorf("%s", a.body)
	}
	receipt = a.member("receipt").(string)
	a = r.want(200, group+"/ack?receipt="+receipt, nil)
	if a.text() != `{"cursors":[{"partition":0,"committed":3,"next":3}],"late":false,"stale":[],"lease_ms":0}` {
		t.Errorf("ack: %s", a.body)
	}
}

func TestG24DrainingPollsAre503(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.topic("")
	r.engine.Drain()
	a := r.refused(core.CodeDraining, "", pollG, nil)
	if a.Header.Get("Retry-After") == "" || a.member("retryable") != true {
		t.Errorf("%v %s", a.Header, a.body)
	}
	r.want(201, publishT, "x")
	a = r.want(200, pollG+"?format=raw", nil)
	r.want(200, "POST /v1/topics/t/groups/g/ack?receipt="+a.Header.Get("Podmq-Receipt"), nil)
}
