package admission

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podmq/podmq/test/e2e/internal/helm"
)

// buildProgram builds the broker.
func buildProgram(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "sidecar")
	build := exec.Command("go", "build", "-o", file, "./cmd/sidecar")
	build.Dir = helm.Root()
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cannot build the broker: %v: %s", err, out)
	}
	return file
}

// takes reports whether the program takes the settings. Where it does, it goes
// on to bind its socket, which cannot be done where a file is: another exit code.
func takes(t *testing.T, program, topics, groups string) bool {
	t.Helper()
	file := filepath.Join(t.TempDir(), "no-socket")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program, "serve")
	command.Env = []string{"PODMQ_SOCKET=" + file, "PODMQ_METRICS_ADDR=127.0.0.1:0", "PODMQ_TOPICS=" + topics, "PODMQ_GROUPS=" + groups}
	out, err := command.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 && exit.ExitCode() != 2 {
		t.Fatalf("the broker ended with %v: %s", err, out)
	}
	return exit.ExitCode() == 1
}

// judged are annotations, good and bad.
var judged = []struct{ topics, groups string }{
	{"orders", ""},
	{"orders;", ""},
	{" orders ; payments ", ""},
	{"orders\npayments\n", ""},
	{strings.Repeat("x", 200), ""},
	{strings.Repeat("x", 201), ""},
	{"a.b_c-1", ""},
	{".a", ""},
	{"a/b", ""},
	{"orders?", ""},
	{"orders?partitions=1", ""},
	{"orders?partitions=1024", ""},
	{"orders?partitions=1025", ""},
	{"orders?partitions=0", ""},
	{"orders?partitions=-1", ""},
	{"orders?partitions=", ""},
	{"orders?capacity=1", ""},
	{"orders?capacity=10000000", ""},
	{"orders?capacity=10000001", ""},
	{"orders?max-bytes=1MiB", ""},
	{"orders?max-bytes=1Mi", ""},
	{"orders?max-bytes=1M", ""},
	{"orders?max-bytes=64kB", ""},
	{"orders?max-bytes=64KB", ""},
	{"orders?max-bytes=100B", ""},
	{"orders?max-bytes=0", ""},
	{"orders?max-bytes=100", ""},
	{"orders?max-bytes=1.5MiB", ""},
	{"orders?ack-timeout=30s", ""},
	{"orders?ack-timeout=1h30m", ""},
	{"orders?ack-timeout=1.5s", ""},
	{"orders?ack-timeout=30", ""},
	{"orders?ack-timeout=30S", ""},
	{"orders?ack-timeout=1ms", ""},
	{"orders?ack-timeout=999us", ""},
	{"orders?ack-timeout=0s", ""},
	{"orders?ack-timeout=604800s", ""},
	{"orders?ack-timeout=168h1ms", ""},
	{"orders?max-bytes=64MiB", ""}, // the program has no memory limit here, so its budget is 64MiB, as with the chart's limit
	{"orders?max-bytes=65MiB", ""},
	{"orders?max-bytes=33MiB;payments?max-bytes=33Mi", ""},
	{"orders?groups=a", ""},
	{"orders?groups=a,b", ""},
	{"orders?groups=a, b", ""},
	{"orders?groups=a,a", ""},
	{"orders?groups=a,", ""},
	{"orders?groups=", ""},
	{"orders?partitions=2&capacity=3&ack-timeout=30s&max-bytes=1Mi&groups=a", ""},
	{"orders?partitions=2&partitions=3", ""},
	{"orders?size=big", ""},
	{"orders?partitions", ""},
	{"orders;orders", ""},
	{"orders", "orders/a"},
	{"orders", "orders/a;orders/b"},
	{"orders", "orders/a;orders/a"},
	{"orders", "a"},
	{"orders", "payments/a"},
	{"orders", "orders/a/b"},
	{"orders", "orders/"},
	{"orders", "orders/a?type=queue"},
	{"orders", "orders/a?type=ordered&start=earliest&strategy=round-robin&session-timeout=2m&max-lease=1h&expires=60s"},
	{"orders", "orders/a?type=stack"},
	{"orders", "orders/a?start=middle"},
	{"orders", "orders/a?strategy=random"},
	{"orders", "orders/a?expires=60"},
	{"orders", "orders/a?expires=0"},
	{"orders", "orders/a?session-timeout=0s"},
	{"orders", "orders/a?"},
	{"orders?groups=a", "orders/a?type=queue"},
	{"", ""},
	{"", "orders/a"},
}

// What the policy admits, the broker starts with; what the broker would not start
// with, the policy refuses.
func TestThePolicyJudgesAnnotationsAsTheProgramDoes(t *testing.T) {
	s := install(t, defaults)
	program := buildProgram(t)
	for _, row := range judged {
		annotations := fmt.Sprintf("annotations: {podmq.io/topics: %s, podmq.io/groups: %s}", quote(row.topics), quote(row.groups))
		answer := s.Create(t, asking, pod(annotations, app), true)
		if got, want := !answer.Refused(), takes(t, program, row.topics, row.groups); got != want {
			t.Errorf("topics %q, groups %q: the policy admits %v, the program starts %v (%s)", row.topics, row.groups, got, want, answer.Message)
		}
	}
}
