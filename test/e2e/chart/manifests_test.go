package chart

import (
	"path/filepath"
	"regexp"
	"testing"

	"github.com/podmq/podmq/test/e2e/internal/helm"
)

// The manifests for people without Helm are what the charts render.
func TestPlainManifestsAreWhatTheChartsRender(t *testing.T) {
	policies := helm.MustTemplate(t, "podmq", "--skip-tests")
	golden(t, filepath.Join(helm.Root(), "deploy/manifests/podmq.yaml"), `# Injection by label, for people without Helm: kubectl apply -f podmq.yaml
# Needs Kubernetes 1.36 or later. Made from charts/podmq, whose README says what
# labels and annotations there are; the image is named in the variable "broker".
`+plain(policies))

	orders, err := helm.Run(t, "template", "orders", helm.UserChart(t, "deploy/examples/orders/chart"), "--kube-version", helm.KubeVersion)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, filepath.Join(helm.Root(), "deploy/manifests/sidecar.yaml"), `# The example app with the broker written out, for people without Helm and for
# clusters below 1.36: what to put into a pod of your own. The broker is the init
# container podmq; beside it, the volume podmq, and in each container the
# variable PODMQ_SOCKET and the mount. Made from deploy/examples/orders/chart.
`+plain(orders))
}

var helmOnly = regexp.MustCompile(`(?m)^(# Source: .*| +app\.kubernetes\.io/(managed-by|instance): .*| +helm\.sh/chart: .*)\n`)

// plain takes out what speaks of Helm.
func plain(rendered string) string {
	return helmOnly.ReplaceAllString(rendered, "")
}
