//go:build e2e

package cluster

import (
	"fmt"
	"strings"
	"testing"

	"github.com/podmq/podmq/test/e2e/internal/helm"
)

// TestPodMQ is the life of a release: it is installed, used in many ways at once,
// upgraded, and uninstalled.
func TestPodMQ(t *testing.T) {
	install(t)
	t.Run("installed", func(t *testing.T) {
		for _, test := range []struct {
			promise string
			run     func(*testing.T)
		}{
			{"HelmTestPasses", helmTestPasses},
			{"PoliciesAreSound", policiesAreSound},
			{"AnyUserOfARestrictedPodReachesTheSocketAndNobodyHarmsIt", restricted},
			{"TheBrokerRunsInPodsOfAnyUser", podUsers},
			{"AnInitContainerPublishesForTheApp", initPublishes},
			{"AJobCompletes", jobCompletes},
			{"AKilledBrokerComesBack", killed},
			{"ABrokerOutOfMemoryComesBack", outOfMemory},
			{"LastAcksOfADeletedPodAreServed", deleted},
			{"OrdersInThreeLanguagesByLabel", ordersByLabel},
			{"OrdersInThreeLanguagesByInclude", ordersByInclude},
			{"PrometheusReadsEveryMetricOfTheDashboard", metrics},
			{"RefusalsAreSeenWhereTheAuthorLooks", refusals},
		} {
			t.Run(test.promise, func(t *testing.T) {
				t.Parallel()
				test.run(t)
			})
		}
	})
	t.Run("AppsComeBackAfterARestartOfTheKubelet", kubeletRestart)
	t.Run("AnUpgradeReachesPodsThatAreMadeAnew", upgrade)
	t.Run("NothingIsLeftBehind", uninstall)
}

const release = "podmq-system" // the release's namespace

func install(t *testing.T) {
	t.Helper()
	mustHelm(t, "install", "podmq", helm.Charts(t)+"/podmq", "--namespace", release, "--create-namespace", "--wait")
	waitInForce(t)
}

// waitInForce waits until a pod that asks would get the broker of the settings
// that helm speaks of: what helm has written takes the API server a second.
func waitInForce(t *testing.T) {
	t.Helper()
	notes := mustHelm(t, "get", "notes", "podmq", "--namespace", release)
	_, digest, _ := strings.Cut(notes, "podmq.io/injected: ")
	digest, _, _ = strings.Cut(digest, "\n")
	n := &namespace{t, "default"}
	n.eventually("the policies to be in force", func() (string, bool) {
		out, _, err := kubectl(t, "", "run", "try", "--namespace", n.name, "--image=any", "--labels=podmq.io/inject=true", "--dry-run=server",
			"-o", `jsonpath={.metadata.annotations.podmq\.io/injected}`)
		return fmt.Sprintf("%q, want %q (%v)", out, digest, err), err == nil && out == digest
	})
}

// client is a pod named client with one container, app, that runs a shell script
// once and says what it found.
func client(metadata, spec, script string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata:\n  name: client\n" + indent(metadata, 2) + `spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 30
` + indent(spec, 2) + `  containers:
  - name: app
    image: ` + clientImage() + `
    securityContext:
      allowPrivilegeEscalation: false
      capabilities: {drop: [ALL]}
      readOnlyRootFilesystem: true
    command: [sh, -ec]
    args:
    - |
      api() { curl -sS --max-time 90 --unix-socket "$PODMQ_SOCKET" "$@"; }
` + indent(script, 6)
}

const asks = `
labels: {podmq.io/inject: "true"}
annotations: {podmq.io/topics: "orders?groups=billing"}
`

func indent(yaml string, by int) string {
	pad := strings.Repeat(" ", by)
	if yaml = strings.Trim(yaml, "\n"); yaml == "" {
		return ""
	}
	return pad + strings.ReplaceAll(yaml, "\n", "\n"+pad) + "\n"
}

func helmTestPasses(t *testing.T) {
	out := mustHelm(t, "test", "podmq", "--namespace", release, "--timeout", patience.String())
	if !strings.Contains(out, "Phase:          Succeeded") {
		t.Errorf("helm test says:\n%s", out)
	}
}

// The API server checks the types of validating policies after they were made,
// and writes what it found into their status.
func policiesAreSound(t *testing.T) {
	n := &namespace{t, "default"}
	n.eventually("the check of types", func() (string, bool) {
		out := n.must("get", "validatingadmissionpolicies", "-l", "app.kubernetes.io/name=podmq",
			"-o", `jsonpath={range .items[*]}{.metadata.name} {.metadata.generation}/{.status.observedGeneration}{"\n"}{end}`)
		for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
			if !strings.HasSuffix(line, " 1/1") {
				return out, false
			}
		}
		return out, strings.Count(out, "\n") == 3
	})
	if warnings := n.must("get", "validatingadmissionpolicies", "-l", "app.kubernetes.io/name=podmq",
		"-o", `jsonpath={.items[*].status.typeChecking.expressionWarnings}`); warnings != "" {
		t.Errorf("expressions with warnings: %s", warnings)
	}
}
