package admission

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// workloads are one of each kind, with room for the metadata and the spec of
// their pods.
var workloads = map[string]string{
	"Deployment":  `{apiVersion: apps/v1, kind: Deployment, metadata: {name: w}, spec: {selector: {matchLabels: {app: w}}, template: %s}}`,
	"StatefulSet": `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: w}, spec: {selector: {matchLabels: {app: w}}, template: %s}}`,
	"DaemonSet":   `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: w}, spec: {selector: {matchLabels: {app: w}}, template: %s}}`,
	"Job":         `{apiVersion: batch/v1, kind: Job, metadata: {name: w}, spec: {template: %s}}`,
	"CronJob":     `{apiVersion: batch/v1, kind: CronJob, metadata: {name: w}, spec: {schedule: "@daily", jobTemplate: {spec: {template: %s}}}}`,
}

func template(kind, label, annotations, spec string) string {
	if strings.HasSuffix(kind, "Job") {
		spec += ", restartPolicy: Never"
	}
	if label != "" {
		label = ", podmq.io/inject: " + label
	}
	return fmt.Sprintf("{metadata: {labels: {app: w%s}, annotations: {%s}}, spec: {%s}}", label, annotations, spec)
}

func TestAuthorsOfWorkloadsAreWarned(t *testing.T) {
	s := install(t, defaults)
	for kind, form := range workloads {
		for name, row := range map[string]struct{ namespace, label, annotations, spec, want string }{
			"a label that is neither":                           {plain, `"yes"`, "", app, `podmq: label podmq.io/inject must be "true" or "false", not "yes": nothing is injected`},
			"hostNetwork":                                       {plain, `"true"`, "", app + ", hostNetwork: true", "podmq: pods with hostNetwork are not injected"},
			"hostNetwork, where the namespace asks":             {asking, "", "", app + ", hostNetwork: true", "podmq: pods with hostNetwork are not injected"},
			"a label that is neither, where the namespace asks": {asking, `"yes"`, "", app, `not "yes": it counts for nothing, and pods are injected as their namespace asks`},
			"Windows":                   {plain, `"true"`, "", app + ", os: {name: windows}", "podmq: Windows pods are not injected"},
			"nodes with Windows":        {asking, "", "", app + ", nodeSelector: {kubernetes.io/os: windows}", "podmq: Windows pods are not injected"},
			"annotations without label": {plain, "", "podmq.io/topics: orders", app, `do nothing without the label podmq.io/inject: "true"`},
			"a bad annotation":          {plain, `"true"`, `podmq.io/topics: "?"`, app, `podmq: annotation podmq.io/topics cannot be read at "?"`},
			"an unknown annotation, where the namespace asks": {asking, "", `podmq.io/x: "?"`, app, `podmq: there is no annotation podmq.io/x`},
		} {
			t.Run(kind+" with "+name, func(t *testing.T) {
				answer := s.Create(t, row.namespace, fmt.Sprintf(form, template(kind, row.label, row.annotations, row.spec)), true)
				if answer.Refused() {
					t.Fatalf("it was refused: %s", answer.Message)
				}
				if !slices.ContainsFunc(answer.Warnings, func(w string) bool { return strings.Contains(w, row.want) }) {
					t.Errorf("warnings %q, want %q", answer.Warnings, row.want)
				}
			})
		}
		for name, row := range map[string]struct{ namespace, label, annotations string }{
			"nothing said":              {plain, "", ""},
			"good annotations":          {plain, `"true"`, "podmq.io/topics: orders, podmq.io/groups: orders/g"},
			"an opt-out":                {asking, `"false"`, ""},
			"the namespace's own label": {asking, "", "podmq.io/topics: orders"},
		} {
			t.Run(kind+" with "+name, func(t *testing.T) {
				answer := s.Create(t, row.namespace, fmt.Sprintf(form, template(kind, row.label, row.annotations, app)), true)
				if answer.Refused() || len(answer.Warnings) > 0 {
					t.Errorf("answer %d %q, warnings %q; want neither", answer.Status, answer.Message, answer.Warnings)
				}
			})
		}
	}
}

func TestAuthorsOfPodsAndNamespacesAreWarned(t *testing.T) {
	s := install(t, defaults)
	want := `podmq: label podmq.io/inject must be "true" or "false", not "enabled": nothing is injected`
	for namespace, object := range map[string]string{
		plain: pod(`labels: {podmq.io/inject: enabled}`, app),
		"":    `{apiVersion: v1, kind: Namespace, metadata: {name: new, labels: {podmq.io/inject: enabled}}}`,
	} {
		answer := s.Create(t, namespace, object, true)
		if answer.Refused() || !slices.ContainsFunc(answer.Warnings, func(w string) bool { return strings.Contains(w, want) }) {
			t.Errorf("answer %d %q, warnings %q, want %q", answer.Status, answer.Message, answer.Warnings, want)
		}
	}
	owned := "labels: {podmq.io/inject: enabled}\nownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: w, uid: abc}]"
	answer := s.Create(t, plain, pod(owned, app), true)
	if answer.Refused() || len(answer.Warnings) > 0 {
		t.Errorf("a controller's pod: answer %d %q, warnings %q; nobody would read them", answer.Status, answer.Message, answer.Warnings)
	}
}
