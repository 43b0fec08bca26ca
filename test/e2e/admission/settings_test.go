package admission

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

const chartTopics = `
sidecar:
  topics:
  - {name: orders, partitions: 8, groups: [billing, {name: email, type: queue}]}
`

func TestTopicsBelongToThePod(t *testing.T) {
	for _, row := range []struct{ name, values, annotations, topics, groups string }{
		{"nobody's", defaults, ``, "", ""},
		{"the pod's", defaults, `{podmq.io/topics: "jobs?groups=w", podmq.io/groups: "jobs/x?type=queue"}`, "jobs?groups=w",
			"jobs/x?type=queue"},
		{"the chart's", chartTopics, ``, "orders?partitions=8&groups=billing", "orders/email?type=queue"},
		{"the pod's own before the chart's", chartTopics, `{podmq.io/topics: jobs}`, "jobs", ""},
		{"own groups of the chart's topics", chartTopics, `{podmq.io/groups: orders/audit}`, "orders?partitions=8&groups=billing", "orders/audit"},
		{"both its own", chartTopics, `{podmq.io/topics: jobs, podmq.io/groups: jobs/w}`, "jobs", "jobs/w"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := install(t, row.values)
			metadata := ""
			if row.annotations != "" {
				metadata = "annotations: " + row.annotations
			}
			c := broker(t, s.Pod(t, asking, pod(metadata, app)))
			for variable, want := range map[string]string{"PODMQ_TOPICS": row.topics, "PODMQ_GROUPS": row.groups} {
				got := env(c, variable)
				if len(got) > 1 || len(got) == 1 && got[0] != want || len(got) == 0 && want != "" {
					t.Errorf("%s is %q, want %q", variable, got, want)
				}
			}
		})
	}
}

func TestTopicsMayStandOnLinesOfTheirOwn(t *testing.T) {
	s := install(t, defaults)
	got := s.Pod(t, asking, pod("annotations:\n  podmq.io/topics: |\n    orders?partitions=8&capacity=10000&ack-timeout=1m30s&max-bytes=16MiB&groups=billing,email\n    payments\n", app))
	want := "orders?partitions=8&capacity=10000&ack-timeout=1m30s&max-bytes=16MiB&groups=billing,email\npayments\n"
	if topics := env(broker(t, got), "PODMQ_TOPICS"); !slices.Equal(topics, []string{want}) {
		t.Errorf("PODMQ_TOPICS is %q, want %q", topics, want)
	}
}

func TestAPodMaySayWhatItsBrokerRequests(t *testing.T) {
	s := install(t, defaults)
	for name, row := range map[string]struct{ annotations, limit, memory, cpu string }{
		"nothing":                    {`{}`, "128Mi", "64Mi", "10m"},
		"a limit":                    {`{podmq.io/memory-limit: 256Mi}`, "256Mi", "64Mi", "10m"},
		"a limit below the request":  {`{podmq.io/memory-limit: 32Mi}`, "32Mi", "32Mi", "10m"},
		"a request":                  {`{podmq.io/memory-request: 128Mi}`, "128Mi", "128Mi", "10m"},
		"a request and a limit":      {`{podmq.io/memory-limit: 1Gi, podmq.io/memory-request: 512Mi}`, "1Gi", "512Mi", "10m"},
		"a share of a core":          {`{podmq.io/cpu-request: 250m}`, "128Mi", "64Mi", "250m"},
		"cores, as a plain number":   {`{podmq.io/cpu-request: "2"}`, "128Mi", "64Mi", "2"},
		"a limit in decimal numbers": {`{podmq.io/memory-limit: 100M}`, "100M", "64Mi", "10m"},
	} {
		t.Run(name, func(t *testing.T) {
			r := broker(t, s.Pod(t, asking, pod("annotations: "+row.annotations, app))).Resources
			for _, got := range []struct{ what, got, want string }{
				{"memory limit", r.Limits.Memory().String(), row.limit},
				{"memory request", r.Requests.Memory().String(), row.memory},
				{"cpu request", r.Requests.Cpu().String(), row.cpu},
			} {
				if got.got != got.want {
					t.Errorf("%s %s, want %s", got.what, got.got, got.want)
				}
			}
			if _, limited := r.Limits[corev1.ResourceCPU]; limited {
				t.Errorf("there is a CPU limit: %v", r.Limits)
			}
		})
	}
}

// A broker that inherits uid 0 beside runAsNonRoot never starts; one with a fixed
// uid is refused where the platform gives uids.
func TestOnlyAPodOfRootGivesTheBrokerAUser(t *testing.T) {
	s := install(t, defaults)
	for spec, want := range map[string]int64{
		app: -1,
		"securityContext: {runAsUser: 1000}\n" + app:    -1,
		"securityContext: {runAsNonRoot: true}\n" + app: -1,
		"securityContext: {runAsUser: 0}\n" + app:       65532,
	} {
		security := broker(t, s.Pod(t, asking, pod("", spec))).SecurityContext
		got := int64(-1)
		if security.RunAsUser != nil {
			got = *security.RunAsUser
		}
		if got != want || !*security.RunAsNonRoot {
			t.Errorf("%s: runAsUser %d, want %d (-1: none)", spec, got, want)
		}
	}
}

func TestARestrictedNamespaceAdmitsTheBroker(t *testing.T) {
	s := install(t, defaults)
	got := s.Pod(t, restricted, pod("", `
containers:
- name: app
  image: app:1
  securityContext:
    runAsUser: 1000
    runAsNonRoot: true
    allowPrivilegeEscalation: false
    capabilities: {drop: [ALL]}
    seccompProfile: {type: RuntimeDefault}
`))
	broker(t, got)
	// What shows that the namespace is one: the same pod without its own context.
	if answer := s.Create(t, restricted, pod("", app), true); !answer.Refused() {
		t.Errorf("a restricted namespace admitted an app that is not")
	}
}

func TestPullSecretsAreAddedToThePodsOwn(t *testing.T) {
	s := install(t, `{sidecar: {imagePullSecrets: [{name: one}, {name: two}]}}`)
	for spec, want := range map[string][]string{
		app: {"one", "two"},
		"imagePullSecrets: [{name: own}, {name: two}]\n" + app: {"own", "two", "one"},
	} {
		var got []string
		for _, secret := range s.Pod(t, asking, pod(asks, spec)).Spec.ImagePullSecrets {
			got = append(got, secret.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: pull secrets %v, want %v", spec, got, want)
		}
	}
}

func TestExcludedNamespacesAreLeftAlone(t *testing.T) {
	s := install(t, `{injection: {excludedNamespaces: [plain]}}`)
	if got := s.Pod(t, plain, pod(asks, app)); len(got.Spec.InitContainers) != 0 {
		t.Errorf("a pod of an excluded namespace was injected")
	}
	if got := s.Pod(t, system, pod(asks, app)); len(got.Spec.InitContainers) != 0 {
		t.Errorf("a pod of kube-system was injected")
	}
}

// The digest is what tells old pods from new ones after an upgrade.
func TestOtherSettingsHaveAnotherDigest(t *testing.T) {
	seen := map[string]string{}
	for _, values := range []string{defaults, chartTopics, `{sidecar: {image: {tag: other}}}`, `{sidecar: {imagePullSecrets: [{name: one}]}}`} {
		install(t, values)
		if other, found := seen[shared.digest]; found {
			t.Errorf("%s and %s have the same digest %s", values, other, shared.digest)
		}
		seen[shared.digest] = values
	}
	install(t, `{podMonitor: {enabled: false}, injection: {missing: Warn}}`)
	if seen[shared.digest] != defaults {
		t.Errorf("what does not change the pods changed their digest")
	}
}
