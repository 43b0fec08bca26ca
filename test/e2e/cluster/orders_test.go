//go:build e2e

package cluster

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/podmq/podmq/test/e2e/internal/helm"
)

const orderCount = 200

// order sends orders through the Service, and retries what is not taken, as a
// customer would.
var order = fmt.Sprintf(`
i=0
while [ $i -lt %d ]; do
  i=$((i + 1))
  until curl -sSf --max-time 10 -o /dev/null -d "{\"customer\":\"c$((i %% 7))\",\"item\":\"item-$i\"}" http://orders/orders; do sleep 0.5; done
done
echo "all sent"
`, orderCount)

func ordersByLabel(t *testing.T) {
	n := newNamespace(t, "")
	manifest, err := os.ReadFile(filepath.Join(helm.Root(), "deploy/examples/orders/orders.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if warnings := n.apply(string(manifest)); warnings != "" {
		t.Errorf("the example is warned about: %s", warnings)
	}
	n.checkOrders()
}

func ordersByInclude(t *testing.T) {
	n := newNamespace(t, `podmq.io/inject: "false"`)
	mustHelm(t, "install", "orders", helm.UserChart(t, "deploy/examples/orders/chart"), "--namespace", n.name)
	n.checkOrders()
}

// checkOrders has orders sent, and checks that worker and audit saw every one of
// them, and the same.
func (n *namespace) checkOrders() {
	n.Helper()
	n.must("rollout", "status", "deployment/orders", "--timeout="+patience.String())
	n.apply(client("", "", order))
	n.waitDone("client")
	pod := n.podOf("app=orders").Name
	var fulfilled, audited map[string]string
	n.eventually("worker and audit to have seen all", func() (string, bool) {
		fulfilled = seen(n.must("logs", pod, "-c", "worker"), "fulfilled")
		audited = seen(n.must("logs", pod, "-c", "audit"), "audited")
		return fmt.Sprintf("%d fulfilled, %d audited", len(fulfilled), len(audited)), len(fulfilled) >= orderCount && len(audited) >= orderCount
	})
	if !maps.Equal(fulfilled, audited) {
		n.Errorf("worker and audit saw different orders:\n%v\n%v", fulfilled, audited)
	}
	items := map[string]bool{}
	for _, order := range audited {
		items[strings.Fields(order)[1]] = true
	}
	if len(audited) != orderCount || len(items) != orderCount {
		n.Errorf("%d orders stored, %d different ones, want %d", len(audited), len(items), orderCount)
	}
	n.eventually("both groups to have acknowledged all", func() (string, bool) {
		table := n.exec(pod, "podmq", "/sidecar", "topics", "orders")
		return table, lags(table) == 0
	})
}

var line = regexp.MustCompile(`(?m)^(fulfilled|audited) (\d+:\d+) (.*)$`)

// seen maps what a container logged by the message's place.
func seen(logs, verb string) map[string]string {
	all := map[string]string{}
	for _, m := range line.FindAllStringSubmatch(logs, -1) {
		if m[1] == verb {
			all[m[2]] = m[3]
		}
	}
	return all
}

// lags adds up the column LAG of `sidecar topics`.
func lags(table string) (sum int) {
	rows := strings.Split(strings.TrimSpace(table), "\n")
	column := slices.Index(strings.Fields(rows[0]), "LAG")
	for _, row := range rows[1:] {
		var lag int
		if fields := strings.Fields(row); column >= 0 && column < len(fields) {
			_, _ = fmt.Sscan(fields[column], &lag)
		}
		sum += lag
	}
	if column < 0 {
		return -1
	}
	return sum
}
