// Package helm runs helm on a private copy of the repository's charts, with
// their dependencies built, so that tests may run side by side and leave nothing
// in the source tree.
//
// It is safe for concurrent use. Whoever uses it in a test binary calls Clean
// when all tests are done.
package helm

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/podmq/podmq/test/e2e/internal/need"
)

// KubeVersion is what templates are rendered for; helm alone would take the
// version that its own client library was made for.
const KubeVersion = "1.37.0"

// Root is the root of the repository.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "../../../..")
}

var copied struct {
	once sync.Once
	dir  string
	err  error
}

// Charts is the copy of the repository's charts.
func Charts(t testing.TB) string {
	t.Helper()
	program := need.Program(t, "helm")
	copied.once.Do(func() { copied.dir, copied.err = copyCharts(program) })
	if copied.err != nil {
		t.Fatal(copied.err)
	}
	return copied.dir
}

func copyCharts(program string) (string, error) {
	dir, err := os.MkdirTemp("", "podmq-charts-")
	if err != nil {
		return "", err
	}
	for _, chart := range []string{"podmq-sidecar", "podmq"} {
		if err := os.CopyFS(filepath.Join(dir, chart), os.DirFS(filepath.Join(Root(), "charts", chart))); err != nil {
			return dir, err
		}
	}
	// One that a person has built may be older than the chart beside it.
	if err := os.RemoveAll(filepath.Join(dir, "podmq/charts")); err != nil {
		return dir, err
	}
	return dir, buildDependencies(program, filepath.Join(dir, "podmq"))
}

func buildDependencies(program, chart string) error {
	if out, err := exec.Command(program, "dependency", "build", chart).CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build the dependencies of %s: %w: %s", chart, err, out)
	}
	return nil
}

// Clean removes the copy.
func Clean() {
	if copied.dir != "" {
		_ = os.RemoveAll(copied.dir)
	}
}

// UserChart is a copy of a chart of the repository that includes the library,
// with its dependency built; from is its path.
func UserChart(t testing.TB, from string) string {
	t.Helper()
	dir := t.TempDir() // with the repository's own layout, as the dependency is a relative path
	for to, from := range map[string]string{
		from:                   filepath.Join(Root(), from),
		"charts/podmq-sidecar": filepath.Join(Charts(t), "podmq-sidecar"),
	} {
		if err := os.CopyFS(filepath.Join(dir, to), os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	chart := filepath.Join(dir, from)
	if err := os.RemoveAll(filepath.Join(chart, "charts")); err != nil {
		t.Fatal(err)
	}
	if err := buildDependencies(need.Program(t, "helm"), chart); err != nil {
		t.Fatal(err)
	}
	return chart
}

// Run runs helm and returns its output; the error says what helm said.
func Run(t testing.TB, args ...string) (string, error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	command := exec.Command(need.Program(t, "helm"), args...)
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return stdout.String(), fmt.Errorf("cannot helm %s: %w: %s", strings.Join(args, " "), err, stderr.String())
	}
	return stdout.String(), nil
}

// Template renders a chart as release podmq in namespace podmq-system.
func Template(t testing.TB, chart string, args ...string) (string, error) {
	t.Helper()
	if !filepath.IsAbs(chart) {
		chart = filepath.Join(Charts(t), chart)
	}
	return Run(t, append([]string{"template", "podmq", chart, "--namespace", "podmq-system", "--kube-version", KubeVersion}, args...)...)
}

// MustTemplate is Template of what must render.
func MustTemplate(t testing.TB, chart string, args ...string) string {
	t.Helper()
	out, err := Template(t, chart, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Values writes values to a file and returns the arguments that use it.
func Values(t testing.TB, yaml string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"--values", file}
}

// Documents splits rendered YAML into its documents.
func Documents(rendered string) []string {
	var documents []string
	for _, document := range strings.Split("\n"+rendered, "\n---") {
		if strings.Contains(document, "\nkind:") {
			documents = append(documents, document)
		}
	}
	return documents
}
