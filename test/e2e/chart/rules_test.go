package chart

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/podmq/podmq/test/e2e/internal/helm"
	"github.com/podmq/podmq/test/e2e/internal/need"
)

type alert struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

// rules writes the PrometheusRule's groups as a file for Prometheus.
func rules(t *testing.T, args ...string) (file string, alerts []alert) {
	t.Helper()
	rendered := helm.MustTemplate(t, "podmq", append([]string{"--set", "prometheusRule.enabled=true", "--show-only", "templates/prometheusrule.yaml"}, args...)...)
	var rule struct {
		Spec struct {
			Groups []struct {
				Name  string  `json:"name"`
				Rules []alert `json:"rules"`
			} `json:"groups"`
		}
	}
	var raw struct{ Spec any }
	parse(t, rendered, &rule)
	parse(t, rendered, &raw)
	text, err := yaml.Marshal(raw.Spec)
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file, rule.Spec.Groups[0].Rules
}

// rules_test.yaml has, for each alert, series at which it fires and series at
// which it does not.
func TestAlertsFireWhenTheyShould(t *testing.T) {
	file, _ := rules(t)
	tests, err := os.ReadFile("testdata/rules_test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(filepath.Dir(file), "rules_test.yaml")
	if err := os.WriteFile(copied, tests, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(need.Program(t, "promtool"), "test", "rules", copied).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v: %s", err, out)
	}
}

func TestEveryAlertIsTestedAndExplained(t *testing.T) {
	_, alerts := rules(t)
	tests, err := os.ReadFile("testdata/rules_test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(filepath.Join(helm.Root(), "charts/podmq/README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var parsed struct {
		Tests []struct {
			Alerts []struct {
				Alertname string `json:"alertname"`
				Expected  []any  `json:"exp_alerts"`
			} `json:"alert_rule_test"`
		} `json:"tests"`
	}
	parse(t, string(tests), &parsed)
	fires, quiet := map[string]bool{}, map[string]bool{}
	for _, test := range parsed.Tests {
		for _, a := range test.Alerts {
			fires[a.Alertname] = fires[a.Alertname] || len(a.Expected) > 0
			quiet[a.Alertname] = quiet[a.Alertname] || len(a.Expected) == 0
		}
	}
	for _, a := range alerts {
		if !fires[a.Alert] || !quiet[a.Alert] {
			t.Errorf("%s: tested to fire %v, to be quiet %v; want both", a.Alert, fires[a.Alert], quiet[a.Alert])
		}
		if !strings.Contains(string(readme), "\n### "+a.Alert+"\n") {
			t.Errorf("%s: README.md has no section of that name, where its runbook_url leads", a.Alert)
		}
		if url := a.Annotations["runbook_url"]; !strings.HasSuffix(url, "README.md#"+strings.ToLower(a.Alert)) {
			t.Errorf("%s: runbook_url is %q", a.Alert, url)
		}
		if a.Labels["severity"] == "" || a.For == "" || a.Annotations["summary"] == "" || a.Annotations["description"] == "" {
			t.Errorf("%s lacks severity, for, summary or description: %+v", a.Alert, a)
		}
		checkQuery(t, a.Alert, a.Expr)
	}
}

func TestAlertThresholdsAreValues(t *testing.T) {
	_, alerts := rules(t, helm.Values(t, `{prometheusRule: {oldestMessageSeconds: 1000000, fullnessRatio: 0.95, alertLabels: {team: orders}}}`)...)
	want := map[string]string{"PodmqOldMessage": "> 1000000", "PodmqBufferNearlyFull": "> 0.95", "PodmqMemoryNearlyFull": "> 0.95"}
	for _, a := range alerts {
		if text, given := want[a.Alert]; given && !strings.HasSuffix(a.Expr, text) {
			t.Errorf("%s: expression %s, want %s at its end", a.Alert, a.Expr, text)
		}
		if a.Labels["team"] != "orders" {
			t.Errorf("%s: labels %v, want team=orders among them", a.Alert, a.Labels)
		}
	}
}
