package admission

import (
	"fmt"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmq/podmq/test/e2e/internal/helm"
)

// appChart is a chart whose pod spec is a value.
const appChart = "test/e2e/testdata/app"

// The two ways to a broker must lead to the same pod: whatever one learns of one
// is true of the other.
func TestThePolicyInjectsWhatTheLibraryIncludes(t *testing.T) {
	chart := helm.UserChart(t, appChart)
	for _, settings := range []string{
		`{}`,
		`{topics: [{name: orders, partitions: 8, capacity: 1000000, ackTimeout: 30s, maxBytes: 16Mi, groups: [billing, {name: email, type: queue, sessionTimeout: 2m}]}]}`,
		`{image: {repository: registry.example/podmq, digest: "sha256:0123456789abcdef0123456789abcdef"}, imagePullSecrets: [{name: one}], metricsPort: 9999, gomaxprocs: 4}`,
		`{settings: {partitions: 4, capacity: 5000000, ackTimeout: 1m, maxBytes: 32MiB, maxMessageBytes: 64KiB, topicAdmin: false, httpAddr: "127.0.0.1:9790", socketMode: "0660", metricsPartitions: false, logLevel: debug, logFormat: text}}`,
		`{resources: {requests: {cpu: 1, memory: 100000000}, limits: {cpu: "1.5", memory: 1Gi}}, extraEnv: [{name: A, value: '"quoted" <&> \ü'}, {name: B, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}`,
		`{securityContext: {runAsUser: 2000}, livenessProbe: {type: exec}, readinessProbe: {enabled: true}, postStart: {wait: 30s}}`,
		`{livenessProbe: {type: none}}`,
	} {
		s := install(t, "sidecar: "+settings)
		for _, spec := range []string{
			app,
			"securityContext: {runAsUser: 0}\n" + app,
			`
initContainers: [{name: migrate, image: app:1}, {name: proxy, image: app:1, restartPolicy: Always, env: [{name: MODE, value: a}]}]
containers:
- {name: web, image: app:1, env: [{name: PODMQ_SOCKET, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}
- {name: worker, image: app:1, volumeMounts: [{name: data, mountPath: /run/podmq/}]}
volumes: [{name: data, emptyDir: {}}]
imagePullSecrets: [{name: own}]`,
		} {
			values := fmt.Sprintf("podmq-sidecar: %s\npod:\n%s", settings, indent(spec))
			included := s.Pod(t, plain, helm.MustTemplate(t, chart, helm.Values(t, values)...))
			injected := s.Pod(t, asking, pod("", spec))
			if !reflect.DeepEqual(withoutToken(included), withoutToken(injected)) {
				t.Errorf("with %s\nincluded:\n%s\ninjected:\n%s", settings, text(t, included), text(t, injected))
			}
		}
	}
}

// withoutToken is the spec without the API token, whose volume has another name
// in each pod.
func withoutToken(p *corev1.Pod) corev1.PodSpec {
	spec := *p.Spec.DeepCopy()
	var token string
	for i, volume := range spec.Volumes {
		if volume.Projected != nil {
			token = volume.Name
			spec.Volumes = append(spec.Volumes[:i:i], spec.Volumes[i+1:]...)
			break
		}
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i, c := range containers {
			var mounts []corev1.VolumeMount
			for _, m := range c.VolumeMounts {
				if m.Name != token {
					mounts = append(mounts, m)
				}
			}
			containers[i].VolumeMounts = mounts
		}
	}
	return spec
}

func TestAPodThatIncludesTheBrokerIsNotInjectedAsWell(t *testing.T) {
	s := install(t, defaults)
	rendered := helm.MustTemplate(t, helm.UserChart(t, appChart), helm.Values(t, `podmq-sidecar: {image: {tag: included}}`)...)
	here, there := s.Pod(t, plain, rendered), s.Pod(t, asking, rendered)
	if !reflect.DeepEqual(withoutToken(here), withoutToken(there)) {
		t.Errorf("where nothing asks:\n%s\nwhere the namespace asks:\n%s", text(t, here), text(t, there))
	}
	if _, found := there.Annotations["podmq.io/injected"]; found {
		t.Errorf("it says that it was injected")
	}
}
