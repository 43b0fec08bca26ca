//go:build e2e

package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/cluster/nodes"
	"sigs.k8s.io/kind/pkg/cluster/nodeutils"
	"sigs.k8s.io/kind/pkg/cmd"

	"github.com/podmq/podmq/test/e2e/internal/helm"
)

// The cluster, made before the first test and deleted after the last.
var (
	kubeconfig string
	node       nodes.Node
)

// brokerImage is what the chart names; hack/image.sh makes it.
const brokerImage = "podmq:0.1.0"

// clientImage has sh and curl.
func clientImage() string {
	if image := os.Getenv("PODMQ_E2E_CLIENT"); image != "" {
		return image
	}
	return "podmq-base:1"
}

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		log.Print(err)
		code = max(code, 1)
	}
	helm.Clean()
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	if out, err := exec.Command("docker", "version").CombinedOutput(); err != nil {
		if os.Getenv("CI") == "true" {
			return 1, fmt.Errorf("cannot test in a cluster without Docker: %w: %s", err, out)
		}
		log.Print("skipped: there is no Docker")
		return 0, nil
	}
	dir, err := os.MkdirTemp("", "podmq-e2e-")
	if err != nil {
		return 1, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	kubeconfig = filepath.Join(dir, "kubeconfig")
	name := fmt.Sprintf("podmq-%d", os.Getpid())
	provider := cluster.NewProvider(cluster.ProviderWithLogger(cmd.NewLogger()))
	defer func() {
		if code != 0 || err != nil {
			err = errors.Join(err, exportLogs(provider, name))
		}
		if os.Getenv("PODMQ_E2E_KEEP") != "" {
			log.Printf("kept cluster %s: kind export kubeconfig --name %s", name, name)
			return
		}
		err = errors.Join(err, provider.Delete(name, kubeconfig))
	}()
	go deleteWhenInterrupted(provider, name)
	if err := create(provider, name); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// deleteWhenInterrupted leaves no cluster behind when the tests are ended from
// outside. It ends with the process.
func deleteWhenInterrupted(provider *cluster.Provider, name string) {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, os.Interrupt, syscall.SIGTERM)
	log.Printf("ended by %v", <-ended)
	_ = provider.Delete(name, kubeconfig)
	os.Exit(1)
}

func create(provider *cluster.Provider, name string) error {
	started := time.Now()
	err := provider.Create(name,
		cluster.CreateWithNodeImage(os.Getenv("PODMQ_E2E_NODE_IMAGE")),
		cluster.CreateWithKubeconfigPath(kubeconfig),
		cluster.CreateWithWaitForReady(3*time.Minute),
		cluster.CreateWithRetain(true), // so that its logs can be exported
		cluster.CreateWithDisplayUsage(false),
		cluster.CreateWithDisplaySalutation(false))
	if err != nil {
		return fmt.Errorf("cannot create a cluster: %w", err)
	}
	all, err := provider.ListNodes(name)
	if err != nil || len(all) != 1 {
		return fmt.Errorf("cannot find the cluster's node: %v, %v", all, err)
	}
	node = all[0]
	log.Printf("cluster %s: ready after %v", name, time.Since(started).Round(time.Second))

	started = time.Now()
	if err := load(brokerImage, clientImage(), "orders-web:1", "orders-worker:1", "orders-audit:1"); err != nil {
		return err
	}
	log.Printf("images: loaded in %v", time.Since(started).Round(time.Second))
	return nil
}

// load loads images of the local Docker into the node, in one archive, because
// most of their layers are the same.
func load(images ...string) error {
	var archive, stderr bytes.Buffer
	save := exec.Command("docker", append([]string{"save"}, images...)...)
	save.Stdout, save.Stderr = &archive, &stderr
	if err := save.Run(); err != nil {
		return fmt.Errorf("cannot save %v (make e2e makes them): %w: %s", images, err, &stderr)
	}
	if err := nodeutils.LoadImageArchive(node, &archive); err != nil {
		return fmt.Errorf("cannot load %v: %w", images, err)
	}
	return nil
}

func exportLogs(provider *cluster.Provider, name string) error {
	dir := os.Getenv("PODMQ_E2E_LOGS")
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "podmq-e2e-logs-"); err != nil {
			return err
		}
	}
	log.Printf("exporting the cluster's logs to %s", dir)
	return provider.CollectLogs(name, dir)
}
