package main

import (
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

func TestDeclaredGroupsExistBeforeTheFirstClient(t *testing.T) {
	startLocal(t, map[string]string{
		"PODMQ_TOPICS": "orders?partitions=2&groups=billing; payments",
		"PODMQ_GROUPS": "orders/audit?type=queue",
	})
	r := command("", "topics")
	for _, want := range []string{"orders    1  ", "billing", "audit", "payments  0  "} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("no %q in\n%s%s", want, r.stdout, r.stderr)
		}
	}
}

func TestG24ALocalBrokerLeavesNothingBehind(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	b := startLocal(t, map[string]string{"PODMQ_TOPICS": "orders"})
	if r := command("", "publish", "orders", "x"); r.code != 0 {
		t.Fatalf("publish: %+v", r)
	}
	if code := b.stop(); code != exitOK {
		t.Errorf("exit code %d after SIGTERM, want 0", code)
	}
	if _, err := net.Dial("unix", b.socket); err == nil {
		t.Error("the socket still answers")
	}
}

func TestASignalBeforeTheStartIsNotLost(t *testing.T) {
	setEnv(t, map[string]string{"PODMQ_SOCKET": filepath.Join(shortDir(t), "s"), "PODMQ_METRICS_ADDR": "127.0.0.1:0"})
	signals := make(chan os.Signal, 1)
	signals <- syscall.SIGTERM
	if r := commandUntil(signals, ""); r.code != exitOK || !strings.Contains(r.stderr, `"msg":"left"`) {
		t.Errorf("got %+v", r)
	}
}

func TestReadyOnceServing(t *testing.T) {
	b := startLocal(t, nil)
	resp, err := http.Get("http://" + b.metrics + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
		t.Errorf("/readyz is %d %s", resp.StatusCode, body)
	}
}

func TestSettingsInForceAreLogged(t *testing.T) {
	b := startLocal(t, map[string]string{"PODMQ_CAPACITY": "77", "PODMQ_TOPIX": "x"})
	settings, _ := b.log.await(t, "settings in force", b.ended)["settings"].(map[string]any)
	for name, want := range map[string]string{"PODMQ_CAPACITY": "77", "PODMQ_PARTITIONS": "1", "PODMQ_SOCKET": b.socket} {
		if settings[name] != want {
			t.Errorf("%s is logged as %v, want %s", name, settings[name], want)
		}
	}
	if w := b.log.await(t, "unknown variable ignored", b.ended); w["variable"] != "PODMQ_TOPIX" || w["nearest"] != "PODMQ_TOPICS" {
		t.Errorf("logged %v", w)
	}
}

func TestAFatalReasonIsOneLineAndTheTerminationMessage(t *testing.T) {
	dir := shortDir(t)
	message := filepath.Join(dir, "termination-log")
	if err := os.WriteFile(message, []byte("from the run before"), 0o600); err != nil {
		t.Fatal(err)
	}
	start := func() (code int, log string) {
		l := newLogLines()
		code = run(&process{stdout: l, stderr: l, signals: make(chan os.Signal), terminationLog: message})
		return code, l.String()
	}
	check := func(code, want int, log, reason string) {
		t.Helper()
		left, err := os.ReadFile(message)
		if code != want || err != nil || strings.Count(log, reason) != 1 || !strings.Contains(string(left), reason) {
			t.Errorf("exit code %d, want %d; reason %q; termination message %q, %v; log:\n%s", code, want, reason, left, err, log)
		}
	}

	setEnv(t, map[string]string{"PODMQ_CAPACITY": "0"})
	code, log := start()
	check(code, exitSettings, log, "cannot hold 0 messages a partition")

	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	setEnv(t, map[string]string{"PODMQ_SOCKET": filepath.Join(dir, "s"), "PODMQ_METRICS_ADDR": busy.Addr().String()})
	code, log = start()
	check(code, exitFailure, log, "cannot listen for health and metrics on "+busy.Addr().String())
}

func TestATerminationMessageIsNeverMade(t *testing.T) {
	file := filepath.Join(shortDir(t), "termination-log")
	writeTermination(file, "reason")
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("a file was made where there was none: %v", err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	writeTermination(file, strings.Repeat("x", 2*terminationMessageBytes))
	if b, _ := os.ReadFile(file); len(b) != terminationMessageBytes {
		t.Errorf("it has %d bytes, Kubernetes keeps %d", len(b), terminationMessageBytes)
	}
}

func TestTheLoopbackListenerServesTheSameAPI(t *testing.T) {
	b := startLocal(t, map[string]string{"PODMQ_HTTP_ADDR": "127.0.0.1:0", "PODMQ_TOPICS": "orders"})
	addresses, _ := b.log.await(t, "serving", b.ended)["addresses"].([]any)
	if len(addresses) != 2 {
		t.Fatalf("addresses %v, want two", addresses)
	}
	tcp, _ := addresses[0].(string)
	if r := command("", "probe", "--socket=http://"+tcp); r.code != 0 || !strings.Contains(r.stdout, "1 topics") {
		t.Errorf("probe over TCP: %+v", r)
	}
}
