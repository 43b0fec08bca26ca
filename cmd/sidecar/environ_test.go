package main

import (
	"reflect"
	"testing"
)

func knownVariables() (names []string) {
	c := defaults()
	for _, v := range c.variables() {
		names = append(names, v.name)
	}
	return names
}

func TestMisspeltVariablesAreFoundWithTheNearestName(t *testing.T) {
	got := unknownVariables([]string{
		"PATH=/bin", "PODMQ=1", "PODMQTOPICS=x", "PODMQ_TOPICS=orders",
		"PODMQ_TOPIC=orders", "PODMQ_SOKET=/x", "PODMQ_ACKTIMEOUT=", "PODMQ_MAX_MESSAGES_BYTES=1",
	}, knownVariables())
	want := []unknownVariable{
		{"PODMQ_ACKTIMEOUT", "PODMQ_ACK_TIMEOUT"},
		{"PODMQ_MAX_MESSAGES_BYTES", "PODMQ_MAX_MESSAGE_BYTES"},
		{"PODMQ_SOKET", "PODMQ_SOCKET"},
		{"PODMQ_TOPIC", "PODMQ_TOPICS"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// As the kubelet makes them for Services named podmq and podmq-metrics.
func TestVariablesOfServicesNamedLikeUsAreIgnored(t *testing.T) {
	got := unknownVariables([]string{
		"PODMQ_SERVICE_HOST=10.0.0.1", "PODMQ_SERVICE_PORT=9789", "PODMQ_SERVICE_PORT_METRICS=9789",
		"PODMQ_PORT=tcp://10.0.0.1:9789", "PODMQ_PORT_9789_TCP=tcp://10.0.0.1:9789", "PODMQ_PORT_9789_TCP_ADDR=10.0.0.1",
		"PODMQ_METRICS_SERVICE_HOST=10.0.0.1", "PODMQ_METRICS_SERVICE_PORT_HTTP=80", "PODMQ_METRICS_PORT=tcp://10.0.0.1:80",
		"PODMQ_METRICS_PORT_80_TCP_PROTO=tcp",
	}, knownVariables())
	if len(got) > 0 {
		t.Errorf("got %v, want none", got)
	}
}

func TestNoSettingCanBeInjectedByAService(t *testing.T) {
	for _, name := range knownVariables() {
		if isServiceLink(name) {
			t.Errorf("%s is what Kubernetes may inject", name)
		}
	}
}

func TestDistanceCountsEdits(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"kitten", "sitting", 3}, {"ab", "ba", 2}, {"same", "same", 0}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
