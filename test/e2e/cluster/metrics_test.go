//go:build e2e

package cluster

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/podmq/podmq/test/e2e/internal/grafana"
	"github.com/podmq/podmq/test/e2e/internal/helm"
	"github.com/podmq/podmq/test/e2e/internal/need"
)

// busy makes something of everything that is counted: messages that are done, that
// fail, that nobody gets, that find no room and that wait for it.
const busy = `
trap 'exit 0' TERM
topics=http://podmq/v1/topics
receipt() { sed -n 's/.*"receipt":"\([^"]*\)".*/\1/p'; }
while :; do
  api -o /dev/null -d x "$topics/idle/messages"
  for i in 1 2 3; do api -o /dev/null -d x "$topics/busy/messages"; done
  api -o /dev/null -d x "$topics/busy/messages?wait=5s" &
  api -o /dev/null -X POST "$topics/busy/groups/parked/poll?wait=1s" &
  r=$(api -X POST "$topics/busy/groups/a/poll?wait=5s" | receipt)
  api -o /dev/null -X POST "$topics/busy/groups/a/nack?receipt=$r"
  r=$(api -X POST "$topics/busy/groups/a/poll?wait=5s" | receipt)
  api -o /dev/null -X POST "$topics/busy/groups/a/ack?receipt=$r"
  r=$(api -X POST "$topics/busy/groups/parked/poll?wait=0" | receipt)
  [ -z "$r" ] || api -o /dev/null -X POST "$topics/busy/groups/parked/ack?receipt=$r"
  wait
done
`

func metrics(t *testing.T) {
	n := newNamespace(t, "")
	n.apply(client(`
labels: {podmq.io/inject: "true"}
annotations: {podmq.io/topics: "busy?capacity=2&groups=a,parked; idle"}
`, "", busy))
	n.waitReady("client")
	prometheus := startPrometheus(t, n.name, "client")
	for _, query := range grafana.Load(t, filepath.Join(helm.Root(), "charts/podmq/files/dashboard.json")).Queries() {
		if strings.Contains(query.Expr, "kube_pod_") {
			continue // of kube-state-metrics, which does not run here
		}
		expr := grafana.Expand(query.Expr)
		n.eventually(fmt.Sprintf("data for panel %q", query.Panel), func() (string, bool) {
			found, state := prometheus.query(t, expr)
			return expr + ": " + state, found
		})
	}
}

// A server is a Prometheus beside the cluster.
type server struct{ url string }

// query reports whether a query has a result.
func (s server) query(t *testing.T, expr string) (found bool, state string) {
	t.Helper()
	response, err := http.Get(s.url + "/api/v1/query?query=" + url.QueryEscape(expr))
	if err != nil {
		return false, err.Error()
	}
	defer response.Body.Close()
	var answer struct {
		Status, Error string
		Data          struct{ Result []json.RawMessage }
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return false, err.Error()
	}
	if answer.Status != "success" {
		t.Fatalf("%s: %s", expr, answer.Error)
	}
	return len(answer.Data.Result) > 0, fmt.Sprintf("%d results", len(answer.Data.Result))
}

// startPrometheus starts a Prometheus that reads one pod's metrics through the
// API server's proxy, with the labels that a PodMonitor would give them.
func startPrometheus(t *testing.T, namespace, pod string) server {
	t.Helper()
	program, dir := need.Program(t, "prometheus"), t.TempDir()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	config := filepath.Join(dir, "prometheus.yaml")
	if err := os.WriteFile(config, []byte(scrapeConfig(t, dir, namespace, pod)), 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, "prometheus.log"))
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill() // nothing of it is kept
		_ = command.Wait()
		_ = log.Close()
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("prometheus:\n%s", text)
		}
	})
	return server{"http://" + address}
}

func scrapeConfig(t *testing.T, dir, namespace, pod string) string {
	t.Helper()
	text, err := os.ReadFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Clusters []struct {
			Cluster struct {
				Server string `json:"server"`
				CA     string `json:"certificate-authority-data"`
			}
		}
		Users []struct {
			User struct {
				Certificate string `json:"client-certificate-data"`
				Key         string `json:"client-key-data"`
			}
		}
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{"ca": config.Clusters[0].Cluster.CA, "cert": config.Users[0].User.Certificate, "key": config.Users[0].User.Key} {
		plain, err := base64.StdEncoding.DecodeString(data)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), plain, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return fmt.Sprintf(`
scrape_configs:
- job_name: podmq
  scrape_interval: 1s
  scheme: https
  tls_config: {ca_file: %[1]s/ca, cert_file: %[1]s/cert, key_file: %[1]s/key}
  metrics_path: /api/v1/namespaces/%[2]s/pods/%[3]s:9789/proxy/metrics
  static_configs:
  - targets: [%[4]s]
    labels: {namespace: %[2]s, pod: %[3]s, container: podmq}
`, dir, namespace, pod, strings.TrimPrefix(config.Clusters[0].Cluster.Server, "https://"))
}
