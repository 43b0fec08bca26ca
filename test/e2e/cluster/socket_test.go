//go:build e2e

package cluster

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// roundTrip publishes, polls and acknowledges, and looks at what is left.
const roundTrip = `
api -f -d 'o-1' "http://podmq/v1/topics/orders/messages?key=a"
batch=$(api -f -X POST "http://podmq/v1/topics/orders/groups/billing/poll?wait=10s")
echo "$batch"
receipt=$(echo "$batch" | sed 's/.*"receipt":"\([^"]*\)".*/\1/')
api -f -X POST "http://podmq/v1/topics/orders/groups/billing/ack?receipt=$receipt"
echo "lag: $(api -f "http://podmq/v1/topics/orders/groups/billing" | sed 's/.*"lag":\([0-9]*\).*/\1/')"
`

func checkRoundTrip(t *testing.T, logs string) {
	t.Helper()
	for _, want := range []string{`"payload":"o-1"`, `"committed":1`, "lag: 0"} {
		if !strings.Contains(logs, want) {
			t.Errorf("the app did not see %s:\n%s", want, logs)
		}
	}
}

func restricted(t *testing.T) {
	n := newNamespace(t, `podmq.io/inject: "true", pod-security.kubernetes.io/enforce: restricted`)
	n.apply(client(`annotations: {podmq.io/topics: "orders?groups=billing"}`, `
automountServiceAccountToken: false
securityContext: {runAsUser: 4321, runAsGroup: 4321, runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
`, roundTrip+`
for harm in "rm $PODMQ_SOCKET" "mv $PODMQ_SOCKET /run/podmq/gone" "touch /run/podmq/mine"; do
  if $harm 2>&1; then echo "done: $harm"; else echo "failed: $harm"; fi
done
api -f http://podmq/v1/topics >/dev/null && echo "still there"
id -u; stat -c 'socket %a' "$PODMQ_SOCKET"
`))
	logs := n.waitDone("client")
	checkRoundTrip(t, logs)
	if got := strings.Count(logs, "Read-only file system"); got != 3 {
		t.Errorf("%d of 3 attempts failed because the directory is read-only:\n%s", got, logs)
	}
	for _, want := range []string{"failed: rm /run", "failed: mv /run", "failed: touch /run", "still there", "\n4321\n", "socket 666"} {
		if !strings.Contains(logs, want) {
			t.Errorf("the app did not see %q:\n%s", want, logs)
		}
	}
}

// Old images say runAsUser: 0 for the whole pod, which a broker that must not
// be root would inherit.
func rootPod(t *testing.T) {
	n := newNamespace(t, "")
	n.apply(client(asks, "securityContext: {runAsUser: 0}", roundTrip+"id -u\n"))
	logs := n.waitDone("client")
	checkRoundTrip(t, logs)
	if !strings.Contains(logs, "\n0\n") {
		t.Errorf("the app is not root:\n%s", logs)
	}
}

func initPublishes(t *testing.T) {
	n := newNamespace(t, "")
	n.apply(client(asks, `
initContainers:
- name: first
  image: `+clientImage()+`
  command: [curl, -sSf, --unix-socket, $(PODMQ_SOCKET), -d, from the init container, http://podmq/v1/topics/orders/messages]
`, `api -f -X POST "http://podmq/v1/topics/orders/groups/billing/poll?wait=0"`))
	if logs := n.waitDone("client"); !strings.Contains(logs, `"payload":"from the init container"`) {
		t.Errorf("the app did not get what the init container published:\n%s", logs)
	}
}

func jobCompletes(t *testing.T) {
	n := newNamespace(t, `podmq.io/inject: "true"`)
	_, spec, _ := strings.Cut(client("", "", roundTrip), "\nspec:\n")
	n.apply(`
apiVersion: batch/v1
kind: Job
metadata: {name: job}
spec:
  template:
    metadata:
      annotations: {podmq.io/topics: "orders?groups=billing"}
    spec:
` + indent(spec, 4))
	n.must("wait", "job/job", "--for=condition=Complete", "--timeout="+patience.String())
	pod := n.podOf("job-name=job")
	if pod.Status.Phase != corev1.PodSucceeded {
		t.Errorf("the job's pod is %s, want Succeeded", pod.Status.Phase)
	}
	if end := status(t, pod, "podmq").State.Terminated; end == nil || end.ExitCode != 0 {
		t.Errorf("the broker ended with %+v, want exit code 0", end)
	}
	checkRoundTrip(t, n.must("logs", pod.Name, "-c", "app"))
}
