package chart

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/podmq/podmq/test/e2e/internal/helm"
)

// The table of values in each chart's README is made from values.yaml: from each
// value and the comment above it that begins with "--".
func TestReadmesShowTheValues(t *testing.T) {
	for _, chart := range []string{"podmq", "podmq-sidecar"} {
		t.Run(chart, func(t *testing.T) {
			dir := filepath.Join(helm.Root(), "charts", chart)
			values, err := os.ReadFile(filepath.Join(dir, "values.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			readme, err := os.ReadFile(filepath.Join(dir, "README.md"))
			if err != nil {
				t.Fatal(err)
			}
			const begin, end = "<!-- values -->\n", "<!-- /values -->\n"
			before, rest, found := strings.Cut(string(readme), begin)
			_, after, closed := strings.Cut(rest, end)
			if !found || !closed {
				t.Fatalf("README.md has no %s … %s", begin, end)
			}
			golden(t, filepath.Join(dir, "README.md"), before+begin+valuesTable(t, values)+end+after)
		})
	}
}

func valuesTable(t *testing.T, values []byte) string {
	t.Helper()
	var document yaml.Node
	if err := yaml.Unmarshal(values, &document); err != nil {
		t.Fatal(err)
	}
	rows := []string{"| value | default | meaning |", "|---|---|---|"}
	var walk func(path string, node *yaml.Node)
	walk = func(path string, node *yaml.Node) {
		for i := 0; i+1 < len(node.Content); i += 2 {
			key, value := node.Content[i], node.Content[i+1]
			name := strings.TrimPrefix(path+"."+key.Value, ".")
			meaning, documented := strings.CutPrefix(key.HeadComment, "# -- ")
			switch {
			case documented:
				rows = append(rows, fmt.Sprintf("| `%s` | `%s` | %s |", name, compact(t, value), strings.ReplaceAll(meaning, "|", `\|`)))
			case value.Kind == yaml.MappingNode && len(value.Content) > 0:
				walk(name, value)
			default:
				t.Errorf("value %s has no comment that begins with --", name)
			}
		}
	}
	walk("", document.Content[0])
	return strings.Join(rows, "\n") + "\n"
}

func compact(t *testing.T, node *yaml.Node) string {
	t.Helper()
	var value any
	if err := node.Decode(&value); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
