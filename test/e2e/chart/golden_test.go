package chart

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/podmq/podmq/test/e2e/internal/helm"
)

// everything is a value for each thing that can be set.
const everything = `
image: {repository: registry.example/podmq, tag: 1.2.3, pullPolicy: Always}
imagePullSecrets: [{name: registry}]
topics:
- name: orders
  partitions: 8
  capacity: 1000000
  ackTimeout: 30s
  maxBytes: 16Mi
  groups: [billing, {name: email, type: queue, start: earliest, sessionTimeout: 2m, maxLease: 2h, expires: 60s}]
- name: payments
  groups: [{name: audit, strategy: round-robin}]
- name: plain
settings:
  partitions: 4
  capacity: 5000000
  ackTimeout: 1m
  maxBytes: 32MiB
  maxMessageBytes: 64KiB
  topicAdmin: false
  httpAddr: "127.0.0.1:9790"
  socketMode: "0660"
  metricsPartitions: false
  logLevel: debug
  logFormat: text
metricsPort: 9999
gomaxprocs: 4
extraEnv: [{name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]
resources: {requests: {cpu: 1, memory: 100000000}, limits: {cpu: 1.5, memory: 1Gi}}
securityContext: {runAsUser: 2000}
postStart: {wait: 30s}
livenessProbe: {type: exec, periodSeconds: 20}
readinessProbe: {enabled: true}
`

func TestChartsRenderAsReviewed(t *testing.T) {
	included := helm.UserChart(t, app)
	for name, row := range map[string]struct {
		chart  string
		values string
	}{
		"podmq-default": {"podmq", ""},
		"podmq-everything": {"podmq", `
injection: {missing: Warn, excludedNamespaces: [monitoring]}
podMonitor: {enabled: true, namespace: monitoring, labels: {release: prometheus}, interval: 15s}
prometheusRule: {enabled: true, namespace: monitoring, labels: {release: prometheus}, alertLabels: {team: payments}, oldestMessageSeconds: 60, fullnessRatio: 0.9}
dashboard: {enabled: true, namespace: monitoring, annotations: {grafana_folder: PodMQ}}
commonLabels: {team: payments}
sidecar:` + nested(everything)},
		"podmq-without-injection": {"podmq", "injection: {enabled: false}\npodMonitor: {enabled: true}\n"},
		"included-default":        {included, ""},
		"included-everything": {included, `
pod:
  securityContext: {runAsUser: 0, fsGroup: 3000}
  imagePullSecrets: [{name: own}]
  initContainers: [{name: migrate, image: app:1}]
  containers:
  - {name: web, image: app:1, env: [{name: URL, value: "unix:$(PODMQ_SOCKET)"}]}
  - {name: worker, image: app:1, env: [{name: PODMQ_SOCKET, value: /elsewhere}], volumeMounts: [{name: data, mountPath: /data}]}
  volumes: [{name: data, emptyDir: {}}]
podmq-sidecar:` + nested(everything)},
		"included-with-override": {included, `
podmq-sidecar: {topics: [{name: orders, groups: [billing]}], resources: {limits: {memory: 256Mi}}}
override: {topics: [{name: jobs}]}
`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden(t, filepath.Join("testdata", name+".golden.yaml"), helm.MustTemplate(t, row.chart, helm.Values(t, row.values)...))
		})
	}
}

func nested(yaml string) string {
	return strings.ReplaceAll(strings.TrimRight(yaml, "\n"), "\n", "\n  ") + "\n"
}
