package transport

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

var rewrite = flag.Bool("rewrite", false, "write golden files instead of comparing with them")

// golden compares text with a file of testdata.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := "testdata/" + name
	if *rewrite {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("%s differs; go test -rewrite writes it anew\n--- got\n%s--- want\n%s", name, text, want)
	}
}

// codes are all of core's, in the order of its file.
var codes = []core.Code{
	core.CodeInvalidRequest, core.CodeAdminDisabled, core.CodeUnknownTopic, core.CodeUnknownGroup, core.CodeUnknownPartition,
	core.CodeUnknownRoute, core.CodeMethodNotAllowed, core.CodeTopicExists, core.CodeGroupExists, core.CodeStaleReceipt,
	core.CodeNotInFlight, core.CodeNotOwner, core.CodeLeaseLimit, core.CodeTooLarge, core.CodeBatchExceedsCapacity,
	core.CodeUnsupportedMedia, core.CodePartitionFull, core.CodeTopicFull, core.CodeMemoryFull, core.CodeDraining,
	core.CodeTooManyConnections, core.CodeStorageFull, core.CodeInternal,
}

func TestProblemsOfEveryCode(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("../core/errors.go")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(source), " Code = \""); n != len(codes) || len(problems) != len(codes) {
		t.Errorf("core has %d codes, the test %d and the table %d", n, len(codes), len(problems))
	}
	r := start(t)
	var all strings.Builder
	for _, code := range codes {
		e := core.Errorf(code, "cannot do it with %q", "<&>\u2028\x00")
		switch {
		case e.Retryable() && code != core.CodeDraining:
			e.RetryAfter = 1500 * time.Millisecond
		case code == core.CodeStaleReceipt:
			_ = e.With("stale", []core.StaleRange{{Partition: 1, From: 2, To: 3}})
		case code == core.CodeInvalidRequest:
			_ = e.With("parameter", "wait").With("line", 3)
		}
		r.engine.topic = func() error { return fmt.Errorf("wrapped: %w", e) }
		a := r.call("GET /v1/topics/t", nil)
		fmt.Fprintf(&all, "%d %s", a.StatusCode, a.Header.Get("Content-Type"))
		for _, name := range []string{"Retry-After", "Allow"} {
			if v := a.Header.Get(name); v != "" {
				fmt.Fprintf(&all, " %s: %s", name, v)
			}
		}
		fmt.Fprintf(&all, "\n%s\n\n", a.body)
		if a.member("status") != float64(a.StatusCode) || a.member("type") != problemURI+string(code) || a.member("title") == nil || a.member("code") != string(code) {
			t.Errorf("%s: %s", code, a.body)
		}
	}
	golden(t, "problems.txt", all.String())
}

func TestErrorsOfNoCodeShowNothing(t *testing.T) {
	t.Parallel()
	r := start(t)
	for _, err := range []error{context.DeadlineExceeded, core.Errorf("made_up", "secret"), os.ErrClosed} {
		r.engine.topic = func() error { return err }
		a := r.refused(core.CodeInternal, "its log says what", "GET /v1/topics/t", nil)
		if strings.Contains(a.text(), "secret") || !strings.Contains(r.logs.String(), err.Error()) {
			t.Errorf("%v: %s", err, a.body)
		}
	}
}

func TestAFieldThatCannotBeShownHidesNothing(t *testing.T) {
	t.Parallel()
	r := problemResponse(core.Errorf(core.CodeInternal, "cannot").With("f", func() {}).With("g", 1))
	if !strings.HasSuffix(string(r.body), `"f":null,"g":1}`) {
		t.Errorf("%s", r.body)
	}
}

func TestRetryAfterIsWholeSecondsRoundedUp(t *testing.T) {
	t.Parallel()
	for after, want := range map[time.Duration]string{
		time.Nanosecond: "1", time.Second: "1", 1001 * time.Millisecond: "2", time.Minute: "60",
	} {
		e := core.Errorf(core.CodePartitionFull, "cannot")
		e.RetryAfter = after
		if r := problemResponse(e); string(r.lines) != "Retry-After: "+want+"\r\n" {
			t.Errorf("%v: %q", after, r.lines)
		}
	}
}

func TestRequestsAreCountedByRouteAndCode(t *testing.T) {
	t.Parallel()
	r := start(t)
	before := r.server.Stats().LastRequest
	r.topic("")
	for range 3 {
		r.want(201, publishT, "x")
	}
	r.want(404, "POST /v1/topics/none/messages", "x")
	r.want(405, "PATCH /v1/topics", nil)
	w := r.wire()
	w.send("nonsense\r\n\r\n")
	w.read()
	r.eventually("all are counted", func() bool {
		s := r.server.Stats()
		count := func(route string, code int) uint64 {
			i := slices.IndexFunc(s.Requests, func(r RouteStats) bool { return r.Route == route && r.Code == code })
			if i < 0 {
				return 0
			}
			if s.Requests[i].Seconds.Count() != s.Requests[i].Count || route != "none" && s.Requests[i].Seconds.Sum <= 0 {
				t.Errorf("the histogram of %s is %+v", route, s.Requests[i])
			}
			return s.Requests[i].Count
		}
		return count("publish", 201) == 3 && count("publish", 404) == 1 && count("none", 405) == 1 && count("none", 400) == 1 &&
			count("create_topic", 201) == 1 && len(s.Requests) == 6
	})
	if after := r.server.Stats().LastRequest; !after.After(before) {
		t.Errorf("the last request came at %v, the server began at %v", after, before)
	}
}
