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

// who prints as whom app and broker run.
const who = `
echo "app: $(id -u), broker: $(stat -c %u "$PODMQ_SOCKET"), socket: $(stat -c %a "$PODMQ_SOCKET")"
`

func restricted(t *testing.T) {
	n := newNamespace(t, `podmq.io/inject: "true", pod-security.kubernetes.io/enforce: restricted`)
	pod := client(`annotations: {podmq.io/topics: "orders?groups=billing"}`, `
automountServiceAccountToken: false
securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
`, roundTrip+who+`
for harm in "rm -f $PODMQ_SOCKET" "mv $PODMQ_SOCKET /run/podmq/gone" "touch /run/podmq/mine"; do
  if $harm 2>&1; then echo "done: $harm"; else echo "failed: $harm"; fi
done
api -f http://podmq/v1/topics >/dev/null && echo "still there"
`)
	n.apply(strings.Replace(pod, "readOnlyRootFilesystem: true", "readOnlyRootFilesystem: true\n      runAsUser: 4321", 1))
	logs := n.waitDone("client")
	checkRoundTrip(t, logs)
	if got := strings.Count(logs, "Read-only file system"); got != 3 {
		t.Errorf("%d of 3 attempts failed because the directory is read-only:\n%s", got, logs)
	}
	for _, want := range []string{"app: 4321, broker: 65532, socket: 666", "failed: rm", "failed: mv", "failed: touch", "still there"} {
		if !strings.Contains(logs, want) {
			t.Errorf("the app did not see %q:\n%s", want, logs)
		}
	}
}

// Old images say runAsUser: 0 for the whole pod, which a broker that must not be
// root would inherit; some platforms give a pod any uid there is.
func podUsers(t *testing.T) {
	for name, row := range map[string]struct{ user, want string }{
		"root":       {"{runAsUser: 0}", "app: 0, broker: 65532, socket: 666"},
		"any number": {"{runAsUser: 1000650000, runAsGroup: 0, fsGroup: 1000650000, runAsNonRoot: true}", "app: 1000650000, broker: 1000650000, socket: 666"},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNamespace(t, "")
			n.apply(client(asks, "securityContext: "+row.user, roundTrip+who))
			logs := n.waitDone("client")
			checkRoundTrip(t, logs)
			if !strings.Contains(logs, row.want) {
				t.Errorf("the app did not see %q:\n%s", row.want, logs)
			}
		})
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
