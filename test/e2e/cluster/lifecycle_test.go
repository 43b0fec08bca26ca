//go:build e2e

package cluster

import (
	"fmt"
	"strings"
	"testing"

	"github.com/podmq/podmq/test/e2e/internal/helm"
)

// deployment is one that asks, with one container that idles.
func deployment(annotations, spec string) string {
	return `
apiVersion: apps/v1
kind: Deployment
metadata: {name: app}
spec:
  selector: {matchLabels: {app: app}}
  template:
    metadata:
      labels: {app: app, podmq.io/inject: "true"}
      annotations: {` + annotations + `}
    spec:
      terminationGracePeriodSeconds: 5
` + indent(spec, 6) + `
      containers:
      - name: app
        image: ` + clientImage() + `
        command: [sh, -c]
        args:
        - |
` + indent(idle, 10)
}

// A refusal of pods must reach the author of their Deployment: at once as a
// warning, and later as its condition.
func refusals(t *testing.T) {
	for name, row := range map[string]struct{ annotations, spec, warning, condition string }{
		"hostNetwork": {"", "hostNetwork: true", "podmq: pods with hostNetwork are not injected",
			"podmq: this pod asked for the broker by the label podmq.io/inject and has none: it uses hostNetwork"},
		"bad annotation": {`podmq.io/topics: "orders?partition=2"`, "", `podmq: annotation podmq.io/topics cannot be read at "orders?partition=2"`,
			`podmq: annotation podmq.io/topics cannot be read at "orders?partition=2"`},
		"unknown annotation": {`podmq.io/topcis: orders`, "", "podmq: there is no annotation podmq.io/topcis", "podmq: there is no annotation podmq.io/topcis"},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNamespace(t, "")
			if warnings := n.apply(deployment(row.annotations, row.spec)); !strings.Contains(warnings, row.warning) {
				t.Errorf("kubectl apply said %q, want %q", warnings, row.warning)
			}
			n.eventually("the refusal as condition of the Deployment", func() (string, bool) {
				message := n.must("get", "deployment", "app", "-o", `jsonpath={.status.conditions[?(@.type=="ReplicaFailure")].message}`)
				return message, strings.Contains(message, row.condition)
			})
		})
	}
}

// Kubernetes 1.35 did not restart app containers after this, where a sidecar had
// a startup probe.
func kubeletRestart(t *testing.T) {
	n := newNamespace(t, "")
	n.apply(deployment(`podmq.io/topics: "orders?groups=billing"`, ""))
	n.must("rollout", "status", "deployment/app", "--timeout="+patience.String())
	pod := n.podOf("app=app").Name
	before, ok := n.see(pod)
	if !ok {
		t.Fatal("the app does not reach the broker to begin with")
	}
	if err := node.Command("systemctl", "restart", "kubelet").Run(); err != nil {
		t.Fatal(err)
	}
	n.eventually("the kubelet to serve again", func() (string, bool) {
		_, _, err := kubectl(t, "", "--namespace", n.name, "exec", pod, "-c", "app", "--", "kill", "1")
		return fmt.Sprint(err), err == nil
	})
	n.eventually("the app to be restarted", func() (string, bool) {
		s := status(t, n.pod(pod), "app")
		return s.String(), s.RestartCount >= 1 && s.State.Running != nil
	})
	n.waitReady(pod)
	if after, ok := n.see(pod); !ok || after != before {
		t.Errorf("the app saw the broker %v and sees %v (%v), want the same", before, after, ok)
	}
	if s := status(t, n.pod(pod), "podmq"); s.RestartCount != 0 {
		t.Errorf("the broker was restarted: %+v", s)
	}
}

func upgrade(t *testing.T) {
	n := newNamespace(t, "")
	n.apply(deployment("", ""))
	n.must("rollout", "status", "deployment/app", "--timeout="+patience.String())
	before := n.podOf("app=app")
	if table := n.exec(before.Name, "podmq", "/sidecar", "topics"); strings.Contains(table, "from-the-chart") {
		t.Fatalf("the topic is there before the upgrade:\n%s", table)
	}
	mustHelm(t, "upgrade", "podmq", helm.Charts(t)+"/podmq", "--namespace", release, "--reuse-values", "--wait",
		"--set-json", `sidecar.topics=[{"name":"from-the-chart","partitions":3,"groups":["g"]}]`)
	waitInForce(t)
	if same := n.pod(before.Name); same.Annotations["podmq.io/injected"] != before.Annotations["podmq.io/injected"] {
		t.Errorf("a pod that was there before says that it has the new settings")
	}
	n.must("rollout", "restart", "deployment/app")
	n.must("rollout", "status", "deployment/app", "--timeout="+patience.String())
	after := n.podOf("app=app")
	if after.Annotations["podmq.io/injected"] == before.Annotations["podmq.io/injected"] {
		t.Errorf("podmq.io/injected is %q as before the upgrade", after.Annotations["podmq.io/injected"])
	}
	if table := n.exec(after.Name, "podmq", "/sidecar", "topics"); strings.Count(table, "from-the-chart") != 3 {
		t.Errorf("the new settings are not in force:\n%s", table)
	}
}

func uninstall(t *testing.T) {
	n := newNamespace(t, "")
	mustHelm(t, "uninstall", "podmq", "--namespace", release, "--wait")
	kinds := "mutatingadmissionpolicies,mutatingadmissionpolicybindings,validatingadmissionpolicies,validatingadmissionpolicybindings"
	if left := n.must("get", kinds, "-o", "name"); left != "" {
		t.Errorf("policies are left behind:\n%s", left)
	}
	everything := strings.Join(strings.Fields(n.must("api-resources", "--namespaced", "--verbs=list", "-o", "name")), ",")
	left := n.must("get", everything, "--namespace", release, "--ignore-not-found", "-o", "name")
	for _, object := range strings.Fields(left) {
		// What Kubernetes itself makes in every namespace, and the events of the test.
		if object != "configmap/kube-root-ca.crt" && object != "serviceaccount/default" && !strings.HasPrefix(object, "event") {
			t.Errorf("%s is left behind in namespace %s", object, release)
		}
	}
	// A pod that asks is neither refused nor given a broker.
	n.eventually("pods to be left alone", func() (string, bool) {
		out, _, err := kubectl(t, "", "run", "try", "--namespace", n.name, "--image=any", "--labels=podmq.io/inject=true", "--dry-run=server", "-o", "name")
		if err != nil {
			return err.Error(), false
		}
		inits := n.must("run", "try", "--image=any", "--labels=podmq.io/inject=true", "--dry-run=server", "-o", "jsonpath={.spec.initContainers}")
		return out + inits, inits == ""
	})
}
