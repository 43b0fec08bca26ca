package chart

import (
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"sigs.k8s.io/yaml"

	"github.com/podmq/podmq/test/e2e/internal/helm"
)

// The Prometheus Operator's own types know each field that we set.
func TestTheOperatorKnowsOurObjects(t *testing.T) {
	rendered := helm.MustTemplate(t, "podmq", helm.Values(t, `
podMonitor: {enabled: true, labels: {release: prometheus}, interval: 15s}
prometheusRule: {enabled: true, labels: {release: prometheus}, alertLabels: {team: payments}}
`)...)
	var monitor monitoringv1.PodMonitor
	var rule monitoringv1.PrometheusRule
	for _, document := range helm.Documents(rendered) {
		var err error
		switch {
		case strings.Contains(document, "\nkind: PodMonitor\n"):
			err = yaml.UnmarshalStrict([]byte(document), &monitor)
		case strings.Contains(document, "\nkind: PrometheusRule\n"):
			err = yaml.UnmarshalStrict([]byte(document), &rule)
		}
		if err != nil {
			t.Errorf("the operator would not take %v:\n%s", err, document)
		}
	}
	if endpoints := monitor.Spec.PodMetricsEndpoints; len(endpoints) != 1 || *endpoints[0].Port != "podmq-metrics" || !monitor.Spec.NamespaceSelector.Any {
		t.Errorf("the PodMonitor does not read the port podmq-metrics of all namespaces: %+v", monitor.Spec)
	}
	if len(rule.Spec.Groups) != 1 || len(rule.Spec.Groups[0].Rules) < 10 || monitor.Labels["release"] != "prometheus" || rule.Labels["release"] != "prometheus" {
		t.Errorf("the PrometheusRule is not whole: %+v", rule)
	}
}
