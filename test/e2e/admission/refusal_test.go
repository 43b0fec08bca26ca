package admission

import (
	"fmt"
	"strings"
	"testing"
)

func TestPodsThatAskedInVainAreRefusedWithTheReason(t *testing.T) {
	s := install(t, defaults)
	const asked = "podmq: this pod asked for the broker by the label podmq.io/inject and has none: "
	for name, row := range map[string]struct{ namespace, metadata, spec, want string }{
		"hostNetwork": {plain, asks, "hostNetwork: true\n" + app,
			asked + "it uses hostNetwork, and the broker's metrics port would be the node's"},
		"hostNetwork where the namespace asked as well": {asking, asks, "hostNetwork: true\n" + app, asked + "it uses hostNetwork"},
		"Windows":            {plain, asks, "os: {name: windows}\n" + app, asked + "it is a Windows pod, and the broker needs Linux"},
		"nodes with Windows": {plain, asks, "nodeSelector: {kubernetes.io/os: windows}\n" + app, asked + "it is a Windows pod, and the broker needs Linux"},
		"a container of that name": {asking, "", `containers: [{name: podmq, image: mine:1}]`,
			asked + "it has a container of its own named podmq; rename that"},
		"an init container of that name": {asking, "", "initContainers: [{name: podmq, image: mine:1}]\n" + app,
			asked + "it has an init container of its own named podmq; rename that"},
		"a volume of that name": {asking, "", "volumes: [{name: podmq, configMap: {name: mine}}]\n" + app,
			asked + "its volume named podmq is no emptyDir; rename that"},
		"a sidecar that lost its restartPolicy": {asking, `annotations: {podmq.io/injected: 0.1.0-12345678}`,
			"initContainers: [{name: podmq, image: podmq:1}]\n" + app,
			asked + "something took restartPolicy: Always from its init container podmq; an old admission webhook does that"},
	} {
		t.Run(name, func(t *testing.T) {
			answer := s.Create(t, row.namespace, pod(row.metadata, row.spec), true)
			if !answer.Refused() || !strings.Contains(answer.Message, row.want) {
				t.Errorf("answer %d %q, want a refusal with %q", answer.Status, answer.Message, row.want)
			}
		})
	}
}

func TestAMissingBrokerCanBeAWarning(t *testing.T) {
	s := install(t, `{injection: {missing: Warn}}`)
	answer := s.Create(t, plain, pod(asks, "hostNetwork: true\n"+app), true)
	warnings := strings.Join(answer.Warnings, "\n")
	if answer.Refused() || !strings.Contains(warnings, "has none: it uses hostNetwork") {
		t.Errorf("answer %d, warnings %q; want one that says why there is no broker", answer.Status, warnings)
	}
}

// A bad annotation never makes the mutation fail, which would be answered by an
// internal error that names neither the pod nor the annotation.
func TestBadAnnotationsAreRefusedWithASentence(t *testing.T) {
	s := install(t, defaults)
	const topics = "podmq: annotation podmq.io/topics cannot be read at "
	var many []string
	for i := range 10 {
		many = append(many, fmt.Sprintf("t%d?partitions=1024", i))
	}
	const groups = "podmq: annotation podmq.io/groups cannot be read at "
	for annotations, want := range map[string]string{
		`{podmq.io/topcis: orders}`: "podmq: there is no annotation podmq.io/topcis; there are podmq.io/topics, podmq.io/groups, podmq.io/memory-limit, podmq.io/memory-request, podmq.io/cpu-request",
		`{podmq.io/image: mine}`:    "podmq: there is no annotation podmq.io/image;",

		`{podmq.io/topics: "orders?partition=8"}`:               topics + `"orders?partition=8": a topic is written like orders?partitions=8&`,
		`{podmq.io/topics: "orders?partitions=0"}`:              topics + `"orders?partitions=0"`,
		`{podmq.io/topics: "orders?partitions=1025"}`:           topics,
		`{podmq.io/topics: "orders?capacity=10000001"}`:         topics,
		`{podmq.io/topics: "orders?ack-timeout=30"}`:            topics,
		`{podmq.io/topics: "orders?max-bytes=16"}`:              topics,
		`{podmq.io/topics: "orders?groups="}`:                   topics,
		`{podmq.io/topics: "orders, payments"}`:                 topics,
		`{podmq.io/topics: "ok; or ders"}`:                      topics + `"or ders"`,
		`{podmq.io/topics: "-orders"}`:                          topics,
		"{podmq.io/topics: \"a b\\nc\"}":                        topics + `"a b"`,
		`{podmq.io/topics: "orders;orders?partitions=2"}`:       `may say a thing once only, and this is there twice: "orders"`,
		`{podmq.io/topics: "o?partitions=2&partitions=3"}`:      `may say a thing once only, and this is there twice: "partitions"`,
		`{podmq.io/topics: "o?groups=a,b,a"}`:                   `may say a thing once only, and this is there twice: "a"`,
		`{podmq.io/topics: "o?ack-timeout=169h"}`:               `podmq: a duration in the annotations must be 1ms to 168h, and this is not: ack-timeout=169h`,
		`{podmq.io/topics: "o?ack-timeout=0s"}`:                 `must be 1ms to 168h, and this is not: ack-timeout=0s`,
		`{podmq.io/topics: "o?max-bytes=1GiB;p?max-bytes=1Gi"}`: `podmq: annotation podmq.io/topics reserves 2147483648 bytes by max-bytes, and all messages together may take 67108864; raise podmq.io/memory-limit or reserve less`,
		`{podmq.io/topics: "o?max-bytes=999999999TiB"}`:         `podmq: annotation podmq.io/topics reserves 1000000000000000 bytes`,
		`{podmq.io/topics: "` + strings.Join(many, ";") + `"}`:  `podmq: annotation podmq.io/topics asks for 10 topics with 10240 partitions, and a broker has at most 1000 with 10000`,
		`{podmq.io/topics: "` + strings.Repeat("x", 201) + `"}`: topics + `"` + strings.Repeat("x", 100) + `…"`,

		`{podmq.io/topics: o, podmq.io/groups: o}`:                groups + `"o": a group is written like orders/billing?type=queue&`,
		`{podmq.io/topics: o, podmq.io/groups: "o/g?type=stack"}`: groups,
		`{podmq.io/topics: o, podmq.io/groups: "o/g?expires=60"}`: groups,
		`{podmq.io/topics: o, podmq.io/groups: o/g;o/g}`:          `once only, and this is there twice: "o/g"`,
		`{podmq.io/topics: "o;q", podmq.io/groups: p/g}`:          `podmq: annotation podmq.io/groups names "p/g", whose topic is not declared; the topics are "o, q"`,
		`{podmq.io/groups: p/g}`:                                  `podmq: annotation podmq.io/groups names "p/g", whose topic is not declared`,

		`{podmq.io/memory-limit: lots}`:    `podmq: annotation podmq.io/memory-limit must be a quantity of at least 32Mi, not "lots"`,
		`{podmq.io/memory-limit: 1Mi}`:     `podmq: annotation podmq.io/memory-limit must be a quantity of at least 32Mi, not "1Mi"`,
		`{podmq.io/memory-limit: "-1Gi"}`:  `at least 32Mi, not "-1Gi"`,
		`{podmq.io/memory-limit: ""}`:      `at least 32Mi, not ""`,
		`{podmq.io/memory-request: 256Mi}`: `podmq: annotation podmq.io/memory-request must be a quantity above 0 and at most the limit of 128Mi, not "256Mi"`,
		`{podmq.io/memory-request: "0"}`:   `must be a quantity above 0`,
		`{podmq.io/cpu-request: fast}`:     `podmq: annotation podmq.io/cpu-request must be a quantity above 0, such as 100m, not "fast"`,
		`{podmq.io/cpu-request: "-1"}`:     `must be a quantity above 0, such as 100m, not "-1"`,
	} {
		t.Run(annotations, func(t *testing.T) {
			answer := s.Create(t, asking, pod("annotations: "+annotations, app), true)
			if !answer.Refused() || answer.Status == 500 || !strings.Contains(answer.Message, want) {
				t.Errorf("answer %d %q, want a refusal with %q", answer.Status, answer.Message, want)
			}
		})
	}
}

func TestAnnotationsMayNotGoBeyondTheChartsLimit(t *testing.T) {
	s := install(t, `{sidecar: {resources: {limits: {cpu: 500m}}}}`)
	want := `podmq: annotation podmq.io/cpu-request must be a quantity above 0 and at most the limit of 500m, such as 100m, not "2"`
	if answer := s.Create(t, asking, pod(`annotations: {podmq.io/cpu-request: "2"}`, app), true); !strings.Contains(answer.Message, want) {
		t.Errorf("answer %d %q, want %q", answer.Status, answer.Message, want)
	}
}

// A pod that is not ours to judge keeps its annotations, whatever they are.
func TestPodsThatDidNotAskAreNotJudged(t *testing.T) {
	s := install(t, defaults)
	for _, metadata := range []string{`annotations: {podmq.io/topcis: x}`, "labels: {podmq.io/inject: \"false\"}\nannotations: {podmq.io/topics: \"?\"}"} {
		s.Pod(t, plain, pod(metadata, app))
		s.Pod(t, plain, pod(metadata, "hostNetwork: true\n"+app))
	}
}
