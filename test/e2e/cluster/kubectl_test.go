//go:build e2e

package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmq/podmq/test/e2e/internal/helm"
	"github.com/podmq/podmq/test/e2e/internal/need"
)

// patience is how long a test waits for what should take seconds. It only bounds
// a test that fails.
const patience = 3 * time.Minute

// kubectl runs kubectl and returns what it says on both streams.
func kubectl(t *testing.T, stdin string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, warnings bytes.Buffer
	command := exec.CommandContext(t.Context(), need.Program(t, "kubectl"), append([]string{"--kubeconfig", kubeconfig}, args...)...)
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(stdin), &out, &warnings
	if err := command.Run(); err != nil {
		return out.String(), warnings.String(), fmt.Errorf("cannot kubectl %s: %w: %s", strings.Join(args, " "), err, &warnings)
	}
	return out.String(), warnings.String(), nil
}

// A namespace is where one test lives.
type namespace struct {
	*testing.T
	name string
}

// newNamespace makes a namespace with labels, and waits until pods can be made
// in it. It is deleted with the test; a test that fails says first what is in it.
func newNamespace(t *testing.T, labels string) *namespace {
	t.Helper()
	letters := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			return r
		}
		return '-'
	}, strings.ToLower(t.Name()[strings.LastIndex(t.Name(), "/")+1:]))
	n := &namespace{t, strings.Trim(letters[:min(len(letters), 50)], "-")}
	n.apply(fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s, labels: {%s}}}", n.name, labels))
	t.Cleanup(n.end)
	n.eventually("the service account", func() (string, bool) {
		_, _, err := kubectl(t, "", "--namespace", n.name, "get", "serviceaccount", "default")
		return fmt.Sprint(err), err == nil
	})
	return n
}

func (n *namespace) end() {
	show := func(args ...string) string {
		out, err := exec.Command(need.Program(n, "kubectl"), append([]string{"--kubeconfig", kubeconfig, "--namespace", n.name}, args...)...).CombinedOutput()
		return fmt.Sprintf("%s\n%s%v", strings.Join(args, " "), out, err)
	}
	if n.Failed() {
		n.Log(show("get", "pods", "-o", "wide"), show("describe", "pods"), show("get", "events", "--sort-by=.lastTimestamp"))
		n.Log(show("logs", "--selector=!absent", "--all-containers", "--prefix", "--tail=50", "--ignore-errors"))
	}
	show("delete", "namespace", n.name, "--wait=false", "--ignore-not-found")
}

// must runs kubectl in the namespace.
func (n *namespace) must(args ...string) string {
	n.Helper()
	out, _, err := kubectl(n.T, "", append([]string{"--namespace", n.name}, args...)...)
	if err != nil {
		n.Fatal(err)
	}
	return out
}

// apply applies YAML and returns the warnings that came with it.
func (n *namespace) apply(yaml string) (warnings string) {
	n.Helper()
	_, warnings, err := kubectl(n.T, yaml, "--namespace", n.name, "apply", "-f", "-")
	if err != nil {
		n.Fatal(err)
	}
	return warnings
}

// exec runs a command in a container and returns its output.
func (n *namespace) exec(pod, container string, command ...string) string {
	n.Helper()
	return n.must(append([]string{"exec", pod, "-c", container, "--"}, command...)...)
}

// eventually waits until done; state is what is told when it never is.
func (n *namespace) eventually(what string, done func() (state string, ok bool)) {
	n.Helper()
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	timeout := time.After(patience)
	for {
		state, ok := done()
		if ok {
			return
		}
		select {
		case <-tick.C:
		case <-timeout:
			n.Fatalf("cannot wait longer for %s: %s", what, state)
		}
	}
}

func (n *namespace) pod(name string) *corev1.Pod {
	n.Helper()
	var pod corev1.Pod
	if err := json.Unmarshal([]byte(n.must("get", "pod", name, "-o", "json")), &pod); err != nil {
		n.Fatal(err)
	}
	return &pod
}

// podOf is the one pod with a label.
func (n *namespace) podOf(selector string) *corev1.Pod {
	n.Helper()
	var pods corev1.PodList
	if err := json.Unmarshal([]byte(n.must("get", "pods", "-l", selector, "-o", "json")), &pods); err != nil {
		n.Fatal(err)
	}
	var alive []corev1.Pod
	for _, p := range pods.Items {
		if p.DeletionTimestamp == nil {
			alive = append(alive, p)
		}
	}
	if len(alive) != 1 {
		n.Fatalf("%d pods have the label %s, want 1", len(alive), selector)
	}
	return &alive[0]
}

func (n *namespace) waitReady(pod string) {
	n.Helper()
	n.must("wait", "pod", pod, "--for=condition=Ready", "--timeout="+patience.String())
}

// waitDone waits for a pod whose containers end, which must succeed, and returns
// its logs.
func (n *namespace) waitDone(pod string) string {
	n.Helper()
	n.eventually("the end of pod "+pod, func() (string, bool) {
		phase := n.pod(pod).Status.Phase
		return string(phase), phase == corev1.PodSucceeded || phase == corev1.PodFailed
	})
	logs := n.must("logs", pod, "-c", "app")
	if phase := n.pod(pod).Status.Phase; phase != corev1.PodSucceeded {
		n.Fatalf("pod %s ended as %s:\n%s", pod, phase, logs)
	}
	return logs
}

// status is the status of one container, wherever it stands.
func status(t *testing.T, pod *corev1.Pod, container string) corev1.ContainerStatus {
	t.Helper()
	for _, s := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		if s.Name == container {
			return s
		}
	}
	t.Fatalf("pod %s has no status of container %s: %+v", pod.Name, container, pod.Status)
	return corev1.ContainerStatus{}
}

func mustHelm(t *testing.T, args ...string) string {
	t.Helper()
	out, err := helm.Run(t, append(args, "--kubeconfig", kubeconfig)...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
