package apiserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// Do sends a request and returns the status, the body and the warnings that came
// with it.
func (s *Server) Do(ctx context.Context, method, path string, body []byte) (int, []byte, []string, error) {
	request, err := http.NewRequestWithContext(ctx, method, s.url+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, nil, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	response, err := s.client.Do(request)
	if err != nil {
		return 0, nil, nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, text, warnings(response.Header), err
}

// warningText is the quoted text of a Warning header: 299 - "text".
var warningText = regexp.MustCompile(`^299 \S+ "((?:[^"\\]|\\.)*)"`)

func warnings(header http.Header) []string {
	var texts []string
	for _, value := range header.Values("Warning") {
		if m := warningText.FindStringSubmatch(value); m != nil {
			texts = append(texts, strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(m[1]))
		}
	}
	return texts
}

// An Answer is what became of an object.
type Answer struct {
	Status   int
	Message  string // why it was refused
	Warnings []string
	body     []byte
}

// Refused reports whether the object was refused.
func (a Answer) Refused() bool { return a.Status >= 300 }

// Create creates an object, given as YAML, in a namespace, "" for objects that
// have none; dry only asks what would become of it.
func (s *Server) Create(t testing.TB, namespace, object string, dry bool) Answer {
	t.Helper()
	var kind metav1.TypeMeta
	if err := yaml.Unmarshal([]byte(object), &kind); err != nil {
		t.Fatalf("cannot read %v: %s", err, object)
	}
	body, err := yaml.YAMLToJSON([]byte(object))
	if err != nil {
		t.Fatal(err)
	}
	path := pathOf(kind, namespace) + "?fieldValidation=Strict"
	if dry {
		path += "&dryRun=All"
	}
	status, text, warned, err := s.Do(t.Context(), http.MethodPost, path, body)
	if err != nil {
		t.Fatal(err)
	}
	answer := Answer{Status: status, Warnings: warned, body: text}
	if answer.Refused() {
		var why metav1.Status
		if err := json.Unmarshal(text, &why); err != nil {
			t.Fatalf("cannot read answer %d: %s", status, text)
		}
		answer.Message = why.Message
	}
	return answer
}

func pathOf(kind metav1.TypeMeta, namespace string) string {
	path := "/apis/" + kind.APIVersion
	if !strings.Contains(kind.APIVersion, "/") {
		path = "/api/" + kind.APIVersion
	}
	if namespace != "" {
		path += "/namespaces/" + namespace
	}
	plural := strings.ToLower(kind.Kind) + "s"
	if strings.HasSuffix(plural, "ys") {
		plural = strings.TrimSuffix(plural, "ys") + "ies"
	}
	return path + "/" + plural
}

// Pod asks what would become of a pod, which must be admitted.
func (s *Server) Pod(t testing.TB, namespace, object string) *corev1.Pod {
	t.Helper()
	answer := s.Create(t, namespace, object, true)
	if answer.Refused() {
		t.Fatalf("the pod was refused: %s", answer.Message)
	}
	var pod corev1.Pod
	if err := json.Unmarshal(answer.body, &pod); err != nil {
		t.Fatal(err)
	}
	return &pod
}

// Namespace makes a namespace with labels, and the service account without which
// no pod is admitted; a controller would make it.
func (s *Server) Namespace(t testing.TB, name string, labels map[string]string) {
	t.Helper()
	text, _ := json.Marshal(labels)
	for _, object := range []struct{ namespace, yaml string }{
		{"", fmt.Sprintf(`{apiVersion: v1, kind: Namespace, metadata: {name: %s, labels: %s}}`, name, text)},
		{name, `{apiVersion: v1, kind: ServiceAccount, metadata: {name: default}}`},
	} {
		if answer := s.Create(t, object.namespace, object.yaml, false); answer.Refused() {
			t.Fatalf("cannot make namespace %s: %s", name, answer.Message)
		}
	}
}
