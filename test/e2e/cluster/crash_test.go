//go:build e2e

package cluster

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/kind/pkg/exec"

	"github.com/podmq/podmq/test/e2e/internal/helm"
)

// A view is what an app sees of its broker.
type view struct{ epoch, inode string }

// see looks from inside the app container, through the directory that was
// mounted when it started.
func (n *namespace) see(pod string) (v view, ok bool) {
	out, _, err := kubectl(n.T, "", "--namespace", n.name, "exec", pod, "-c", "app", "--", "sh", "-c",
		`curl -sSf -D - -o /dev/null --unix-socket "$PODMQ_SOCKET" http://podmq/v1/topics/orders && stat -c 'inode: %i' "$PODMQ_SOCKET"`)
	for _, line := range strings.Split(out, "\n") {
		switch name, value, _ := strings.Cut(strings.TrimSpace(line), ": "); strings.ToLower(name) {
		case "podmq-epoch":
			v.epoch = value
		case "inode":
			v.inode = value
		}
	}
	return v, err == nil && v.epoch != "" && v.inode != ""
}

// comesBack has a broker die by kill, and checks that it is there again, another
// one behind another socket, while nothing happened to the app.
func (n *namespace) comesBack(pod, reason string, kill func()) {
	n.Helper()
	n.waitReady(pod)
	before, ok := n.see(pod)
	if !ok {
		n.Fatalf("the app does not reach the broker to begin with")
	}
	app := status(n.T, n.pod(pod), "app")
	kill()
	n.eventually("the restart of the broker", func() (string, bool) {
		s := status(n.T, n.pod(pod), "podmq")
		return s.String(), s.RestartCount == 1 && s.State.Running != nil
	})
	var after view
	n.eventually("the app to reach the new broker", func() (string, bool) {
		after, ok = n.see(pod)
		return "", ok
	})
	if before.epoch == after.epoch || before.inode == after.inode {
		n.Errorf("epoch and socket were %v and are %v, want others", before, after)
	}
	n.waitReady(pod)
	got := n.pod(pod)
	if s := status(n.T, got, "app"); s.RestartCount != 0 || s.ContainerID != app.ContainerID {
		n.Errorf("the app was restarted: %+v", s)
	}
	if end := status(n.T, got, "podmq").LastTerminationState.Terminated; end == nil || end.ExitCode != 137 || end.Reason != reason {
		n.Errorf("the broker ended with %+v, want exit code 137 for %s", end, reason)
	}
	// Declared topics and groups are there again, and the socket serves.
	n.exec(pod, "app", "sh", "-ec", `api() { curl -sS --unix-socket "$PODMQ_SOCKET" "$@"; }`+"\n"+roundTrip)
}

const idle = `
trap 'exit 0' TERM
while :; do sleep 0.2; done
`

func killed(t *testing.T) {
	n := newNamespace(t, "")
	n.apply(client(asks, "", idle))
	n.comesBack("client", "Error", func() {
		id := strings.TrimPrefix(status(t, n.pod("client"), "podmq").ContainerID, "containerd://")
		pid, err := exec.OutputLines(node.Command("crictl", "inspect", "--output", "go-template", "--template", "{{.info.pid}}", id))
		if err != nil || len(pid) != 1 {
			t.Fatalf("cannot find the process of container %s: %v %v", id, pid, err)
		}
		if err := node.Command("kill", "-9", pid[0]).Run(); err != nil {
			t.Fatal(err)
		}
	})
}

// The broker refuses before it is killed. So it is told that it may use far more
// than it may, and given more than that.
func outOfMemory(t *testing.T) {
	n := newNamespace(t, "")
	pod := client("", "", idle)
	_, spec, _ := strings.Cut(pod, "\nspec:\n")
	values := helm.Values(t, "pod:\n"+indent(spec, 2)+`
podmq-sidecar:
  resources: {requests: {memory: 32Mi}, limits: {memory: 32Mi}}
  settings: {maxBytes: 1GiB}
  topics: [{name: orders, capacity: 1000000, groups: [billing]}]
`)
	n.apply(helm.MustTemplate(t, helm.UserChart(t, "test/e2e/testdata/app"), values...))
	n.comesBack("app", "OOMKilled", func() {
		n.exec("app", "app", "sh", "-c", `
			i=0
			while [ $i -lt 200 ] && head -c 1000000 /dev/zero |
				curl -sSf -o /dev/null --unix-socket "$PODMQ_SOCKET" --data-binary @- http://podmq/v1/topics/orders/messages
			do i=$((i + 1)); done
			echo "stored $i MB"`)
	})
}

// The app is told to end first, and what it says to the broker then is heard.
func deleted(t *testing.T) {
	n := newNamespace(t, "")
	n.apply(client("finalizers: [podmq.io/e2e]\n"+asks, "", `
api -f -d o-1 http://podmq/v1/topics/orders/messages
receipt=$(api -f -X POST "http://podmq/v1/topics/orders/groups/billing/poll?wait=10s" | sed 's/.*"receipt":"\([^"]*\)".*/\1/')
last() {
  sleep 2
  api -f -X POST "http://podmq/v1/topics/orders/groups/billing/ack?receipt=$receipt" >/dev/termination-log 2>&1
  exit 0
}
trap last TERM
echo "in flight"
while :; do sleep 0.2; done
`))
	t.Cleanup(func() { // the finalizer keeps the pod's last status
		_, _, _ = kubectl(t, "", "--namespace", n.name, "patch", "pod", "client", "--type=json", `--patch=[{"op": "remove", "path": "/metadata/finalizers"}]`)
	})
	n.eventually("the message in flight", func() (string, bool) {
		out, _, _ := kubectl(t, "", "--namespace", n.name, "logs", "client", "-c", "app")
		return out, strings.Contains(out, "in flight")
	})
	n.must("delete", "pod", "client", "--wait=false")
	var pod *corev1.Pod
	n.eventually("the end of both containers", func() (string, bool) {
		pod = n.pod("client")
		broker, app := status(t, pod, "podmq"), status(t, pod, "app")
		return pod.Status.String(), broker.State.Terminated != nil && app.State.Terminated != nil
	})
	broker, app := status(t, pod, "podmq").State.Terminated, status(t, pod, "app").State.Terminated
	if broker.ExitCode != 0 || app.ExitCode != 0 {
		t.Errorf("exit codes: broker %d, app %d; want 0", broker.ExitCode, app.ExitCode)
	}
	if broker.FinishedAt.Before(&app.FinishedAt) {
		t.Errorf("the broker ended at %v, before the app at %v", broker.FinishedAt, app.FinishedAt)
	}
	grace := time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second
	if left := pod.DeletionTimestamp.Sub(broker.FinishedAt.Time); left < grace/2 {
		t.Errorf("the broker ended %v before the end of %v of grace, want half of it", left, grace)
	}
	// Logs may be gone with the containers by now; the termination message is not.
	if !strings.Contains(app.Message, `"committed":1`) {
		t.Errorf("the last ack was not served: %s", app.Message)
	}
}
