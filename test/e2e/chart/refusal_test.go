package chart

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podmq/podmq/test/e2e/internal/helm"
)

func TestWrongValuesAreRefusedWithASentence(t *testing.T) {
	for values, want := range map[string]string{
		`{inject: {enabled: true}}`:                                             `additional properties 'inject' not allowed`,
		`{injection: {enabled: "yes"}}`:                                         `at '/injection/enabled': got string, want boolean`,
		`{injection: {missing: Ignore}}`:                                        `at '/injection/missing': value must be one of 'Deny', 'Warn'`,
		`{injection: {excludedNamespaces: [Kube_System]}}`:                      `at '/injection/excludedNamespaces/0': 'Kube_System' does not match pattern`,
		`{podMonitor: {interval: 30}}`:                                          `at '/podMonitor/interval': got number, want string`,
		`{podMonitor: {interval: 30 s}}`:                                        `at '/podMonitor/interval': '30 s' does not match pattern`,
		`{prometheusRule: {fullnessRatio: 80}}`:                                 `at '/prometheusRule/fullnessRatio': maximum: got 80, want 1`,
		`{prometheusRule: {oldestMessageSeconds: 5m}}`:                          `at '/prometheusRule/oldestMessageSeconds': got string, want integer`,
		`{dashboard: {labels: {grafana_dashboard: 1}}}`:                         `at '/dashboard/labels/grafana_dashboard': got number, want string`,
		`{commonLabels: [a]}`:                                                   `at '/commonLabels': got array, want object`,
		`{sidecar: {image: podmq:1}}`:                                           `at '/image': got string, want object`,
		`{sidecar: {image: {tag: 1.10}}}`:                                       `at '/image/tag': got number, want string`,
		`{sidecar: {image: {pullPolicy: Sometimes}}}`:                           `at '/image/pullPolicy': value must be one of 'IfNotPresent', 'Always', 'Never'`,
		`{sidecar: {image: {digest: abc}}}`:                                     `at '/image/digest': 'abc' does not match pattern`,
		`{sidecar: {topics: orders}}`:                                           `at '/topics': got string, want array`,
		`{sidecar: {topics: [orders]}}`:                                         `at '/topics/0': got string, want object`,
		`{sidecar: {topics: [{partitions: 2}]}}`:                                `at '/topics/0': missing property 'name'`,
		`{sidecar: {topics: [{name: "or ders"}]}}`:                              `at '/topics/0/name': 'or ders' does not match pattern`,
		`{sidecar: {topics: [{name: o, partition: 2}]}}`:                        `at '/topics/0': additional properties 'partition' not allowed`,
		`{sidecar: {topics: [{name: o, partitions: 1025}]}}`:                    `at '/topics/0/partitions': maximum: got 1,025, want 1,024`,
		`{sidecar: {topics: [{name: o, capacity: 0}]}}`:                         `at '/topics/0/capacity': minimum: got 0, want 1`,
		`{sidecar: {topics: [{name: o, ackTimeout: 30}]}}`:                      `at '/topics/0/ackTimeout': got number, want string`,
		`{sidecar: {topics: [{name: o, ackTimeout: "30"}]}}`:                    `at '/topics/0/ackTimeout': '30' does not match pattern`,
		`{sidecar: {topics: [{name: o, maxBytes: 16MB.}]}}`:                     `at '/topics/0/maxBytes': '16MB.' does not match pattern`,
		`{sidecar: {topics: [{name: o, groups: billing}]}}`:                     `at '/topics/0/groups': got string, want array`,
		`{sidecar: {topics: [{name: o, groups: ["b,c"]}]}}`:                     `at '/topics/0/groups/0': 'b,c' does not match pattern`,
		`{sidecar: {topics: [{name: o, groups: [{name: g, type: stack}]}]}}`:    `at '/topics/0/groups/0/type': value must be one of 'ordered', 'queue'`,
		`{sidecar: {topics: [{name: o}, {name: o}]}}`:                           `podmq: topics: o is there twice`,
		`{sidecar: {topics: [{name: o, groups: [g, {name: g, type: queue}]}]}}`: `podmq: topics: group g of topic o is there twice`,
		`{sidecar: {settings: {httpAddr: "0.0.0.0:80"}}}`:                       `at '/settings/httpAddr': '0.0.0.0:80' does not match pattern`,
		`{sidecar: {settings: {socketMode: "0066"}}}`:                           `at '/settings/socketMode': '0066' does not match pattern`,
		`{sidecar: {settings: {httpAddr: "127.0.0.1:65536"}}}`:                  `at '/settings/httpAddr': '127.0.0.1:65536' does not match pattern`,
		`{sidecar: {settings: {socketMode: 0660}}}`:                             `at '/settings/socketMode': got number, want string`,
		`{sidecar: {settings: {logLevel: loud}}}`:                               `at '/settings/logLevel': value must be one of 'debug', 'info', 'warn', 'error'`,
		`{sidecar: {settings: {drainTimeout: 5s}}}`:                             `at '/settings': additional properties 'drainTimeout' not allowed`,
		`{sidecar: {resources: {limits: {memory: null}}}}`:                      `at '/resources/limits': missing property 'memory'`,
		`{sidecar: {resources: {limits: {memory: 31Mi}}}}`:                      `at '/resources/limits/memory': '31Mi' does not match pattern`,
		`{sidecar: {resources: {limits: {memory: 1000000}}}}`:                   `at '/resources/limits/memory': minimum: got 1×10⁰⁶`,
		`{sidecar: {resources: {requests: {memory: lots}}}}`:                    `at '/resources/requests/memory': 'lots' does not match pattern`,
		`{sidecar: {gomaxprocs: 0}}`:                                            `at '/gomaxprocs': minimum: got 0, want 1`,
		`{sidecar: {metricsPort: 70000}}`:                                       `at '/metricsPort': maximum: got 70,000, want 65,535`,
		`{sidecar: {livenessProbe: {type: tcp}}}`:                               `at '/livenessProbe/type': value must be one of 'httpGet', 'exec', 'none'`,
		`{sidecar: {postStart: {wait: ""}}}`:                                    `at '/postStart/wait': '' does not match pattern`,
		`{sidecar: {extraEnv: [{name: PODMQ_TOPICS, valueFrom: {}}]}}`:          `podmq: extraEnv cannot set PODMQ_TOPICS: what sets it is topics`,
		`{sidecar: {extraEnv: [{value: a}]}}`:                                   `at '/extraEnv/0': missing property 'name'`,
	} {
		t.Run(values, func(t *testing.T) {
			t.Parallel()
			refused(t, "podmq", values, want)
		})
	}
}

func refused(t *testing.T, chart, values, want string, args ...string) {
	t.Helper()
	_, err := helm.Template(t, chart, append(helm.Values(t, values), args...)...)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: error %v, want one with %q", values, err, want)
	}
}

func TestAClusterWithoutMutatingPoliciesIsToldWhatToDo(t *testing.T) {
	for version, shown := range map[string]string{"1.29.0": "v1.29.0", "1.35.9": "v1.35.9", "v1.35.4-gke.100": "v1.35.4"} {
		refused(t, "podmq", "", "podmq: injection by label needs Kubernetes 1.36 or later, and this cluster is "+shown+
			". Either include the library chart podmq-sidecar in your own chart, which works from 1.29 on, and install this chart with --set injection.enabled=false for its monitoring alone; or upgrade the cluster.",
			"--kube-version", version)
		helm.MustTemplate(t, "podmq", "--kube-version", version, "--set", "injection.enabled=false")
	}
	for _, version := range []string{"1.36.0", "v1.36.2-eks-1", "1.38.0-beta.1"} {
		helm.MustTemplate(t, "podmq", "--kube-version", version)
	}
	refused(t, "podmq", "", "incompatible with Kubernetes v1.28.0", "--kube-version", "1.28.0", "--set", "injection.enabled=false")
}

func TestPodsThatCannotHaveABrokerAreRefusedByTheLibrary(t *testing.T) {
	chart := helm.UserChart(t, app)
	for values, want := range map[string]string{
		`{pod: {hostNetwork: true}}`:                               "podmq: a pod with hostNetwork cannot have the broker",
		`{pod: {os: {name: windows}}}`:                             "podmq: a Windows pod cannot have the broker",
		`{pod: {nodeSelector: {kubernetes.io/os: windows}}}`:       "podmq: a Windows pod cannot have the broker",
		`{pod: {containers: [{name: podmq, image: a}]}}`:           "podmq: the pod spec has a container named podmq already",
		`{pod: {initContainers: [{name: podmq, image: a}]}}`:       "podmq: the pod spec has a container named podmq already",
		`{pod: {volumes: [{name: podmq, emptyDir: {}}]}}`:          "podmq: the pod spec has a volume named podmq already",
		`{pod: "containers: [a"}`:                                  "podmq: cannot read the pod spec",
		`{podmq-sidecar: {topics: [{name: o, partitions: many}]}}`: `at '/topics/0/partitions': got string, want integer`,
	} {
		refused(t, chart, values, want)
	}
}

// With an alias the dependency's values stand under another name, which the
// template cannot know.
func TestAnAliasedDependencyHandsItsValuesOver(t *testing.T) {
	chart := helm.UserChart(t, app)
	file := filepath.Join(chart, "Chart.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.Replace(text, []byte("- name: podmq-sidecar"), []byte("- alias: broker\n  name: podmq-sidecar"), 1)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, chart, "", `podmq: there are no values for the sidecar; with an alias for the dependency podmq-sidecar, hand its values to podmq.podSpec`)

	template := filepath.Join(chart, "templates/pod.yaml")
	if text, err = os.ReadFile(template); err != nil {
		t.Fatal(err)
	}
	text = bytes.Replace(text, []byte(".Values.override"), []byte(".Values.broker"), 1)
	if err := os.WriteFile(template, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if out := helm.MustTemplate(t, chart, "--set", "broker.gomaxprocs=7"); !strings.Contains(out, "name: GOMAXPROCS\n      value: \"7\"") {
		t.Errorf("the values of the alias did not reach the broker:\n%s", out)
	}
}
