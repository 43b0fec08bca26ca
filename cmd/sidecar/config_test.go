package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

// setEnv gives a test an environment with these settings and no others.
func setEnv(t *testing.T, settings map[string]string) {
	t.Helper()
	for _, e := range os.Environ() {
		if name, value, _ := strings.Cut(e, "="); strings.HasPrefix(name, prefix+"_") {
			t.Setenv(name, value) // so that it comes back
			if err := os.Unsetenv(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, value := range settings {
		t.Setenv(name, value)
	}
}

func TestEveryBadSettingIsRefusedByName(t *testing.T) {
	for _, c := range []struct{ variable, value, want string }{
		{"PODMQ_PARTITIONS", "many", `PODMQ_PARTITIONS: cannot use "many": it is a whole number`},
		{"PODMQ_PARTITIONS", "0", "PODMQ_PARTITIONS: cannot make 0 partitions: a topic has 1 to 1024"},
		{"PODMQ_PARTITIONS", "1025", "PODMQ_PARTITIONS: cannot make 1025 partitions"},
		{"PODMQ_PARTITIONS", "99999999999999999999", "PODMQ_PARTITIONS: cannot use"},
		{"PODMQ_CAPACITY", "-1", "PODMQ_CAPACITY: cannot hold -1 messages a partition"},
		{"PODMQ_CAPACITY", "10000001", "PODMQ_CAPACITY: cannot hold 10000001 messages"},
		{"PODMQ_ACK_TIMEOUT", "30", `PODMQ_ACK_TIMEOUT: cannot read duration "30": a unit is missing, such as 30s`},
		{"PODMQ_ACK_TIMEOUT", "0", "PODMQ_ACK_TIMEOUT: cannot use ack-timeout=0s"},
		{"PODMQ_MAX_BYTES", "64", `PODMQ_MAX_BYTES: cannot read size "64": a unit is missing`},
		{"PODMQ_MAX_BYTES", "0", `PODMQ_MAX_BYTES: cannot use "0": give at least 1B`},
		{"PODMQ_MAX_BYTES", "1MiB", "PODMQ_MAX_BYTES: cannot hold a single message of PODMQ_MAX_MESSAGE_BYTES=1MiB in 1MiB"},
		{"PODMQ_MAX_MESSAGE_BYTES", "17MiB", "PODMQ_MAX_MESSAGE_BYTES: cannot take messages of 17MiB: the most is 16MiB"},
		{"PODMQ_SOCKET", "/" + strings.Repeat("s", 107), "its path has 108 bytes, and the most is 107"},
		{"PODMQ_SOCKET_MODE", "rw", `PODMQ_SOCKET_MODE: cannot use "rw": it is an octal number up to 0777`},
		{"PODMQ_SOCKET_MODE", "1777", "PODMQ_SOCKET_MODE: cannot use"},
		{"PODMQ_SOCKET_MODE", "0066", `PODMQ_SOCKET_MODE: cannot use "0066": the broker's own user`},
		{"PODMQ_HTTP_ADDR", "0.0.0.0:8080", "PODMQ_HTTP_ADDR: cannot use \"0.0.0.0:8080\": the API has no passwords"},
		{"PODMQ_HTTP_ADDR", ":8080", "PODMQ_HTTP_ADDR: cannot use \":8080\": the API has no passwords"},
		{"PODMQ_HTTP_ADDR", "localhost", "PODMQ_HTTP_ADDR: cannot use \"localhost\": it is host:port"},
		{"PODMQ_METRICS_ADDR", "9789", `PODMQ_METRICS_ADDR: cannot use "9789": it is host:port or :port`},
		{"PODMQ_METRICS_ADDR", ":97890", `PODMQ_METRICS_ADDR: cannot use ":97890"`},
		{"PODMQ_METRICS_PARTITIONS", "no", `PODMQ_METRICS_PARTITIONS: cannot use "no": it is true or false`},
		{"PODMQ_TOPIC_ADMIN", "1", `PODMQ_TOPIC_ADMIN: cannot use "1": it is true or false`},
		{"PODMQ_SIDECAR_MODE", "Native", `PODMQ_SIDECAR_MODE: cannot use "Native": it is native or container`},
		{"PODMQ_DRAIN_TIMEOUT", "-1s", `PODMQ_DRAIN_TIMEOUT: cannot use duration "-1s": it is negative`},
		{"PODMQ_LOG_LEVEL", "trace", `PODMQ_LOG_LEVEL: cannot use "trace": it is debug, info, warn or error`},
		{"PODMQ_LOG_FORMAT", "xml", `PODMQ_LOG_FORMAT: cannot use "xml": it is json or text`},

		{"PODMQ_TOPICS", "orders:partitions=8", `PODMQ_TOPICS, entry 1 (orders:partitions=8): cannot read it: options follow a question mark, as in orders?partitions=8`},
		{"PODMQ_TOPICS", "or ders", `PODMQ_TOPICS, entry 1 (or ders): cannot use "or ders" as the name of a topic`},
		{"PODMQ_TOPICS", "a; b?partitions", `PODMQ_TOPICS, entry 2 (b?partitions): cannot read option "partitions": it is name=value`},
		{"PODMQ_TOPICS", "a?partitions=0", "PODMQ_TOPICS, entry 1 (a?partitions=0): cannot make 0 partitions"},
		{"PODMQ_TOPICS", "a?partition=2", `cannot use option "partition": those of a topic are partitions, capacity, max-bytes, ack-timeout, groups`},
		{"PODMQ_TOPICS", "a?ack-timeout=30", `cannot read duration "30": a unit is missing, such as 30s or 30ms (ack-timeout)`},
		{"PODMQ_TOPICS", "a?capacity=%zz", "its percent-encoding is broken"},
		{"PODMQ_TOPICS", "a?capacity=1&capacity=2", "cannot use option capacity twice"},
		{"PODMQ_TOPICS", "a;a", "entry 2 (a): cannot declare topic a twice"},
		{"PODMQ_TOPICS", "a?groups=", `cannot use "" as the name of a group`},
		{"PODMQ_TOPICS", "a?groups=x,x", "cannot declare group x twice"},
		{"PODMQ_TOPICS", "a?max-bytes=1TiB", "PODMQ_TOPICS: cannot reserve 1TiB with max-bytes: PODMQ_MAX_BYTES is 64MiB"},
		{"PODMQ_TOPICS", manyTopics(1001, 1), "PODMQ_TOPICS: cannot create 1001 topics: the most is 1000"},
		{"PODMQ_TOPICS", manyTopics(10, 1001), "PODMQ_TOPICS: cannot create 10010 partitions in all: the most is 10000"},
		{"PODMQ_GROUPS", "billing", "PODMQ_GROUPS, entry 1 (billing): cannot read it: an entry is topic/group"},
		{"PODMQ_GROUPS", "t/a/b", `PODMQ_GROUPS, entry 1 (t/a/b): cannot use "a/b" as the name of a group`},
		{"PODMQ_GROUPS", "t/a?type=fifo", `cannot make a group of type "fifo"`},
		{"PODMQ_GROUPS", "t/a?session=5s", `cannot use option "session": those of a group are type, start`},
		{"PODMQ_GROUPS", "t/a;t/a", "entry 2 (t/a): cannot declare group t/a twice"},
		{"PODMQ_GROUPS", "orders/billing", "PODMQ_GROUPS: cannot create group orders/billing: topic orders is not in PODMQ_TOPICS"},
	} {
		t.Run(c.variable+"="+c.value[:min(len(c.value), 30)], func(t *testing.T) {
			settings := map[string]string{c.variable: c.value}
			if c.variable == "PODMQ_GROUPS" && strings.HasPrefix(c.value, "t/") {
				settings["PODMQ_TOPICS"] = "t"
			}
			setEnv(t, settings)
			_, faults := loadConfig(0)
			if len(faults) != 1 || !strings.Contains(faults[0].Error(), c.want) {
				t.Errorf("got %q\nwant one with %q", faults, c.want)
			}
		})
	}
}

// manyTopics is a PODMQ_TOPICS of n topics.
func manyTopics(n, partitions int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "t%d?partitions=%d;", i, partitions)
	}
	return b.String()
}

func TestAllFaultsAreReportedAtOnce(t *testing.T) {
	setEnv(t, map[string]string{
		"PODMQ_TOPICS":       "a?x=1&partitions=0; b; c?y=2; d?capacity",
		"PODMQ_GROUPS":       "z/g; a/g?type=fifo&start=now; c/g; d/g",
		"PODMQ_CAPACITY":     "0",
		"PODMQ_LOG_LEVEL":    "loud",
		"PODMQ_METRICS_ADDR": "here",
	})
	_, faults := loadConfig(0)
	var got []string
	for _, f := range faults {
		name, _, _ := strings.Cut(f.Error(), ": ")
		got = append(got, name)
	}
	want := []string{
		"PODMQ_TOPICS, entry 1 (a?x=1&partitions=0)", "PODMQ_TOPICS, entry 1 (a?x=1&partitions=0)",
		"PODMQ_TOPICS, entry 3 (c?y=2)", "PODMQ_TOPICS, entry 4 (d?capacity)",
		"PODMQ_GROUPS, entry 2 (a/g?type=fifo&start=now)", "PODMQ_GROUPS, entry 2 (a/g?type=fifo&start=now)",
		"PODMQ_METRICS_ADDR", "PODMQ_LOG_LEVEL", "PODMQ_CAPACITY", "PODMQ_GROUPS",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

func TestEmptyVariablesCountAsAbsent(t *testing.T) {
	settings := map[string]string{}
	none := defaults()
	for _, v := range none.variables() {
		settings[v.name] = ""
	}
	setEnv(t, settings)
	c, faults := loadConfig(0)
	want := defaults()
	want.MaxBytes = defaultMaxBytes
	if len(faults) > 0 || c.LogValue().String() != want.LogValue().String() {
		t.Errorf("got %v, %v\nwant %v", c.LogValue(), faults, want.LogValue())
	}
}

func TestEverySettingIsRead(t *testing.T) {
	set := map[string]string{
		"PODMQ_TOPICS": "orders?partitions=8", "PODMQ_GROUPS": "orders/billing?type=queue",
		"PODMQ_PARTITIONS": "2", "PODMQ_CAPACITY": "100", "PODMQ_ACK_TIMEOUT": "45s",
		"PODMQ_MAX_BYTES": "10MiB", "PODMQ_MAX_MESSAGE_BYTES": "2KiB",
		"PODMQ_SOCKET": "/tmp/x.sock", "PODMQ_SOCKET_MODE": "0660",
		"PODMQ_HTTP_ADDR": "[::1]:80", "PODMQ_METRICS_ADDR": "127.0.0.1:0", "PODMQ_METRICS_PARTITIONS": "false",
		"PODMQ_TOPIC_ADMIN": "false", "PODMQ_SIDECAR_MODE": "container", "PODMQ_DRAIN_TIMEOUT": "1m30s",
		"PODMQ_LOG_LEVEL": "debug", "PODMQ_LOG_FORMAT": "text",
	}
	setEnv(t, set)
	c, faults := loadConfig(0)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	vars := c.variables()
	for _, v := range vars {
		if v.value != set[v.name] {
			t.Errorf("%s is %q, want %q", v.name, v.value, set[v.name])
		}
	}
	if len(vars) != len(set) {
		t.Errorf("there are %d variables, want %d", len(vars), len(set))
	}
	want := core.TopicSettings{Partitions: 2, Capacity: 100, AckTimeout: 45 * time.Second}
	if got := c.topicSettings(); got != want {
		t.Errorf("topics get %+v, want %+v", got, want)
	}
}

func TestTheMemoryBudgetIsHalfOfTheContainersLimit(t *testing.T) {
	for limit, want := range map[int64]size{0: 64 << 20, 100 << 20: 50 << 20} {
		setEnv(t, nil)
		if c, faults := loadConfig(limit); c.MaxBytes != want || len(faults) > 0 {
			t.Errorf("limit %d: budget %v, %v, want %v", limit, c.MaxBytes, faults, want)
		}
	}
	setEnv(t, map[string]string{"PODMQ_MAX_BYTES": "8MiB"})
	if c, _ := loadConfig(100 << 20); c.MaxBytes != 8<<20 {
		t.Errorf("budget %v, want the 8MiB that were set", c.MaxBytes)
	}
	setEnv(t, nil)
	if _, faults := loadConfig(1 << 20); len(faults) != 1 {
		t.Errorf("a container of 1 MiB: faults %v, want one", faults)
	}
}

func TestEveryVariableHasAMeaning(t *testing.T) {
	c := defaults()
	for _, v := range c.variables() {
		if v.meaning == "" || !strings.HasPrefix(v.name, prefix+"_") {
			t.Errorf("%+v", v)
		}
	}
}
