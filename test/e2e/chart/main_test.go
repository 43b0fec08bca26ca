package chart

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/podmq/podmq/test/e2e/internal/helm"
)

var update = flag.Bool("update", false, "write the golden files and generated documents anew")

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	helm.Clean()
	os.Exit(code)
}

// golden compares got with a file, or writes it.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is not what is made now (make chart-update writes it anew); the first difference:\n%s", file, firstDifference(string(want), got))
	}
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return "- " + w[i] + "\n+ " + g[i]
		}
	}
	return "one is the beginning of the other"
}

// app is a chart whose pod spec is a value.
const app = "test/e2e/testdata/app"
