package admission

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmq/podmq/test/e2e/internal/apiserver"
	"github.com/podmq/podmq/test/e2e/internal/helm"
)

// One server serves all tests, one after the other: a test installs the chart
// with the values that it needs.
var shared struct {
	once      sync.Once
	server    *apiserver.Server
	installed string
	marks     int
	digest    string // what podmq.io/injected says with these values
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.server != nil {
		shared.server.Stop()
	}
	helm.Clean()
	os.Exit(code)
}

// The namespaces: one asks for the broker, one does not, one asks in vain, and
// one asks and admits only what is restricted.
const (
	asking     = "asking"
	plain      = "plain"
	system     = "kube-system"
	restricted = "restricted"
)

const defaults = "{}"

var digestText = regexp.MustCompile(`podmq.io~1injected", value: "([^"]+)"`)

// install has the chart in force with values, and returns the server.
func install(t *testing.T, values string) *apiserver.Server {
	t.Helper()
	shared.once.Do(func() {
		s := apiserver.Start(t)
		shared.server = s
		s.Namespace(t, asking, map[string]string{"podmq.io/inject": "true"})
		s.Namespace(t, plain, nil)
		s.Namespace(t, restricted, map[string]string{"podmq.io/inject": "true", "pod-security.kubernetes.io/enforce": "restricted"})
		s.Create(t, system, `{apiVersion: v1, kind: ServiceAccount, metadata: {name: default}}`, false)
	})
	if shared.server == nil {
		t.Fatal("there is no server: it did not start for an earlier test")
	}
	if shared.installed == values {
		return shared.server
	}
	shared.installed = ""
	// Reset, because Helm takes no values for "those of before".
	args := append([]string{"upgrade", "--install", "--reset-values", "podmq", helm.Charts(t) + "/podmq", "--namespace", "podmq-system", "--create-namespace",
		"--kubeconfig", shared.server.Kubeconfig}, helm.Values(t, values)...)
	if _, err := helm.Run(t, args...); err != nil {
		t.Fatal(err)
	}
	manifest, err := helm.Run(t, "get", "manifest", "podmq", "--namespace", "podmq-system", "--kubeconfig", shared.server.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	shared.digest = digestText.FindStringSubmatch(manifest)[1]
	waitInForce(t, shared.server)
	shared.installed = values
	return shared.server
}

// waitInForce waits until the API server has taken up all policies and bindings,
// which it does about a second after they were written, in the order of writing:
// so it is done once what is written last is in force.
func waitInForce(t *testing.T, s *apiserver.Server) {
	t.Helper()
	shared.marks++
	mark := fmt.Sprintf("mark-%d", shared.marks)
	for _, kind := range []string{"Mutating", "Validating"} {
		for _, object := range markPolicy(kind, mark) {
			if answer := s.Create(t, "", object, false); answer.Refused() {
				t.Fatal(answer.Message)
			}
		}
	}
	marked := pod("labels: {mark: "+mark+"}", app)
	eventually(t, "validating policies to be in force", func() bool {
		return strings.Contains(s.Create(t, plain, marked, true).Message, mark)
	})
	eventually(t, "mutating policies to be in force", func() bool {
		return strings.Contains(s.Create(t, plain, marked, true).Message, "mutated")
	})
}

// markPolicy is a policy that can be seen to be in force, with its binding: the
// validating one refuses the pods of that mark, and says whether the mutating
// one was there before it.
func markPolicy(kind, mark string) []string {
	what := `reinvocationPolicy: IfNeeded
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration: {expression: 'Object{metadata: Object.metadata{labels: {"marked": "mutated"}}}'}`
	actions := ""
	if kind == "Validating" {
		what = `validations: [{expression: "false", messageExpression: '"` + mark + ` " + object.metadata.?labels[?"marked"].orValue("")'}]`
		actions = ", validationActions: [Deny]"
	}
	return []string{`
apiVersion: admissionregistration.k8s.io/v1
kind: ` + kind + `AdmissionPolicy
metadata: {name: ` + mark + `}
spec:
  failurePolicy: Fail
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  ` + what, `
apiVersion: admissionregistration.k8s.io/v1
kind: ` + kind + `AdmissionPolicyBinding
metadata: {name: ` + mark + `}
spec: {policyName: ` + mark + `, matchResources: {objectSelector: {matchLabels: {mark: ` + mark + `}}}` + actions + `}
`}
}

// eventually waits for something that the API server does in its own time.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	timeout := time.After(time.Minute)
	for !done() {
		select {
		case <-tick.C:
		case <-timeout:
			t.Fatalf("cannot wait longer for %s", what)
		}
	}
}

// app is the spec of a pod with one container and nothing else.
const app = `containers: [{name: app, image: app:1}]`

// pod is a pod with this metadata and spec, as YAML of any depth.
func pod(metadata, spec string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n" + indent(metadata) + "spec:\n" + indent(spec)
}

func indent(yaml string) string {
	if yaml == "" {
		return ""
	}
	return "  " + strings.ReplaceAll(strings.TrimSpace(yaml), "\n", "\n  ") + "\n"
}

// broker returns the injected container, which must be the first.
func broker(t *testing.T, pod *corev1.Pod) corev1.Container {
	t.Helper()
	if len(pod.Spec.InitContainers) == 0 || pod.Spec.InitContainers[0].Name != "podmq" {
		t.Fatalf("the broker is not the first of the init containers: %v", names(pod.Spec.InitContainers))
	}
	return pod.Spec.InitContainers[0]
}

func names(containers []corev1.Container) []string {
	var names []string
	for _, c := range containers {
		names = append(names, c.Name)
	}
	return names
}

func env(c corev1.Container, name string) (values []string) {
	for _, e := range c.Env {
		if e.Name == name {
			values = append(values, e.Value)
		}
	}
	return values
}
