package transport

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/podmq/podmq/pkg/core"
)

func TestWhatComesWithAMessageIsKept(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.topic("")
	w := r.wire()
	w.send(request(publishT+"?key=a+b%2B&sender=web-1&id=7", "payload", "Content-Type: Text/X; charset=odd",
		"Podmq-Meta-Tenant: acme", "podmq-meta-ZEBRA: last", "Ce-Id: 1", "ce-source: /é", "Traceparent: 00-a", "tracestate: x=1", "Tracestate: y=2",
		"Podmq-Meta-Empty:", "X-Other: dropped", "Podmq-Meta: dropped", "Accept: dropped"))
	if a := w.read(); a.StatusCode != 201 {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	a := r.want(200, pollG, nil)
	want := `{"messages":[{"partition":0,"offset":0,"key":"a b+","payload":"payload","headers":{"tenant":"acme","zebra":"last","ce-id":"1","ce-source":"/é",` +
		`"traceparent":"00-a","tracestate":"x=1, y=2","empty":""},"content_type":"Text/X; charset=odd","sender":"web-1","id":"7","published_at":"`
	if !strings.HasPrefix(a.text(), want) {
		t.Errorf("%s\nwant %s", a.body, want)
	}
}

func TestAMessageWithoutTypeKeyOrHeadersHasNone(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.topic("")
	w := r.wire()
	w.send(request(publishT, "x") + request(publishT+"?key=", "y"))
	w.read()
	w.read()
	a := r.want(200, pollG, nil)
	if !strings.HasPrefix(a.text(), `{"messages":[{"partition":0,"offset":0,"payload":"x","headers":{},"content_type":"","sender":"","id":"",`) ||
		!strings.Contains(a.text(), `"offset":1,"key":"","payload":"y"`) {
		t.Errorf("%s", a.body)
	}
}

func TestG20WhatIsTooLargeOrNoTextIsRefused(t *testing.T) {
	t.Parallel()
	r := startWith(t, Config{TopicAdmin: true, MaxMessageBytes: 1000})
	r.topic("")
	r.want(201, publishT, strings.Repeat("x", 1000))
	for text, call := range map[string][]string{
		"cannot take a body of 1001 bytes: the most is 1000": {publishT, strings.Repeat("x", 1001)},
		"cannot take message of 1001":                        {publishT + "?key=k", strings.Repeat("x", 1000)},
		"cannot take key of 1025":                            {publishT + "?key=" + strings.Repeat("k", 1025), ""},
		"cannot take headers of":                             {publishT, "", "Podmq-Meta-A: " + strings.Repeat("v", 9000), "Podmq-Meta-B: " + strings.Repeat("v", 9000)},
	} {
		if a := r.refused(core.CodeTooLarge, text, call[0], call[1], call[2:]...); a.member("max_bytes") == nil {
			t.Errorf("%s", a.body)
		}
	}
	w := r.wire()
	for text, req := range map[string]string{
		"must be UTF-8":                 request(publishT, "x", "Podmq-Meta-A: \xff"),
		"cannot keep sender":            request(publishT+"?sender=%ff", "x"),
		"cannot keep id":                request(publishT+"?id=%c3", "x"),
		"cannot keep content-type":      request(publishT, "x", "Content-Type: a/\xff"),
		"a name has 1 to 255 bytes":     request(publishT, "x", "Podmq-Meta-: x"),
		"a name has 1 to 255 bytes, no": request(publishT, "x", "Podmq-Meta-"+strings.Repeat("n", 256)+": x"),
	} {
		w.send(req)
		if a := w.read(); a.StatusCode != 400 || !strings.Contains(a.text(), text) {
			t.Errorf("%s: %d %s", text, a.StatusCode, a.body)
		}
	}
	if lag := r.group().Cursors[0].Lag; lag != 1 {
		t.Errorf("%d messages were stored", lag)
	}
}

func TestG13AFullPartitionIsRefusedWithWhatToDo(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.topic("capacity=1")
	r.want(201, publishT, "x")
	for _, what := range []string{publishT, publishT + "?wait=1ms", publishT + "?partition=0"} {
		a := r.refused(core.CodePartitionFull, "g", what, "y")
		if a.Header.Get("Retry-After") == "" || a.member("retry_after_ms") == nil || a.member("retryable") != true || a.member("partition") == nil {
			t.Errorf("%s: %s", what, a.body)
		}
	}
	r.refused(core.CodeBatchExceedsCapacity, "", "POST /v1/topics/t/batch", `{"messages":[{"payload":"1"},{"payload":"2"}]}`, "Content-Type: application/json")
	r.refused(core.CodeUnknownPartition, "", publishT+"?partition=1", "y")
	r.refused(core.CodeUnknownTopic, "none", "POST /v1/topics/none/messages", "y")

	w := r.wire()
	w.send(request(publishT+"?wait=60s", "z"))
	r.eventually("the publish waits", func() bool {
		s, err := r.engine.Topic(context.Background(), "t")
		return err == nil && s.Publishing == 1
	})
	a := r.want(200, pollG, nil)
	r.want(200, "POST /v1/topics/t/groups/g/ack?receipt="+a.member("receipt").(string), nil)
	if a := w.read(); a.StatusCode != 201 || a.text() != `{"partition":0,"offset":1}` {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}

// batchBodies are the same three messages in each form that a batch can have.
func batchBodies(t *testing.T) map[string]string {
	t.Helper()
	lines := []string{
		`{"key":"k","payload":"one"}`,
		`{"payload_base64":"AAH/","key_base64":"/w==","headers":{"A":"1","b":"\u00e9\ud83d\ude00"},"content_type":"x/y","sender":"s","id":"i"}`,
		` { "payload" : "" , "headers" : { } , "key" : null , "id" : null } `,
	}
	var frames []byte
	for _, c := range []core.Content{
		{Key: []byte("k"), HasKey: true, Payload: []byte("one")},
		{Key: []byte{0xff}, HasKey: true, Payload: []byte{0, 1, 0xff}, Headers: []core.Header{{Name: "a", Value: "1"}, {Name: "b", Value: "é😀"}}, ContentType: "x/y", Sender: "s", ID: "i"},
		{},
	} {
		m, err := core.NewMessage(&c, 1000)
		if err != nil {
			t.Fatal(err)
		}
		frames = append(frames, m.Block()...)
	}
	return map[string]string{
		"application/json":                "{\n\"messages\": [" + strings.Join(lines, ",") + "]\r\n}\t",
		"Application/JSON; charset=utf-8": "{\"messages\":[" + strings.Join(lines, " , ") + "]}",
		"application/x-ndjson":            strings.Join(lines, "\n"),
		" application/x-ndjson ; a=b":     strings.Join(lines, "\r\n") + "\r\n",
		"application/vnd.podmq.frames":    string(frames),
	}
}

func TestABatchIsReadInEachForm(t *testing.T) {
	t.Parallel()
	for contentType, body := range batchBodies(t) {
		t.Run(contentType, func(t *testing.T) {
			t.Parallel()
			r := start(t)
			r.topic("")
			a := r.want(201, "POST /v1/topics/t/batch", body, "Content-Type: "+contentType)
			if a.text() != `{"messages":[{"partition":0,"offset":0},{"partition":0,"offset":1},{"partition":0,"offset":2}]}` {
				t.Errorf("%s", a.body)
			}
			a = r.want(200, pollG, nil)
			var got struct{ Messages []map[string]any }
			r.must(json.Unmarshal(a.body, &got))
			for i, want := range []string{
				`"key":"k","payload":"one","headers":{},"content_type":"","sender":"","id":"",`,
				`"key_base64":"/w==","payload_base64":"AAH/","headers":{"a":"1","b":"é😀"},"content_type":"x/y","sender":"s","id":"i",`,
				`"offset":2,"payload":"","headers":{},`,
			} {
				if !strings.Contains(a.text(), want) {
					t.Errorf("message %d: %s\nwant %s", i, a.body, want)
				}
			}
		})
	}
}

func TestABadBatchSaysWhatIsWrongAndStoresNothing(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.topic("")
	const j, n, f = "application/json", "application/x-ndjson", "application/vnd.podmq.frames"
	for _, c := range []struct{ contentType, body, text string }{
		{j, ``, "an object was expected, but the text ends"},
		{j, `[]`, `an object was expected, not \"[]\"`},
		{j, `{}`, `there is no \"messages\"`},
		{j, `{"messages":[]}`, "cannot publish an empty batch"},
		{j, `{"messages":{}}`, "an array was expected"},
		{j, `{"messages":[],"messages":[]}`, "comes twice"},
		{j, `{"msgs":[]}`, `no member is named \"msgs\"`},
		{j, `{"messages":[{"payload":"a"}`, "a comma or the end of the array"},
		{j, `{"messages":[{"payload":"a"}]`, "a comma or the end of the object"},
		{j, `{"messages":[{"payload":"a"}]} x`, "the end was expected"},
		{j, `{"messages":[{"payload":"a"},]}`, "(message 1; nothing was stored)"},
		{j, `{"messages":[{"payload":"a"},{}]}`, "without payload or payload_base64"},
		{j, `{"messages":[{"payload":null}]}`, "without payload"},
		{j, `{"messages":[{"payload":"a","payload_base64":"AA=="}]}`, "both payload and payload_base64"},
		{j, `{"messages":[{"payload":"a","key":"","key_base64":""}]}`, "both key and key_base64"},
		{j, `{"messages":[{"payload":"a","payload":"b"}]}`, `\"payload\" comes twice`},
		{j, `{"messages":[{"payload":"a","headers":{},"headers":{}}]}`, `\"headers\" comes twice`},
		{j, `{"messages":[{"payload":"a","Key":"b"}]}`, `no member of a message is named \"Key\"`},
		{j, `{"messages":[{"payload":{"a":1}}]}`, "a string was expected"},
		{j, `{"messages":[{"payload":1}]}`, "a string was expected"},
		{j, `{"messages":[{"payload":"a","headers":{"h":1}}]}`, "a string was expected"},
		{j, `{"messages":[{"payload":"a","headers":{"h":"1","H":"2"}}]}`, `cannot keep header \"h\" twice`},
		{j, `{"messages":[{"payload":"a","headers":{"":"1"}}]}`, "1 to 255 bytes"},
		{j, `{"messages":[{"payload":"a","headers":{":id":"1"}}]}`, "must not start with a colon"},
		{j, `{"messages":[{"payload":"a","headers":[]}]}`, "an object was expected"},
		{j, `{"messages":[{"payload_base64":"a"}]}`, "payload_base64 is no base64"},
		{j, `{"messages":[{"payload":"\ud800"}]}`, "surrogate"},
		{j, `{"messages":[{"payload":"\udc00\ud800"}]}`, "surrogate"},
		{j, `{"messages":[{"payload":"\ud800\u0041"}]}`, "surrogate"},
		{j, `{"messages":[{"payload":"\ud800x"}]}`, "surrogate"},
		{j, `{"messages":[{"payload":"\x41"}]}`, "is no escape"},
		{j, `{"messages":[{"payload":"\u12g4"}]}`, "is no escape"},
		{j, `{"messages":[{"payload":"\u12`, "is no escape"},
		{j, `{"messages":[{"payload":"a\`, "does not end"},
		{j, `{"messages":[{"payload":"a`, "does not end"},
		{j, `{"messages":[{"payload":"a\n`, "does not end"},
		{j, `{"messages":[{"payload"`, "a colon was expected"},
		{j, `{"messages":[{"payload":"a" "b"}]}`, "a comma or the end of the object"},
		{j, `{"messages":[{payload:"a"}]}`, "a string was expected"},
		{j, "{\"messages\":[{\"payload\":\"a\nb\"}]}", "control character"},
		{j, "{\"messages\":[{\"payload\":\"\\t\x00\"}]}", "control character"},
		{j, "{\"messages\":[{\"payload\":\"\xff\"}]}", "not UTF-8"},
		{j, "{\"messages\":[{\"payload\":\"\\n\xff\"}]}", "not UTF-8"},
		{n, ``, "cannot publish an empty batch"},
		{n, "\n", "cannot publish an empty batch"},
		{n, "{\"payload\":\"a\"}\n\n{\"payload\":\"b\"}", "(line 2; nothing was stored)"},
		{n, "{\"payload\":\"a\"}\n \n", "(line 2; nothing was stored)"},
		{n, "{\"payload\":\"a\"}\n\n", "(line 2; nothing was stored)"},
		{n, "{\"payload\":\"a\"}\n{\"payload\":\"b\"} {}\n", "(line 2; nothing was stored)"},
		{n, "{\"payload\":\"a\"}\n{\"payload\":\n\"b\"}", "(line 2; nothing was stored)"},
		{f, ``, "cannot publish an empty batch"},
		{f, "\x00\x00", "(message 0; nothing was stored)"},
		{f, "\x00\x00\x00\x04\xff\xff\x00\x00\x00\x00\x00\x05", "(message 1; nothing was stored)"},
	} {
		a := r.call("POST /v1/topics/t/batch", c.body, "Content-Type: "+c.contentType)
		if a.StatusCode != 400 || a.member("code") != "invalid_request" || !strings.Contains(a.text(), c.text) {
			t.Errorf("%q: %d %s, want %s", c.body, a.StatusCode, a.body, c.text)
		}
		if strings.Contains(c.text, "line 2") && a.member("line") != 2.0 {
			t.Errorf("%q: the line is %v", c.body, a.member("line"))
		}
	}
	if lag := r.group().Cursors[0].Lag; lag != 0 {
		t.Errorf("%d messages were stored", lag)
	}
}

func TestABatchHasItsBounds(t *testing.T) {
	t.Parallel()
	r := startWith(t, Config{TopicAdmin: true, MaxMessageBytes: 1000})
	r.want(201, "PUT /v1/topics/t?capacity=20000", nil)
	const what, lines = "POST /v1/topics/t/batch", "Content-Type: application/x-ndjson"
	line := "{\"payload\":\"a\"}\n"
	r.want(201, what, strings.Repeat(line, core.MaxBatchMessages), lines)
	r.refused(core.CodeTooLarge, "more than 10000 messages", what, strings.Repeat(line, core.MaxBatchMessages+1), lines)
	r.refused(core.CodeTooLarge, "the most is 16777216", what, strings.Repeat(line, 1+core.MaxBatchBytes/len(line)), lines)
	r.refused(core.CodeTooLarge, "cannot take message of 1001 bytes", what, `{"payload":"`+strings.Repeat("x", 1001)+`"}`, lines)
	for _, contentType := range []string{"", "text/plain", "application/x-www-form-urlencoded", "application/json2"} {
		a := r.refused(core.CodeUnsupportedMedia, "send application/json, application/x-ndjson or application/vnd.podmq.frames", what, line, "Content-Type: "+contentType)
		if a.member("supported") == nil {
			t.Errorf("%s", a.body)
		}
	}
}

// What a client said of its last message is kept for the next, but not much of it,
// whatever it said before and whether that was stored or not.
func TestG23AnIdleConnectionKeepsLittleOfItsLastMessage(t *testing.T) {
	t.Parallel()
	kept := func(c *core.Content) int {
		all := *c
		all.Headers = c.Headers[:cap(c.Headers)]
		return described(&all)
	}
	var p publishing
	p.content = core.Content{Payload: []byte("refused"), Headers: []core.Header{{Name: "a", Value: strings.Repeat("x", 50<<10)}}}
	p.reset()
	if n := kept(&p.content); n > keepDescription || p.content.Payload != nil {
		t.Errorf("after a refused message %d bytes are kept, and the payload %q", n, p.content.Payload)
	}
	for n := 100; n > 0; n-- {
		p.content.Headers = p.content.Headers[:0]
		for i := range n {
			value := "x"
			if i == n-1 {
				value = strings.Repeat("x", 600)
			}
			p.content.Headers = addHeader(p.content.Headers, fmt.Appendf(nil, "h%d", i), []byte(value))
		}
		p.reset()
		if n := kept(&p.content); n > keepDescription {
			t.Fatalf("%d bytes are kept", n)
		}
	}
}
