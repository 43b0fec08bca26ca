// Package apiserver runs an etcd and a kube-apiserver as plain processes: all
// that admission needs, in seconds and without Docker. There is no kubelet, no
// scheduler and no controller: objects are stored and nothing comes of them.
//
// A Server may be used by several tests at once.
package apiserver

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/podmq/podmq/test/e2e/internal/need"
)

const token = "admission-tests" // of a user who may do all, on a server that ends with the test

// startTimeout is how long etcd and kube-apiserver may take; 3 s are usual.
const startTimeout = 2 * time.Minute

// Server is a running API server.
type Server struct {
	// Kubeconfig is the path of a kubeconfig for helm and kubectl.
	Kubeconfig string

	url    string
	client *http.Client
	dir    string
	stop   []func()
}

// Start starts a server; the caller stops it.
func Start(t testing.TB) *Server {
	t.Helper()
	etcd, apiserver := need.Program(t, "etcd"), need.Program(t, "kube-apiserver")
	dir, err := os.MkdirTemp("", "podmq-apiserver-")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{dir: dir, Kubeconfig: filepath.Join(dir, "kubeconfig")}
	if err := s.start(etcd, apiserver); err != nil {
		log, _ := os.ReadFile(filepath.Join(dir, "kube-apiserver.log"))
		s.Stop()
		t.Fatalf("cannot start an API server: %v\n%s", err, log[max(0, len(log)-4000):])
	}
	return s
}

// Stop ends both processes and removes their data.
func (s *Server) Stop() {
	for i := len(s.stop) - 1; i >= 0; i-- {
		s.stop[i]()
	}
	_ = os.RemoveAll(s.dir)
}

func (s *Server) start(etcd, apiserver string) error {
	clientPort, peerPort, port := freePort(), freePort(), freePort()
	etcdURL := "http://127.0.0.1:" + clientPort
	err := s.run(etcd,
		"--data-dir="+filepath.Join(s.dir, "etcd"), "--unsafe-no-fsync",
		"--listen-client-urls="+etcdURL, "--advertise-client-urls="+etcdURL,
		"--listen-peer-urls=http://127.0.0.1:"+peerPort, "--initial-advertise-peer-urls=http://127.0.0.1:"+peerPort,
		"--initial-cluster=default=http://127.0.0.1:"+peerPort)
	if err != nil {
		return err
	}
	if err := s.writeKeys(); err != nil {
		return err
	}
	err = s.run(apiserver,
		"--etcd-servers="+etcdURL, "--bind-address=127.0.0.1", "--secure-port="+port, "--cert-dir="+s.dir,
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+filepath.Join(s.dir, "accounts.pem"),
		"--service-account-signing-key-file="+filepath.Join(s.dir, "accounts.pem"),
		"--token-auth-file="+filepath.Join(s.dir, "tokens.csv"), "--authorization-mode=RBAC",
		"--service-cluster-ip-range=10.96.0.0/16", "--endpoint-reconciler-type=none")
	if err != nil {
		return err
	}
	s.url = "https://127.0.0.1:" + port
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	return s.waitReady(ctx)
}

// run starts a program that logs to a file of its own and ends with the test,
// even if the test is killed.
func (s *Server) run(program string, args ...string) error {
	log, err := os.Create(filepath.Join(s.dir, filepath.Base(program)+".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	command := exec.Command(program, args...)
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := command.Start(); err != nil {
		return err
	}
	s.stop = append(s.stop, func() {
		_ = command.Process.Kill() // nothing of it is kept
		_ = command.Wait()
	})
	return nil
}

func (s *Server) writeKeys() error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	return errors.Join(
		os.WriteFile(filepath.Join(s.dir, "accounts.pem"), pem.EncodeToMemory(block), 0o600),
		os.WriteFile(filepath.Join(s.dir, "tokens.csv"), []byte(token+",tester,tester,system:masters\n"), 0o600))
}

// waitReady waits for the certificate that the server makes for itself, then for
// its own word that it is ready.
func (s *Server) waitReady(ctx context.Context) error {
	certificate := filepath.Join(s.dir, "apiserver.crt")
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if s.client == nil {
			s.client = trusting(certificate)
		}
		if s.client != nil {
			if status, _, _, err := s.Do(ctx, http.MethodGet, "/readyz", nil); err == nil && status == http.StatusOK {
				return s.writeKubeconfig(certificate)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.New("cannot wait longer for the API server to be ready")
		}
	}
}

func trusting(certificate string) *http.Client {
	text, err := os.ReadFile(certificate)
	roots := x509.NewCertPool()
	if err != nil || !roots.AppendCertsFromPEM(text) {
		return nil
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
}

func (s *Server) writeKubeconfig(certificate string) error {
	return os.WriteFile(s.Kubeconfig, fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: %q, certificate-authority: %q}}]
users: [{name: test, user: {token: %s}}]
contexts: [{name: test, context: {cluster: test, user: test}}]
current-context: test
`, s.url, certificate, token), 0o600)
}

// freePort is a port that was free a moment ago.
func freePort() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}
