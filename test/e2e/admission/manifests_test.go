package admission

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podmq/podmq/test/e2e/internal/helm"
)

// The API server judges what people apply by hand: unknown fields, CEL that does
// not compile, and anything else that it would refuse.
func TestPlainManifestsAreTakenByTheAPIServer(t *testing.T) {
	s := install(t, defaults)
	for file, namespace := range map[string]string{
		"deploy/manifests/podmq.yaml":        "",
		"deploy/manifests/sidecar.yaml":      plain,
		"deploy/examples/orders/orders.yaml": plain,
	} {
		text, err := os.ReadFile(filepath.Join(helm.Root(), file))
		if err != nil {
			t.Fatal(err)
		}
		documents := helm.Documents(string(text))
		if len(documents) < 2 {
			t.Errorf("%s has %d documents", file, len(documents))
		}
		for _, document := range documents {
			if namespace == "" { // those of the release are there already
				document = strings.ReplaceAll(document, "name: podmq-", "name: plain-")
			}
			if answer := s.Create(t, namespace, document, true); answer.Refused() || len(answer.Warnings) > 0 {
				t.Errorf("%s: answer %d %s, warnings %q:\n%s", file, answer.Status, answer.Message, answer.Warnings, document)
			}
		}
	}
}
