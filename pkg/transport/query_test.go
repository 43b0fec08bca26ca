package transport

import (
	"bytes"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/podmq/podmq/pkg/core"
)

func TestUnknownParametersAreNamed(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.topic("")
	a := r.refused(core.CodeInvalidRequest, "cannot use watt, \uFFFDa b", "POST /v1/topics/t/groups/g/poll?watt=5s&wait=0&%ffa+b=", nil)
	if a.member("parameter") != "watt" || !strings.Contains(a.text(), "poll-id") {
		t.Errorf("answered %s", a.body)
	}
	r.refused(core.CodeInvalidRequest, "it takes none", "GET /v1/topics?x", nil)
	r.refused(core.CodeInvalidRequest, "cannot use Wait", "POST /v1/topics/t/groups/g/poll?Wait=0", nil)
	r.want(200, "POST /v1/topics/t/groups/g/poll?&wa%69t=0&&", nil)
}

func TestScalarsAreGivenOnce(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.topic("")
	for _, what := range []string{"POST /v1/topics/t/groups/g/poll?wait=0&wait=0", "POST /v1/topics/t/groups/g/nack?receipt=a&receipt=b", "POST /v1/topics/t/messages?key=&key=a"} {
		if a := r.refused(core.CodeInvalidRequest, "twice", what, nil); a.member("parameter") == nil {
			t.Errorf("answered %s", a.body)
		}
	}
}

func TestBadValuesNameTheirParameter(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.topic("")
	const group = "/v1/topics/t/groups/g"
	for what, text := range map[string]string{
		"POST " + group + "/poll?max=0":             "it is 1 to 10000",
		"POST " + group + "/poll?max=10001":         "it is 1 to 10000",
		"POST " + group + "/poll?max=-1":            "it is a whole number",
		"POST " + group + "/poll?max=":              "it is a whole number",
		"POST " + group + "/poll?max=1e3":           "it is a whole number",
		"POST " + group + "/poll?max-bytes=0":       "it is 1B to 16MiB",
		"POST " + group + "/poll?max-bytes=17MiB":   "it is 1B to 16MiB",
		"POST " + group + "/poll?max-bytes=5":       "a unit is missing",
		"POST " + group + "/poll?wait=5":            "a unit is missing",
		"POST " + group + "/poll?wait=61s":          "the most is 1m0s",
		"POST " + group + "/poll?wait=-1s":          "negative",
		"POST " + group + "/poll?partition=x":       "it is a whole number",
		"POST " + group + "/poll?poll-id=":          "it has 1 to 200",
		"POST " + group + "/poll?ack=x":             "cannot read receipt",
		"POST " + group + "/poll?encoding=utf8":     "it is auto or base64",
		"POST " + group + "/poll?format=xml":        "it is raw, or left out",
		"POST " + group + "/poll?member=%zz":        "no percent-encoding",
		"POST " + group + "/poll?member=%f":         "cut short",
		"POST " + group + "/poll?member=-a":         "as the name of a member",
		"POST " + group + "/ack":                    "without saying what",
		"POST " + group + "/ack?upto=1":             "give the partition",
		"POST " + group + "/ack?partition=1":        "give upto",
		"POST " + group + "/ack?receipt=":           "cannot read receipt",
		"POST " + group + "/ack?upto=x&partition=0": "it is a whole number",
		"POST " + group + "/nack":                   "without a receipt",
		"POST " + group + "/extend":                 "without a receipt",
		"PUT /v1/topics/u?partitions=0":             "1 to 1024",
		"PUT /v1/topics/u?capacity=many":            "whole number",
		"PUT /v1/topics/u?max-bytes=1":              "a unit is missing",
		"PUT /v1/topics/u?ack-timeout=1d":           "cannot read duration",
		"PUT " + group + "2?type=stack":             "ordered or queue",
		"PUT " + group + "2?start=now":              "latest or earliest",
		"PUT " + group + "2?strategy=none":          "sticky or round-robin",
		"PUT " + group + "2?expires=1":              "a unit is missing",
		"POST /v1/topics/t/messages?wait=2m":        "the most is 1m0s",
		"POST /v1/topics/t/messages?partition=-1":   "whole number",
	} {
		a := r.refused(core.CodeInvalidRequest, text, what, nil)
		_, q, _ := strings.Cut(what, "?")
		name, _, _ := strings.Cut(q, "=")
		if got, _ := a.member("parameter").(string); got == "" || q != "" && got != name && !strings.Contains(text, "give") {
			t.Errorf("%s: the parameter %q is named: %s", what, got, a.body)
		}
	}
}

func TestBadCombinationsOfAckAndNackAreRefused(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.topic("")
	r.want(201, "POST /v1/topics/t/messages", "x")
	receipt := r.want(200, "POST /v1/topics/t/groups/g/poll", nil).member("receipt").(string)
	const group = "POST /v1/topics/t/groups/g"
	r.refused(core.CodeInvalidRequest, "give one receipt", group+"/ack?partition=0&upto=0&receipt="+receipt+"&receipt="+receipt, nil)
	r.refused(core.CodeInvalidRequest, "knows its own", group+"/ack?member=default&receipt="+receipt, nil)
	r.refused(core.CodeInvalidRequest, "give both", group+"/nack?partition=0&receipt="+receipt, nil)
	r.refused(core.CodeInvalidRequest, "give both", group+"/nack?offset=0&receipt="+receipt, nil)
	r.refused(core.CodeInvalidRequest, "the most is 1h0m0s", group+"/nack?delay=2h&receipt="+receipt, nil)
	r.refused(core.CodeInvalidRequest, "the least is", group+"/extend?by=0&receipt="+receipt, nil)
	r.refused(core.CodeInvalidRequest, "the most is", group+"/extend?by=1000h&receipt="+receipt, nil)
	r.refused(core.CodeInvalidRequest, "not all of it", group+"/ack?receipt="+receipt[:len(receipt)-1], nil)
	r.want(200, group+"/ack?receipt="+receipt, nil)
}

// everything is a route that takes what the fuzzer may find.
var everything = &route{method: "POST", path: "/", params: params("key", "wait", "max", "max-bytes", "ack*")}

func FuzzQuery(f *testing.F) {
	for _, seed := range []string{"", "key=a", "key=%00%ff+%2B&wait=5s", "ack=a&ack=b", "wait=5", "max=007&max-bytes=1MiB", "a=b&&=&%", "key=1&key=2", "%6bey=x"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var q query
		if err := q.parse(raw, everything); err != nil {
			if core.CodeOf(err) != core.CodeInvalidRequest {
				t.Fatalf("%q: %v", raw, err)
			}
			return
		}
		// What we can read, net/url reads alike; it is stricter only in refusing
		// semicolons.
		want, err := url.ParseQuery(string(raw))
		if err != nil && !bytes.ContainsRune(raw, ';') {
			t.Fatalf("%q was read, and is no query: %v", raw, err)
		}
		for _, p := range everything.params {
			var got []string
			for v := range q.all(p.name) {
				got = append(got, string(v))
			}
			if err == nil && !slices.Equal(got, want[p.name]) {
				t.Errorf("%q: %s is %q, want %q", raw, p.name, got, want[p.name])
			}
		}
		if d, err := q.wait(0); err == nil && (d < 0 || d > core.MaxWait) {
			t.Errorf("%q: wait is %v", raw, d)
		}
		if n, err := q.integer("max", 1, 1, 10); err == nil && (n < 1 || n > 10) {
			t.Errorf("%q: max is %d", raw, n)
		}
		if n, err := q.size("max-bytes", 1, 1<<20); err == nil && (n < 1 || n > 1<<20) {
			t.Errorf("%q: max-bytes is %d", raw, n)
		}
	})
}
