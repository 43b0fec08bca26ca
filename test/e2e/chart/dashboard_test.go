package chart

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/podmq/podmq/test/e2e/internal/grafana"
	"github.com/podmq/podmq/test/e2e/internal/helm"
	"github.com/podmq/podmq/test/e2e/internal/need"
)

// ours are the metrics that the contract names, with their labels.
var ours = map[string][]string{
	"podmq_messages_published_total":     {"topic"},
	"podmq_published_bytes_total":        {"topic"},
	"podmq_messages_without_group_total": {"topic"},
	"podmq_publish_rejected_total":       {"topic", "reason"},
	"podmq_publish_waiting":              {"topic"},
	"podmq_publish_wait_seconds":         {"topic"},
	"podmq_messages_delivered_total":     {"topic", "group"},
	"podmq_messages_acked_total":         {"topic", "group"},
	"podmq_messages_redelivered_total":   {"topic", "group", "reason"},
	"podmq_group_lag":                    {"topic", "group"},
	"podmq_group_in_flight":              {"topic", "group"},
	"podmq_group_members":                {"topic", "group"},
	"podmq_group_oldest_unacked_seconds": {"topic", "group"},
	"podmq_topic_fullness_ratio":         {"topic"},
	"podmq_partition_backlog":            {"topic", "partition"},
	"podmq_partition_capacity":           {"topic", "partition"},
	"podmq_partition_end_offset":         {"topic", "partition"},
	"podmq_polls_waiting":                {"topic", "group"},
	"podmq_delivery_latency_seconds":     {"topic", "group"},
	"podmq_memory_bytes":                 {},
	"podmq_memory_limit_bytes":           {},
	"podmq_connections":                  {},
	"podmq_build_info":                   {},
	"podmq_start_time_seconds":           {},
	"podmq_http_requests_total":          {"route", "code"},
	"podmq_http_request_seconds":         {"route", "code"},
}

// others are the metrics that queries may use beside ours: of client_golang's
// process collector, and of kube-state-metrics.
var others = []string{
	"process_cpu_seconds_total", "process_resident_memory_bytes",
	"kube_pod_init_container_status_restarts_total",
	"kube_pod_init_container_status_last_terminated_reason",
	"kube_pod_init_container_status_waiting_reason",
	"kube_pod_init_container_status_running",
}

var (
	metricName = regexp.MustCompile(`\b(?:podmq|process|kube)_[a-z_]+`)
	labelList  = regexp.MustCompile(`(?:by|on) \(([^)]*)\)|(\b[a-z_]+)(?:=~|=|!=|!~)"`)
)

// checkQuery checks that a query's metrics and labels exist.
func checkQuery(t *testing.T, where, query string) {
	t.Helper()
	labels := []string{"namespace", "pod", "container", "le"}
	for _, name := range metricName.FindAllString(query, -1) {
		base := strings.TrimSuffix(name, "_bucket")
		if known, found := ours[base]; found {
			labels = append(labels, known...)
		} else if !slices.Contains(others, name) {
			t.Errorf("%s: there is no metric %s in %s", where, name, query)
		} else {
			labels = append(labels, "reason")
		}
	}
	for _, m := range labelList.FindAllStringSubmatch(query, -1) {
		for _, label := range strings.Split(m[1]+m[2], ",") {
			if label = strings.TrimSpace(label); label != "" && !slices.Contains(labels, label) {
				t.Errorf("%s: there is no label %s in %s", where, label, query)
			}
		}
	}
}

func TestTheDashboardAsksForWhatExists(t *testing.T) {
	board := grafana.Load(t, filepath.Join(helm.Root(), "charts/podmq/files/dashboard.json"))
	var rules []map[string]string
	for i, q := range board.Queries() {
		checkQuery(t, q.Panel, q.Expr)
		rules = append(rules, map[string]string{"record": fmt.Sprintf("query:%d", i), "expr": grafana.Expand(q.Expr)})
	}
	if len(rules) < 25 {
		t.Errorf("only %d queries were found", len(rules))
	}
	// promtool parses recording rules, so it parses the queries.
	promtoolCheck(t, map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": rules}}})
}

func TestTheDashboardShowsEveryMetric(t *testing.T) {
	board := grafana.Load(t, filepath.Join(helm.Root(), "charts/podmq/files/dashboard.json"))
	var all strings.Builder
	for _, q := range board.Queries() {
		all.WriteString(q.Expr + "\n")
	}
	for name := range ours {
		if name == "podmq_partition_end_offset" {
			continue // for those who compute rates of one partition
		}
		if !regexp.MustCompile(`\b` + name + `(_bucket)?\b`).MatchString(all.String()) {
			t.Errorf("no panel shows %s", name)
		}
	}
}

func TestTheDashboardIsOneThatGrafanaTakes(t *testing.T) {
	board := grafana.Load(t, filepath.Join(helm.Root(), "charts/podmq/files/dashboard.json"))
	ids := map[int]bool{}
	used := map[[2]int]string{}
	for _, p := range board.Panels {
		if ids[p.ID] {
			t.Errorf("panel id %d is there twice", p.ID)
		}
		ids[p.ID] = true
		if p.Title == "" || p.Type != "row" && p.Description == "" {
			t.Errorf("panel %d %q has no title or no description", p.ID, p.Title)
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other, taken := used[[2]int{x, y}]; taken || x >= 24 {
					t.Fatalf("panel %q overlaps %q or the edge", p.Title, other)
				}
				used[[2]int{x, y}] = p.Title
			}
		}
	}
	rendered := helm.MustTemplate(t, "podmq", "--set", "dashboard.enabled=true", "--show-only", "templates/dashboard.yaml")
	var config struct{ Data map[string]string }
	parse(t, rendered, &config)
	if !json.Valid([]byte(config.Data["podmq.json"])) {
		t.Errorf("the ConfigMap does not hold JSON")
	}
}

func promtoolCheck(t *testing.T, rules any) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "rules.yaml")
	text, err := json.Marshal(rules) // JSON is YAML
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(need.Program(t, "promtool"), "check", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v: %s", err, out)
	}
}
