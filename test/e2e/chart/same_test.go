package chart

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/podmq/podmq/test/e2e/internal/helm"
)

// The policy's literal is what the library's template renders. Package admission
// holds the pods equal that a real API server makes of both.
func TestThePolicysContainerIsTheLibrarys(t *testing.T) {
	included := helm.UserChart(t, app)
	for name, values := range map[string]string{"default": "\n  gomaxprocs: 2\n", "everything": nested(everything)} {
		var pod struct {
			Spec struct{ InitContainers, Volumes []any }
		}
		parse(t, helm.MustTemplate(t, included, helm.Values(t, "podmq-sidecar:"+values)...), &pod)
		policy := variables(t, helm.MustTemplate(t, "podmq", helm.Values(t, "sidecar:"+values)...))
		for what, want := range map[string]any{"broker": pod.Spec.InitContainers[0], "volume": pod.Spec.Volumes[0]} {
			if got := withoutDyn(t, policy[what]); !reflect.DeepEqual(got, want) {
				t.Errorf("%s: the policy's %s is\n%v\nthe library's\n%v", name, what, got, want)
			}
		}
	}
}

// variables are the variables of the mutating policy, by name.
func variables(t *testing.T, rendered string) map[string]string {
	t.Helper()
	for _, document := range helm.Documents(rendered) {
		var policy struct {
			Kind string
			Spec struct {
				Variables []struct{ Name, Expression string }
			}
		}
		parse(t, document, &policy)
		if policy.Kind != "MutatingAdmissionPolicy" {
			continue
		}
		all := map[string]string{}
		for _, v := range policy.Spec.Variables {
			all[v.Name] = v.Expression
		}
		return all
	}
	t.Fatal("there is no MutatingAdmissionPolicy")
	return nil
}

// withoutDyn reads a CEL literal whose values are wrapped in dyn(): JSON but for
// that.
func withoutDyn(t *testing.T, literal string) (value any) {
	t.Helper()
	token := regexp.MustCompile(`"(?:[^"\\]|\\.)*"|dyn\(|\)`)
	plain := token.ReplaceAllStringFunc(literal, func(s string) string {
		if strings.HasPrefix(s, `"`) {
			return s
		}
		return ""
	})
	if err := json.Unmarshal([]byte(plain), &value); err != nil {
		t.Fatalf("cannot read %s: %v", plain, err)
	}
	return value
}

func parse(t *testing.T, text string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("cannot read %v: %s", err, text)
	}
}

func TestChartsImageAndPolicyHaveOneVersion(t *testing.T) {
	type chart struct{ Version, AppVersion string }
	var library, main chart
	for name, into := range map[string]*chart{"podmq-sidecar": &library, "podmq": &main} {
		text, err := os.ReadFile(filepath.Join(helm.Root(), "charts", name, "Chart.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		parse(t, string(text), into)
	}
	if library != main || main.Version != main.AppVersion {
		t.Errorf("podmq-sidecar is %+v, podmq %+v; want one version", library, main)
	}
	rendered := helm.MustTemplate(t, "podmq")
	for _, want := range []string{`"image": dyn("podmq:` + main.AppVersion + `")`, `value: "` + main.Version + "-"} {
		if !strings.Contains(rendered, want) {
			t.Errorf("there is no %s in the policy", want)
		}
	}
}
