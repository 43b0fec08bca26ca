package ops

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/podmq/podmq/pkg/core"
	"github.com/podmq/podmq/pkg/transport"
)

// fake is a broker's state as a test sets it.
type fake struct {
	engine core.Stats
	server transport.Stats
	health Health
}

func (f *fake) config() Config {
	return Config{
		Engine:     func() core.Stats { return f.engine },
		Server:     func() transport.Stats { return f.server },
		Health:     &f.health,
		Build:      Build{Version: "v1.2.3", Revision: "abc", GoVersion: "go1.26"},
		Start:      time.Unix(1_800_000_000, 500_000_000),
		Logger:     slog.New(slog.DiscardHandler),
		Partitions: true,
	}
}

func (f *fake) get(t *testing.T, path string) (status int, body string) {
	t.Helper()
	w := httptest.NewRecorder()
	NewHandler(f.config()).ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Code, w.Body.String()
}

// busy is a broker in which every series has a value of its own.
func busy() *fake {
	var wait, latency, request core.Histogram
	wait.Observe(20 * time.Millisecond)
	latency.Observe(time.Millisecond)
	latency.Observe(2 * time.Minute)
	request.Observe(70 * time.Microsecond)
	return &fake{
		engine: core.Stats{
			MemoryBytes: 4096, MemoryLimit: 65536,
			Topics: []core.TopicStats{{
				Name:       "orders",
				Settings:   core.TopicSettings{Partitions: 2, Capacity: 4},
				Partitions: []core.PartitionStats{{Start: 0, End: 1, Backlog: 1}, {Start: 3, End: 6, Backlog: 3}},
				Published:  7, PublishedBytes: 700, WithoutGroup: 2,
				Rejected:   []core.Rejection{{Reason: core.CodePartitionFull, Count: 5}},
				Publishing: 1, PublishWait: wait,
				Groups: []core.GroupStats{{
					Name:          "billing",
					Members:       []core.MemberStats{{Member: "a"}, {Member: "b"}},
					Cursors:       []core.CursorStats{{Lag: 1}, {Lag: 2}},
					Delivered:     9,
					Acked:         4,
					Redelivered:   core.Redelivered{Nack: 11, Lease: 12, Leave: 13},
					InFlight:      6,
					OldestUnacked: 1500 * time.Millisecond,
					PollsWaiting:  8, DeliveryLatency: latency,
				}},
			}},
		},
		server: transport.Stats{
			Connections: 3,
			Requests:    []transport.RouteStats{{Route: "publish", Code: 201, Count: 10, Seconds: request}},
		},
	}
}

// metrics is what a scrape shows of our own, without the comments.
func (f *fake) metrics(t *testing.T) (lines []string) {
	t.Helper()
	status, body := f.get(t, "/metrics")
	if status != http.StatusOK {
		t.Fatalf("GET /metrics: %d %s", status, body)
	}
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, "podmq_") && !strings.Contains(line, "_bucket{") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

func TestEverySeriesIsShownWithItsLabels(t *testing.T) {
	want := []string{
		`podmq_build_info{goversion="go1.26",revision="abc",version="v1.2.3"} 1`,
		`podmq_connections 3`,
		`podmq_delivery_latency_seconds_count{group="billing",topic="orders"} 2`,
		`podmq_delivery_latency_seconds_sum{group="billing",topic="orders"} 120.001`,
		`podmq_group_in_flight{group="billing",topic="orders"} 6`,
		`podmq_group_lag{group="billing",topic="orders"} 3`,
		`podmq_group_members{group="billing",topic="orders"} 2`,
		`podmq_group_oldest_unacked_seconds{group="billing",topic="orders"} 1.5`,
		`podmq_http_request_seconds_count{code="201",route="publish"} 1`,
		`podmq_http_request_seconds_sum{code="201",route="publish"} 7e-05`,
		`podmq_http_requests_total{code="201",route="publish"} 10`,
		`podmq_memory_bytes 4096`,
		`podmq_memory_limit_bytes 65536`,
		`podmq_messages_acked_total{group="billing",topic="orders"} 4`,
		`podmq_messages_delivered_total{group="billing",topic="orders"} 9`,
		`podmq_messages_published_total{topic="orders"} 7`,
		`podmq_messages_redelivered_total{group="billing",reason="lease",topic="orders"} 12`,
		`podmq_messages_redelivered_total{group="billing",reason="leave",topic="orders"} 13`,
		`podmq_messages_redelivered_total{group="billing",reason="nack",topic="orders"} 11`,
		`podmq_messages_without_group_total{topic="orders"} 2`,
		`podmq_partition_backlog{partition="0",topic="orders"} 1`,
		`podmq_partition_backlog{partition="1",topic="orders"} 3`,
		`podmq_partition_capacity{partition="0",topic="orders"} 4`,
		`podmq_partition_capacity{partition="1",topic="orders"} 4`,
		`podmq_partition_end_offset{partition="0",topic="orders"} 1`,
		`podmq_partition_end_offset{partition="1",topic="orders"} 6`,
		`podmq_polls_waiting{group="billing",topic="orders"} 8`,
		`podmq_publish_rejected_total{reason="partition_full",topic="orders"} 5`,
		`podmq_publish_wait_seconds_count{topic="orders"} 1`,
		`podmq_publish_wait_seconds_sum{topic="orders"} 0.02`,
		`podmq_publish_waiting{topic="orders"} 1`,
		`podmq_published_bytes_total{topic="orders"} 700`,
		`podmq_start_time_seconds 1.8000000005e+09`,
		`podmq_topic_fullness_ratio{topic="orders"} 0.75`,
	}
	got := busy().metrics(t)
	slices.Sort(got)
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("missing: %s", line)
		}
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("not expected: %s", line)
		}
	}
}

func TestEverySeriesHasItsTypeAndIsInTheReadme(t *testing.T) {
	_, body := busy().get(t, "/metrics")
	types := map[string]string{}
	for line := range strings.Lines(body) {
		if words := strings.Fields(line); len(words) == 4 && words[1] == "TYPE" && strings.HasPrefix(words[2], "podmq_") {
			types[words[2]] = words[3]
		}
	}
	for name, kind := range types {
		want := "gauge"
		switch {
		case strings.HasSuffix(name, "_total"):
			want = "counter"
		case name == "podmq_publish_wait_seconds", name == "podmq_delivery_latency_seconds", name == "podmq_http_request_seconds":
			want = "histogram"
		}
		if kind != want {
			t.Errorf("%s is a %s, want a %s", name, kind, want)
		}
	}
	readme, err := os.ReadFile(filepath.Join("..", "..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for name := range types {
		if !strings.Contains(string(readme), "`"+name+"`") {
			t.Errorf("the README does not list %s", name)
		}
	}
	described := newSeries()
	if n := len(described.all()); len(types) != n {
		t.Errorf("%d series have a type, %d are described", len(types), n)
	}
}

func TestHistogramsAreCumulative(t *testing.T) {
	_, body := busy().get(t, "/metrics")
	for _, line := range []string{
		`podmq_delivery_latency_seconds_bucket{group="billing",topic="orders",le="0.0005"} 0`,
		`podmq_delivery_latency_seconds_bucket{group="billing",topic="orders",le="0.001"} 1`,
		`podmq_delivery_latency_seconds_bucket{group="billing",topic="orders",le="60"} 1`,
		`podmq_delivery_latency_seconds_bucket{group="billing",topic="orders",le="+Inf"} 2`,
	} {
		if !strings.Contains(body, line+"\n") {
			t.Errorf("missing: %s", line)
		}
	}
}

func TestSeriesPassThePrometheusLinter(t *testing.T) {
	problems, err := testutil.CollectAndLint(newCollector(busy().config()))
	if err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
}

func TestSeriesOfDeletedTopicsAndGroupsDisappear(t *testing.T) {
	f := busy()
	handler := NewHandler(f.config())
	scrape := func() string {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		return w.Body.String()
	}
	if body := scrape(); !strings.Contains(body, `group="billing"`) {
		t.Fatal("the group is not there to begin with")
	}
	f.engine.Topics[0].Groups = nil
	if body := scrape(); strings.Contains(body, `group="billing"`) || !strings.Contains(body, `topic="orders"`) {
		t.Error("a deleted group is still shown, or its topic is not")
	}
	f.engine.Topics = nil
	if body := scrape(); strings.Contains(body, `topic="orders"`) {
		t.Error("a deleted topic is still shown")
	}
}

func TestPartitionSeriesCanBeOff(t *testing.T) {
	f := busy()
	c := f.config()
	c.Partitions = false
	w := httptest.NewRecorder()
	NewHandler(c).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if body := w.Body.String(); strings.Contains(body, "podmq_partition_") || !strings.Contains(body, "podmq_topic_fullness_ratio") {
		t.Errorf("series of partitions are shown, or others are not:\n%s", body)
	}
}

// One snapshot a scrape: what is shown belongs together.
func TestAScrapeTakesOneSnapshot(t *testing.T) {
	f := busy()
	c := f.config()
	snapshots := 0
	c.Engine = func() core.Stats { snapshots++; return f.engine }
	w := httptest.NewRecorder()
	NewHandler(c).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK || snapshots != 1 {
		t.Errorf("status %d after %d snapshots, want 1", w.Code, snapshots)
	}
}

func TestGoAndTheProcessAreShownAsWell(t *testing.T) {
	_, body := busy().get(t, "/metrics")
	for _, name := range []string{"go_goroutines", "process_start_time_seconds", "process_resident_memory_bytes"} {
		if !strings.Contains(body, "\n"+name+" ") {
			t.Errorf("%s is missing", name)
		}
	}
}

func TestReadyFollowsTheBrokersLife(t *testing.T) {
	var f fake
	expect := func(when string, status int, line string) {
		t.Helper()
		if got, body := f.get(t, "/readyz?verbose"); got != status || !strings.Contains(body, line) {
			t.Errorf("%s: /readyz is %d %q, want %d with %q", when, got, body, status, line)
		}
	}
	expect("at the start", 503, "[-]topics failed: the topics of the settings are not created yet\n")
	f.health.TopicsDeclared()
	expect("with topics", 503, "[-]socket failed: the socket is not bound yet\n")
	f.health.SocketBound()
	expect("with the socket", 200, "[+]socket ok\n")
	f.health.Draining()
	expect("draining", 503, "[-]running failed: the broker is draining\n")
}

func TestLiveDependsOnNothing(t *testing.T) {
	f := busy()
	f.engine.Topics[0].Partitions[0].Backlog = 4 // full
	for _, path := range []string{"/livez", "/healthz"} {
		if status, body := f.get(t, path); status != 200 || body != "ok" {
			t.Errorf("%s is %d %q, want 200 ok", path, status, body)
		}
		if status, body := f.get(t, path+"?verbose"); status != 200 || body != "[+]ping ok\n" {
			t.Errorf("%s?verbose is %d %q", path, status, body)
		}
	}
	f.health.Draining()
	if status, _ := f.get(t, "/livez"); status != 200 {
		t.Errorf("/livez is %d while draining: the kubelet would kill the broker", status)
	}
}

func TestOnlyGetIsServed(t *testing.T) {
	handler := NewHandler(busy().config())
	for _, path := range []string{"/livez", "/readyz", "/healthz", "/metrics"} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader("x")))
		if _, err := io.Copy(io.Discard, w.Body); err != nil || w.Code != http.StatusMethodNotAllowed {
			t.Errorf("POST %s is %d, want 405", path, w.Code)
		}
	}
}
