package admission

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/podmq/podmq/test/e2e/internal/apiserver"
)

const asks = `labels: {podmq.io/inject: "true"}`

func TestPodsAreInjectedByTheirLabelOrTheirNamespaces(t *testing.T) {
	s := install(t, defaults)
	for name, row := range map[string]struct{ namespace, metadata string }{
		"by pod":             {plain, asks},
		"by namespace":       {asking, ""},
		"by both at once":    {asking, asks},
		"with an odd label":  {asking, `labels: {podmq.io/inject: "yes"}`},
		"with other labels":  {asking, `labels: {app: orders}`},
		"with annotations":   {asking, `annotations: {team: orders}`},
		"beside a generator": {asking, `generateName: p-`},
	} {
		t.Run(name, func(t *testing.T) {
			got := s.Pod(t, row.namespace, pod(row.metadata, app))
			if all := names(got.Spec.InitContainers); !slices.Equal(all, []string{"podmq"}) {
				t.Errorf("init containers %v, want podmq once", all)
			}
			if restart := broker(t, got).RestartPolicy; restart == nil || *restart != corev1.ContainerRestartPolicyAlways {
				t.Errorf("restartPolicy %v, want Always", restart)
			}
			checkVolume(t, got)
			checkSocket(t, got, "app")
			if got := got.Annotations["podmq.io/injected"]; got != shared.digest {
				t.Errorf("podmq.io/injected is %q, want %q", got, shared.digest)
			}
		})
	}
}

func checkVolume(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	var found int
	for _, volume := range pod.Spec.Volumes {
		if volume.Name != "podmq" {
			continue
		}
		found++
		if dir := volume.EmptyDir; dir == nil || dir.Medium != corev1.StorageMediumMemory || dir.SizeLimit.String() != "1Mi" {
			t.Errorf("the socket's volume is %+v, want 1Mi of memory", volume)
		}
	}
	if found != 1 {
		t.Errorf("%d volumes for the socket, want 1", found)
	}
}

// checkSocket checks that a container can reach the socket, and no more than that.
func checkSocket(t *testing.T, pod *corev1.Pod, name string) {
	t.Helper()
	c := container(t, pod, name)
	if got := env(c, "PODMQ_SOCKET"); !slices.Equal(got, []string{"/run/podmq/podmq.sock"}) {
		t.Errorf("%s: PODMQ_SOCKET is %q", name, got)
	}
	if c.Env[0].Name != "PODMQ_SOCKET" {
		t.Errorf("%s: the first variable is %s, so PODMQ_SOCKET cannot be referred to by it", name, c.Env[0].Name)
	}
	want := corev1.VolumeMount{Name: "podmq", MountPath: "/run/podmq", ReadOnly: true}
	if mounts := mountsAt(c, "/run/podmq"); len(mounts) != 1 || !reflect.DeepEqual(mounts[0], want) {
		t.Errorf("%s: mounts %+v, want %+v once", name, mounts, want)
	}
}

func container(t *testing.T, pod *corev1.Pod, name string) corev1.Container {
	t.Helper()
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("there is no container %s", name)
	return corev1.Container{}
}

func mountsAt(c corev1.Container, path string) (mounts []corev1.VolumeMount) {
	for _, m := range c.VolumeMounts {
		if m.MountPath == path {
			mounts = append(mounts, m)
		}
	}
	return mounts
}

func TestContainersInEveryPlaceHaveTheSocket(t *testing.T) {
	s := install(t, defaults)
	got := s.Pod(t, asking, pod("", `
initContainers:
- {name: migrate, image: app:1}
- {name: proxy, image: app:1, restartPolicy: Always, env: [{name: MODE, value: a}]}
- {name: fill, image: app:1, volumeMounts: [{name: data, mountPath: /data}]}
containers:
- {name: web, image: app:1}
- {name: worker, image: app:1, env: [{name: URL, value: "unix:$(PODMQ_SOCKET)"}], volumeMounts: [{name: data, mountPath: /data}]}
volumes: [{name: data, emptyDir: {}}]
`))
	if all := names(got.Spec.InitContainers); !slices.Equal(all, []string{"podmq", "migrate", "proxy", "fill"}) {
		t.Errorf("init containers %v, want the broker before all others", all)
	}
	checkVolume(t, got)
	for _, name := range []string{"migrate", "proxy", "fill", "web", "worker"} {
		checkSocket(t, got, name)
	}
	if mounts := mountsAt(container(t, got, "worker"), "/data"); len(mounts) != 1 {
		t.Errorf("worker lost its own mount")
	}
	if mount := mountsAt(broker(t, got), "/run/podmq"); len(mount) != 1 || mount[0].ReadOnly {
		t.Errorf("the broker's own mount is %+v, want one that can be written", mount)
	}
}

func TestWhatAContainerSaysOfTheSocketItselfStays(t *testing.T) {
	s := install(t, defaults)
	got := s.Pod(t, asking, pod("", `
containers:
- {name: value, image: app:1, env: [{name: PODMQ_SOCKET, value: /elsewhere/podmq.sock}]}
- {name: from, image: app:1, env: [{name: PODMQ_SOCKET, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}
- {name: mount, image: app:1, volumeMounts: [{name: own, mountPath: /run/podmq}]}
- {name: slash, image: app:1, volumeMounts: [{name: own, mountPath: /run/podmq/}]}
volumes: [{name: own, emptyDir: {}}]
`))
	if got := env(container(t, got, "value"), "PODMQ_SOCKET"); !slices.Equal(got, []string{"/elsewhere/podmq.sock"}) {
		t.Errorf("its own value became %q", got)
	}
	from := container(t, got, "from")
	if len(from.Env) != 1 || from.Env[0].ValueFrom == nil || from.Env[0].Value != "" {
		t.Errorf("its own valueFrom became %+v", from.Env)
	}
	for _, name := range []string{"value", "from"} {
		if mounts := mountsAt(container(t, got, name), "/run/podmq"); len(mounts) != 1 {
			t.Errorf("%s has %d mounts of the socket, want 1", name, len(mounts))
		}
	}
	for name, path := range map[string]string{"mount": "/run/podmq", "slash": "/run/podmq/"} {
		c := container(t, got, name)
		if mounts := mountsAt(c, path); len(mounts) != 1 || mounts[0].Name != "own" || mounts[0].ReadOnly {
			t.Errorf("%s: its own mount became %+v", name, c.VolumeMounts)
		}
	}
}

func TestPodsAreLeftAlone(t *testing.T) {
	s := install(t, defaults)
	for name, row := range map[string]struct{ namespace, metadata, spec string }{
		"that did not ask":            {plain, "", app},
		"that opted out":              {asking, `labels: {podmq.io/inject: "false"}`, app},
		"of kube-system":              {system, asks, app},
		"with hostNetwork":            {asking, "", "hostNetwork: true\n" + app},
		"for Windows":                 {asking, "", "os: {name: windows}\n" + app},
		"for nodes with Windows":      {asking, "", "nodeSelector: {kubernetes.io/os: windows}\n" + app},
		"that mirror a static pod":    {asking, `annotations: {kubernetes.io/config.mirror: abc}`, "nodeName: node-1\nautomountServiceAccountToken: false\n" + app},
		"that say neither yes nor no": {plain, `labels: {podmq.io/inject: "yes"}`, app},
	} {
		t.Run(name, func(t *testing.T) {
			got := s.Pod(t, row.namespace, pod(row.metadata, row.spec))
			if len(got.Spec.InitContainers) != 0 || len(env(got.Spec.Containers[0], "PODMQ_SOCKET")) != 0 {
				t.Errorf("it was injected: %+v", got.Spec)
			}
		})
	}
}

// Two bindings, reinvocation, and a pod that is made from one that was injected
// (by a backup, say) all run the mutations again.
func TestInjectingAgainChangesNothing(t *testing.T) {
	s := install(t, defaults)
	once := s.Pod(t, asking, pod(asks, app))
	twice := s.Pod(t, asking, again(t, once))
	if !reflect.DeepEqual(once.Spec, twice.Spec) || !reflect.DeepEqual(once.Annotations, twice.Annotations) {
		t.Errorf("once:\n%s\ntwice:\n%s", text(t, once), text(t, twice))
	}
}

func again(t *testing.T, p *corev1.Pod) string {
	t.Helper()
	return text(t, &corev1.Pod{Spec: p.Spec, ObjectMeta: metav1.ObjectMeta{Name: p.Name, Labels: p.Labels, Annotations: p.Annotations}})
}

func text(t *testing.T, p *corev1.Pod) string {
	t.Helper()
	p = p.DeepCopy()
	p.APIVersion, p.Kind = "v1", "Pod"
	out, err := yaml.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// Another policy may run after ours, in an order that nobody defines.
func TestWhatOtherPoliciesAddHasTheSocketAndTheBrokerStaysFirst(t *testing.T) {
	s := install(t, defaults)
	other := func(name, patch string) {
		for _, object := range []string{`
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: ` + name + `}
spec:
  failurePolicy: Fail
  reinvocationPolicy: IfNeeded
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  matchConditions: [{name: asked, expression: "object.metadata.?labels[?'other'].orValue('') == 'yes'"}]
  mutations: [{patchType: JSONPatch, jsonPatch: {expression: ` + quote(patch) + `}}]
`, `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: ` + name + `}
spec: {policyName: ` + name + `}
`} {
			if answer := s.Create(t, "", object, false); answer.Refused() {
				t.Fatal(answer.Message)
			}
		}
	}
	item := `Object.spec.initContainers{name: "first", image: "other:1"}`
	other("zz-first", `object.spec.?initContainers.orValue([]).exists(c, c.name == "first") ? [] :
		(has(object.spec.initContainers) ? [] : [JSONPatch{op: "add", path: "/spec/initContainers", value: []}])
		+ [JSONPatch{op: "add", path: "/spec/initContainers/0", value: `+item+`}]`)
	other("zz-mesh", `object.spec.containers.exists(c, c.name == "mesh") ? [] :
		[JSONPatch{op: "add", path: "/spec/containers/-", value: Object.spec.containers{name: "mesh", image: "other:1"}}]`)
	var got *corev1.Pod
	eventually(t, "the other policies", func() bool {
		got = s.Pod(t, asking, pod(`labels: {other: "yes"}`, app))
		return len(got.Spec.Containers) == 2 && len(got.Spec.InitContainers) == 2
	})
	if all := names(got.Spec.InitContainers); !slices.Equal(all, []string{"podmq", "first"}) {
		t.Errorf("init containers %v, want the broker first", all)
	}
	for _, name := range []string{"app", "mesh", "first"} {
		checkSocket(t, got, name)
	}
	for _, name := range []string{"zz-first", "zz-mesh"} {
		deletePolicy(t, s, name)
	}
}

func deletePolicy(t *testing.T, s *apiserver.Server, name string) {
	t.Helper()
	for _, kind := range []string{"mutatingadmissionpolicybindings", "mutatingadmissionpolicies"} {
		status, body, _, err := s.Do(t.Context(), "DELETE", "/apis/admissionregistration.k8s.io/v1/"+kind+"/"+name, nil)
		if err != nil || status != 200 {
			t.Fatalf("cannot delete %s: %d %v %s", name, status, err, body)
		}
	}
}

func quote(s string) string {
	out, _ := json.Marshal(s)
	return string(out)
}
