package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/podmq/podmq/pkg/core"
	"github.com/podmq/podmq/pkg/transport/client"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestEnvPrintsEveryVariable(t *testing.T) {
	setEnv(t, map[string]string{"PODMQ_CAPACITY": "5"}) // it prints defaults, whatever is set
	r := command("", "env")
	golden := filepath.Join("testdata", "env.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(r.stdout), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || r.code != 0 || r.stdout != string(want) {
		t.Errorf("exit code %d, %v; got\n%s\nwant\n%s\nIf that is meant, run the test with -update.", r.code, err, r.stdout, want)
	}
}

func TestACommandLineThatCannotBeReadIsExitCode2(t *testing.T) {
	for _, args := range [][]string{
		{"nosuch"}, {"--nosuch"}, {"serve", "extra"}, {"topics", "--every=often"}, {"publish"}, {"poll", "orders"}, {"tail"},
		{"poll", "orders", "g", "--follow"}, {"poll", "orders", "g", "-o", "xml"},
		{"publish", "orders", "x", "--lines"}, {"publish", "orders", "x", "--header=novalue"}, {"probe", "--wait=10"},
	} {
		r := command("", args...)
		if r.code != exitSettings || !strings.HasPrefix(r.stderr, "sidecar: ") || r.stdout != "" {
			t.Errorf("sidecar %s: %+v, want exit code 2 and a reason", strings.Join(args, " "), r)
		}
	}
}

func TestCommandsSayWhereTheyLookedForABroker(t *testing.T) {
	socket := filepath.Join(shortDir(t), "podmq.sock")
	setEnv(t, map[string]string{"PODMQ_SOCKET": socket})
	for _, args := range [][]string{
		{"probe"}, {"topics"}, {"topics", "orders"}, {"publish", "orders", "x"}, {"poll", "orders", "g"}, {"tail", "orders"},
	} {
		r := command("", args...)
		if want := "sidecar: cannot reach a broker at " + socket + ": "; r.code != exitFailure || !strings.HasPrefix(r.stderr, want) || strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("sidecar %s: %+v, want exit code 1 and %q", strings.Join(args, " "), r, want)
		}
	}
	if r := command("", "probe", "--socket=podmq.sock"); r.code != exitFailure || !strings.Contains(r.stderr, "it is the full path of a socket") {
		t.Errorf("a relative path: %+v", r)
	}
}

func TestCommandsSayWhatTheBrokerRefused(t *testing.T) {
	startLocal(t, map[string]string{"PODMQ_TOPICS": "orders?capacity=1&groups=g"})
	for _, c := range []struct {
		args []string
		code core.Code
	}{
		{[]string{"topics", "nosuch"}, core.CodeUnknownTopic},
		{[]string{"publish", "nosuch", "x"}, core.CodeUnknownTopic},
		{[]string{"publish", "orders", "x", "--partition=7"}, core.CodeUnknownPartition},
		{[]string{"poll", "orders", "nosuch"}, core.CodeUnknownGroup},
		{[]string{"tail", "nosuch"}, core.CodeUnknownTopic},
		{[]string{"publish", "orders", "x", "y"}, core.CodePartitionFull},
	} {
		r := command("", c.args...)
		if r.code != exitFailure || !strings.HasPrefix(r.stderr, "sidecar: cannot ") || !strings.Contains(r.stderr, "("+string(c.code)+")") {
			t.Errorf("sidecar %s: %+v, want exit code 1 and %s", strings.Join(c.args, " "), r, c.code)
		}
	}
	// The last one stored one of two, and says so.
	if r := command("", "publish", "orders", "z"); !strings.Contains(r.stderr, "partition_full") {
		t.Errorf("%+v", r)
	}
}

func TestPublishAndPollKeepWhatWasGiven(t *testing.T) {
	startLocal(t, map[string]string{"PODMQ_TOPICS": "orders?partitions=2&groups=g"})
	r := command("", "publish", "orders", "a", "", "--key=user-a", "--header=Source=cli", "--content-type=text/plain", "--sender=me", "--id=7", "--wait=1s")
	if r.code != 0 || r.stdout != "partition 1 offset 0\npartition 1 offset 1\n" {
		t.Fatalf("publish: %+v", r)
	}
	if r := command("\x00\xff", "publish", "orders", "--partition=0", "-q"); r.code != 0 || r.stdout != "" {
		t.Fatalf("publish of standard input: %+v", r)
	}
	if r := command("", "poll", "orders", "g", "--max=1"); r.code != 0 {
		t.Errorf("poll: %+v", r)
	}

	r = command("", "poll", "orders", "g", "-o", "json", "--ack")
	var got []map[string]any
	for line := range strings.Lines(r.stdout) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if at := fmt.Sprint(m["published_at"]); len(at) != len("2026-11-30T12:00:00.000Z") {
			t.Errorf("published at %s, want milliseconds as in the API", at)
		}
		delete(m, "published_at")
		got = append(got, m)
	}
	slices.SortFunc(got, func(a, b map[string]any) int {
		return int(a["partition"].(float64)*100 + a["offset"].(float64) - b["partition"].(float64)*100 - b["offset"].(float64))
	})
	text, err := json.Marshal(got)
	want := `[{"attempt":1,"content_type":"","headers":{},"id":"","offset":0,"partition":0,"payload_base64":"AP8=","sender":""},` +
		`{"attempt":1,"content_type":"text/plain","headers":{"source":"cli"},"id":"7","key":"user-a","offset":0,"partition":1,"payload":"a","sender":"me"},` +
		`{"attempt":1,"content_type":"text/plain","headers":{"source":"cli"},"id":"7","key":"user-a","offset":1,"partition":1,"payload":"","sender":"me"}]`
	if err != nil || r.code != 0 || string(text) != want {
		t.Errorf("got  %s\nwant %s\n%+v %v", text, want, r, err)
	}
	if r := command("", "poll", "orders", "g"); r.code != 0 || r.stdout != "" {
		t.Errorf("a poll of nothing: %+v, want nothing and exit code 0", r)
	}
}

func TestPollLeavesItsGroup(t *testing.T) {
	startLocal(t, map[string]string{"PODMQ_TOPICS": "orders?groups=g"})
	command("", "publish", "orders", "x")
	for range 2 { // the second sees that the first gave it back, not as an attempt
		if r := command("", "poll", "orders", "g"); r.code != 0 || r.stdout != "0:0  x\n" {
			t.Errorf("poll without --ack: %+v", r)
		}
	}
	if r := command("", "topics"); !regexp.MustCompile(`(?m)^orders +0 +0 +1 +1/1024 +129B +g +0 +0 +1 +- +-$`).MatchString(r.stdout) {
		t.Errorf("the group still has a member or a lease:\n%s", r.stdout)
	}
}

func TestEachLineIsAMessage(t *testing.T) {
	startLocal(t, map[string]string{"PODMQ_TOPICS": "log?capacity=3000&groups=g"})
	lines := strings.Repeat("line\n", 2499) + "\nlast without an end"
	if r := command(lines, "publish", "log", "--lines", "-q"); r.code != 0 {
		t.Fatalf("publish: %+v", r)
	}
	r := command("", "poll", "log", "g", "--max=10000", "-o", "raw", "--ack")
	if want := lines + "\n"; r.stdout != want {
		t.Errorf("got %d bytes, want the %d of the lines", len(r.stdout), len(want))
	}
}

func TestATypedLineIsPublishedAtOnce(t *testing.T) {
	in, typed := io.Pipe()
	sent := make(chan string)
	done := make(chan error)
	go func() {
		done <- eachLines(in, func(lines [][]byte) error {
			for _, l := range lines {
				sent <- string(l)
			}
			return nil
		})
	}()
	for _, line := range []string{"one", "two"} {
		if _, err := io.WriteString(typed, line+"\n"); err != nil {
			t.Fatal(err)
		}
		if got := <-sent; got != line { // before there is another
			t.Errorf("got %q, want %q", got, line)
		}
	}
	_ = typed.CloseWithError(errors.New("unplugged"))
	if err := <-done; err == nil || !strings.Contains(err.Error(), "unplugged") {
		t.Errorf("a failing input: %v", err)
	}
}

// awaitOutput is a writer that says when it has seen a text.
type awaitOutput struct {
	log  *logLines
	want string
	seen chan struct{}
}

func (a *awaitOutput) Write(p []byte) (int, error) {
	n, err := a.log.Write(p)
	if a.seen != nil && strings.Contains(a.log.String(), a.want) {
		close(a.seen)
		a.seen = nil
	}
	return n, err
}

// runUntil runs a command until it has printed want, then interrupts it.
func runUntil(t *testing.T, want string, args ...string) (code int, out string) {
	t.Helper()
	signals := make(chan os.Signal, 1)
	seen := make(chan struct{})
	w := &awaitOutput{newLogLines(), want, seen}
	ended := make(chan int)
	go func() {
		ended <- run(&process{args: args, stdin: strings.NewReader(""), stdout: w, stderr: w, signals: signals, terminationLog: os.DevNull})
	}()
	select {
	case <-seen:
	case code := <-ended:
		t.Fatalf("sidecar %s ended with %d before it printed %q:\n%s", strings.Join(args, " "), code, want, w.log)
	case <-time.After(patience):
		t.Fatalf("sidecar %s never printed %q:\n%s", strings.Join(args, " "), want, w.log)
	}
	signals <- syscall.SIGINT
	return <-ended, w.log.String()
}

func TestTailSeesWhatIsPublishedAndTakesNothing(t *testing.T) {
	b := startLocal(t, map[string]string{"PODMQ_TOPICS": "orders?groups=g"})
	command("", "publish", "orders", "before", "--key=a")
	code, out := runUntil(t, "0:0 key=a  before\n", "tail", "orders", "--from-start")
	if code != 0 {
		t.Errorf("exit code %d after an interruption, want 0:\n%s", code, out)
	}
	c, err := client.New(client.Config{Address: b.socket})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	groups, err := c.Groups(context.Background(), "orders")
	if err != nil || len(groups) != 1 || groups[0].Group != "g" || groups[0].Cursors[0].Lag != 1 {
		t.Errorf("groups are %+v, %v; want g alone, with its message", groups, err)
	}
}

func TestFollowAcknowledgesWhatItPrinted(t *testing.T) {
	startLocal(t, map[string]string{"PODMQ_TOPICS": "orders?groups=g"})
	command("", "publish", "orders", "x", "y", "z")
	if code, out := runUntil(t, "z\n", "poll", "orders", "g", "--ack", "--follow", "--max=1"); code != 0 || out != "0:0  x\n0:1  y\n0:2  z\n" {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	if r := command("", "poll", "orders", "g"); r.stdout != "" {
		t.Errorf("handed out again: %+v", r)
	}
}

func TestTopicsWatchGoesOn(t *testing.T) {
	startLocal(t, map[string]string{"PODMQ_TOPICS": "orders"})
	code, out := runUntil(t, "LEASE\norders  0          0      0    0/1024   0      -      -          -     -    -      -\n"+clearScreen+"TOPIC", "topics", "--watch", "--every=1ms")
	if code != 0 {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}

func TestOddBytesDoNotBreakTheTerminal(t *testing.T) {
	for text, want := range map[string]string{
		"plain": "plain", "größe 1": "größe 1", "": `""`, "a\nb": `"a\nb"`, "\x1b[2J": `"\x1b[2J"`, "\xff": `"\xff"`,
	} {
		if got := printable(text); got != want {
			t.Errorf("printable(%q) = %s, want %s", text, got, want)
		}
	}
}
