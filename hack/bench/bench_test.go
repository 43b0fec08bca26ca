package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMain lets this program be the servers that it starts.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == natsCommand || os.Args[1] == pingPongCommand) {
		if err := run(os.Args[1:]); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// stableOf has all systems running, if the peers are installed.
func stableOf(t *testing.T) *stable {
	t.Helper()
	for _, peer := range []string{"redis-server", "beanstalkd"} {
		if _, err := exec.LookPath(peer); err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatalf("%s is missing: hack/bench/peers.sh installs it", peer)
			}
			t.Skipf("NOT TESTED: %s is missing: hack/bench/peers.sh installs it", peer)
		}
	}
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	sidecar := filepath.Join(dir, "sidecar")
	build := exec.Command("go", "build", "-o", sidecar, "./cmd/sidecar")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s, err := startAll(t.Context(), allCores, &options{sidecar: sidecar, progress: io.Discard}, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	return s
}

func TestEverySystemDoesTheWholeWork(t *testing.T) {
	s := stableOf(t)
	for name, w := range map[string]work{
		"one by one":   base,
		"batches":      the(func(w *work) { w.batch = 7 }),
		"large":        the(func(w *work) { w.batch, w.size = 3, 64<<10 }),
		"groups":       the(func(w *work) { w.groups, w.batch = 2, 5 }),
		"publish":      the(func(w *work) { w.consumers = 0 }),
		"at a rate":    the(func(w *work) { w.rate = 2000 }),
		"many parties": the(func(w *work) { w.producers, w.consumers, w.parts = 20, 20, 20 }),
	} {
		for label, sys := range s.systems {
			if label == beanName && w.groups > 1 {
				continue // it has none
			}
			if label == ceiling {
				if w.groups > 1 {
					continue
				}
				if err := s.measureSizes(t.Context(), &w); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
			// A turn fails by itself when a message is lost, doubled or unacknowledged.
			x, err := turn(t.Context(), sys, &w, 20*time.Millisecond)
			if err != nil {
				t.Errorf("%s, %s: %v", name, label, err)
				continue
			}
			if x.Rate <= 0 || x.PublishP50 <= 0 || x.PublishP99 < x.PublishP50 || x.ServerCPU < 0 || x.Calls <= 0 {
				t.Errorf("%s, %s: %+v", name, label, x)
			}
			if measured := x.DeliveryP99 > 0; measured != (w.rate > 0) {
				t.Errorf("%s, %s: the latency of deliveries is measured at a rate, and only then: %+v", name, label, x)
			}
		}
	}
}

func TestTheReportComparesTurnsOfTheSameRound(t *testing.T) {
	samples := func(rates ...float64) (all []sample) {
		for _, r := range rates {
			all = append(all, sample{Rate: r, ServerCPU: 1e6 / r})
		}
		return all
	}
	// The machine slows down from round to round; PodMQ is 1.6 times Redis in each.
	r := report{Results: map[setting][]*result{pinned: {
		{Experiment: "one", Title: "one message a request", Name: podmqFrames, Samples: samples(160_000, 80_000, 16_000)},
		{Experiment: "one", Title: "one message a request", Name: redisName, Samples: samples(100_000, 50_000, 10_000)},
	}}}
	text := r.markdown()
	for _, want := range []string{
		"| one by one, pinned, to Redis Streams | ≥ 1.50× | **1.60×** | 1.60 – 1.60 | reached |",
		"| one by one, pinned, CPU a message, to Redis Streams | ≤ 1.00× | **0.62×** | 0.62 – 0.62 | reached |",
		"| pinned | one message a request | Redis Streams | 50,000 | 10,000 – 100,000 | 1.60× |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s\nis not in\n%s", want, text)
		}
	}
	if chart := r.chart(); !strings.Contains(chart, redisName) || !strings.Contains(chart, "80,000") {
		t.Errorf("the chart shows neither:\n%s", chart)
	}
}

func TestATargetThatIsMissedSaysSo(t *testing.T) {
	r := report{Results: map[setting][]*result{pinned: {
		{Experiment: "one", Name: podmqFrames, Samples: []sample{{Rate: 149, ServerCPU: 2}}},
		{Experiment: "one", Name: redisName, Samples: []sample{{Rate: 100, ServerCPU: 1}}},
	}}}
	if n := strings.Count(r.markdown(), " missed |"); n != 2 {
		t.Errorf("%d targets are missed, want rate and CPU:\n%s", n, r.markdown())
	}
}

func TestEveryTargetIsMeasured(t *testing.T) {
	names := make(map[string]bool)
	for _, e := range plan() {
		for _, c := range e.who {
			names[e.name+"/"+c.name()] = true
		}
	}
	for _, target := range targets() {
		for _, name := range []string{target.of, target.to} {
			if !names[target.experiment+"/"+name] {
				t.Errorf("%s: nothing measures %s in %s", target.text, name, target.experiment)
			}
		}
	}
}

func TestTheCommandLineIsChecked(t *testing.T) {
	for _, args := range [][]string{{"-settings=x"}, {"-rounds=0"}, {"-turn=0s"}, {"-only=("}, {"-systems=("}} {
		if _, err := parse(args); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
	o, err := parse([]string{"-only=one|batch", "-settings=pinned"})
	if err != nil || !o.only.MatchString("batch-10") || o.only.MatchString("none") || len(o.settings) != 1 {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestProtocolsAreReadOnlyWhenTheyAreComplete(t *testing.T) {
	payload := bytes.Repeat([]byte("0"), 40)
	message := "HMSG _INBOX.1 1 reply 12 52\r\nNATS/1.0\r\n\r\n" + string(payload) + "\r\n"
	for n := range len(message) {
		if _, used, err := readNATS([]byte(message[:n])); used != 0 || err != nil {
			t.Fatalf("NATS, %d of %d bytes: %d, %v", n, len(message), used, err)
		}
	}
	m, used, err := readNATS([]byte(message + "PING\r\n"))
	if err != nil || used != len(message) || string(m.reply) != "reply" || !bytes.Equal(m.payload, payload) {
		t.Errorf("NATS: %+v, %d, %v", m, used, err)
	}
	if _, _, err := readNATS([]byte("-ERR 'no'\r\n")); err == nil {
		t.Error("NATS: a refusal is no error")
	}
	if _, _, err := bulk([]byte("-ERR no\r\n")); err == nil {
		t.Error("Redis: a refusal is no error")
	}
	if id, size, ok := job([]byte("RESERVED 17 256")); !ok || string(id) != "17" || size != 256 {
		t.Errorf("beanstalkd: %s, %d, %v", id, size, ok)
	}
}
