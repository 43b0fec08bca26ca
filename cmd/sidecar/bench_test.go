package main

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestBenchCountsEveryMessageAndLeavesNothing(t *testing.T) {
	startLocal(t, nil)
	for _, c := range []struct {
		args   string
		groups uint64
	}{
		{"--producers=2 --consumers=2 --groups=3 --batch=7", 3},
		{"--producers=3 --consumers=1 --batch=10 --format=json --type=queue --threads=2 --payload=1KiB", 1},
		{"--producers=2 --consumers=0", 0},
	} {
		r := command("", append([]string{"bench", "--json", "--duration=30ms"}, strings.Fields(c.args)...)...)
		var got benchResult
		if err := json.Unmarshal([]byte(r.stdout), &got); err != nil || r.code != exitOK {
			t.Fatalf("bench %s: %v: %+v", c.args, err, r)
		}
		if got.Published == 0 || got.Delivered != got.Published*c.groups || got.Publish.P50 <= 0 || got.Publish.Max < got.Publish.P99 {
			t.Errorf("bench %s: %+v", c.args, got)
		}
		if got.Delivery != nil {
			t.Errorf("bench %s shows how long the backlog is as a latency", c.args)
		}
	}
	if r := command("", "topics"); !strings.HasPrefix(r.stdout, "no topics") {
		t.Errorf("bench left a topic: %s", r.stdout)
	}
}

func TestBenchKeepsToARate(t *testing.T) {
	startLocal(t, nil)
	r := command("", "bench", "--json", "--producers=2", "--rate=1000", "--duration=100ms")
	var got benchResult
	if err := json.Unmarshal([]byte(r.stdout), &got); err != nil || r.code != exitOK {
		t.Fatalf("%v: %+v", err, r)
	}
	// Two producers, each due every 2 ms for 100 ms: however late, none more often.
	if got.Published == 0 || got.Published > 100 {
		t.Errorf("%d messages were published in 100ms at 1000/s", got.Published)
	}
	if got.Delivery == nil || got.Delivery.P50 <= 0 {
		t.Errorf("no latency of deliveries: %+v", got)
	}
}

func TestBenchShowsATable(t *testing.T) {
	startLocal(t, nil)
	r := command("", "bench", "--producers=1", "--consumers=1", "--rate=500", "--duration=30ms")
	for _, want := range []string{" messages of 256 B published and delivered to 1 groups in ", "p99.9", "publish to delivery"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("%q is not in\n%s%s", want, r.stdout, r.stderr)
		}
	}
}

func TestBenchRefusesFlagsThatCannotBeUsed(t *testing.T) {
	for _, flag := range []string{
		"--producers=0", "--consumers=-1", "--groups=0", "--partitions=0", "--payload=8B", "--payload=much", "--batch=0",
		"--threads=0", "--rate=-1", "--duration=0s", "--format=xml", "--type=heap", "--in-flight=-1",
	} {
		r := command("", "bench", flag)
		if r.code != exitSettings || !strings.HasPrefix(r.stderr, "sidecar: ") {
			t.Errorf("bench %s: %+v, want exit code 2 and a reason", flag, r)
		}
	}
}

func TestBenchSaysWhatTheBrokerRefused(t *testing.T) {
	startLocal(t, map[string]string{"PODMQ_MAX_MESSAGE_BYTES": "1KiB"})
	r := command("", "bench", "--payload=2KiB", "--duration=1s")
	if r.code != exitFailure || !strings.Contains(r.stderr, "413") || !strings.Contains(r.stderr, "too_large") {
		t.Errorf("%+v", r)
	}
	if r := command("", "topics"); !strings.HasPrefix(r.stdout, "no topics") {
		t.Errorf("bench left a topic: %s", r.stdout)
	}
}
