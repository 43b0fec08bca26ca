package transport

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/podmq/podmq/pkg/core"
)

func TestEveryRouteAnswers(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.want(201, "PUT /v1/topics/t?partitions=2&capacity=10&max-bytes=1MiB&ack-timeout=20s", nil)
	r.want(200, "PUT /v1/topics/t?partitions=2", nil)
	r.want(200, "GET /v1/topics/t", nil)
	r.want(200, "GET /v1/topics", nil)
	r.want(201, "PUT /v1/topics/t/groups/g?type=ordered&start=latest&strategy=sticky&session-timeout=10s&max-lease=1h&expires=60s", nil)
	r.want(200, "PUT /v1/topics/t/groups/g?start=earliest", nil)
	r.want(200, "GET /v1/topics/t/groups/g", nil)
	r.want(200, "GET /v1/topics/t/groups", nil)
	r.want(201, "PUT /v1/topics/t/groups/g/members/m:1@host", nil)
	r.want(200, "PUT /v1/topics/t/groups/g/members/m%3A1%40host", nil)
	r.want(201, "POST /v1/topics/t/messages?key=k&wait=1s&partition=1&sender=s&id=1", "x")
	r.want(201, "POST /v1/topics/t/batch?wait=0", `{"messages":[{"payload":"y"}]}`, "Content-Type: application/json")
	a := r.want(200, "POST /v1/topics/t/groups/g/poll?member=m:1@host&max=2&max-bytes=1KiB&wait=0&poll-id=1&encoding=auto&partition=1", nil)
	receipt := a.member("receipt").(string)
	r.want(200, "POST /v1/topics/t/groups/g/extend?by=30s&receipt="+receipt, nil)
	r.want(200, "POST /v1/topics/t/groups/g/nack?delay=0&receipt="+receipt, nil)
	a = r.want(200, "POST /v1/topics/t/groups/g/poll?member=m:1@host&partition=1", nil)
	r.want(200, "POST /v1/topics/t/groups/g/ack?receipt="+a.member("receipt").(string), nil)
	r.want(204, "DELETE /v1/topics/t/groups/g/members/m:1@host", nil)
	r.want(204, "DELETE /v1/topics/t/groups/g", nil)
	r.want(204, "DELETE /v1/topics/t", nil)
	a = r.want(200, "GET /v1/openapi.yaml", nil)
	if !strings.HasPrefix(a.text(), "openapi: 3.1") || a.Header.Get("Content-Type") != "application/yaml" {
		t.Errorf("the document is %q: %.40q", a.Header.Get("Content-Type"), a.body)
	}

	var answered []string
	for _, s := range r.server.Stats().Requests {
		answered = append(answered, s.Route)
	}
	for _, route := range routes() {
		if !slices.Contains(answered, route.name) {
			t.Errorf("no answer of %s was counted", route.name)
		}
	}
}

func TestEveryAnswerNamesTheEpoch(t *testing.T) {
	t.Parallel()
	r := start(t)
	for _, what := range []string{"GET /v1/topics", "GET /v1/topics/none", "GET /nowhere", "BREW /v1/topics", "PUT /v1/topics/t", "DELETE /v1/topics/t", "HEAD /v1/topics"} {
		if a := r.call(what, nil); a.Header.Get("Podmq-Epoch") != r.engine.Epoch() || a.Header.Get("Date") == "" {
			t.Errorf("%s: Podmq-Epoch: %q, Date: %q", what, a.Header.Get("Podmq-Epoch"), a.Header.Get("Date"))
		}
	}
}

func TestUnknownPathsAreRefused(t *testing.T) {
	t.Parallel()
	r := start(t)
	for _, path := range []string{"/", "/v1", "/v1/", "/v2/topics", "/v1/topics/", "/v1/topics/t/", "/v1/topics/t/groups/g/poll/", "/v1/topics//messages", "/v1/topics/t/groups/g/members", "/a/b/c/d/e/f/g/h/i/j"} {
		r.refused(core.CodeUnknownRoute, "/v1/openapi.yaml", "GET "+path, nil)
	}
	w := r.wire()
	for _, target := range []string{"http://podmq", "http://podmq/nowhere"} {
		w.send(request("GET "+target, ""))
		if a := w.read(); a.StatusCode != 404 {
			t.Errorf("%s: %d %s", target, a.StatusCode, a.body)
		}
	}
	w.send(request("GET http://podmq/v1/topics", ""))
	if a := w.read(); a.StatusCode != 200 {
		t.Errorf("a path in absolute form: %d %s", a.StatusCode, a.body)
	}
	w.send(request("OPTIONS *", ""))
	if a := w.read(); a.StatusCode != 404 {
		t.Errorf("OPTIONS *: %d %s", a.StatusCode, a.body)
	}
}

func TestWrongMethodsNameTheRightOnes(t *testing.T) {
	t.Parallel()
	r := start(t)
	for what, allow := range map[string]string{
		"PATCH /v1/topics":                      "GET, HEAD",
		"POST /v1/topics/t":                     "GET, HEAD, PUT, DELETE",
		"GET /v1/topics/t/messages":             "POST",
		"HEAD /v1/topics/t/groups/g/poll":       "POST",
		"GET /v1/topics/t/groups/g/members/m":   "PUT, DELETE",
		"OPTIONS /v1/topics/t/groups/g":         "GET, HEAD, PUT, DELETE",
		"QUERY /v1/topics/t/groups/g/poll?x=%2": "POST",
	} {
		a := r.call(what, nil)
		if a.StatusCode != 405 || a.Header.Get("Allow") != allow {
			t.Errorf("%s: %d, Allow: %q, want %q", what, a.StatusCode, a.Header.Get("Allow"), allow)
		}
	}
}

func TestHeadIsGetWithoutTheBody(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.topic("")
	for _, path := range []string{"/v1/topics", "/v1/topics/t", "/v1/topics/t/groups", "/v1/topics/t/groups/g", "/v1/openapi.yaml", "/v1/topics/none"} {
		get, head := r.call("GET "+path, nil), r.call("HEAD "+path, nil)
		if head.StatusCode != get.StatusCode || head.ContentLength != get.ContentLength || len(head.body) != 0 {
			t.Errorf("HEAD %s: %d with a length of %d and %d bytes; GET: %d with %d", path, head.StatusCode, head.ContentLength, len(head.body), get.StatusCode, get.ContentLength)
		}
	}
}

func TestAPanicIsAnInternalErrorAndNotTheEnd(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.topic("")
	r.engine.publish = func(context.Context, *core.PublishRequest) error { panic("the secret is 42") }
	a := r.refused(core.CodeInternal, "its log says what", "POST /v1/topics/t/messages", "x")
	if strings.Contains(a.text(), "42") || a.member("retryable") != true {
		t.Errorf("answered %s", a.body)
	}
	if log := r.logs.String(); !strings.Contains(log, "the secret is 42") || !strings.Contains(log, "routes_test.go") {
		t.Errorf("the log has no stack: %s", log)
	}
	r.engine.publish = func(context.Context, *core.PublishRequest) error { return context.DeadlineExceeded }
	r.refused(core.CodeInternal, "its log says what", "POST /v1/topics/t/messages", "x")
	r.engine.publish = nil
	r.want(201, "POST /v1/topics/t/messages", "x")
}

func TestCallsWithoutABodyRefuseOne(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.topic("")
	for _, what := range []string{"POST /v1/topics/t/groups/g/poll?wait=0", "PUT /v1/topics/t", "GET /v1/topics"} {
		r.refused(core.CodeInvalidRequest, "in the query", what, "receipt=x")
		r.want(200, what, "", "Content-Type: application/x-www-form-urlencoded") // curl -X POST -d ''
	}
	r.refused(core.CodeTooLarge, "70000 bytes", "POST /v1/topics/t/groups/g/poll?wait=0", strings.Repeat("x", 70_000))
}
