package main

import (
	"reflect"
	"testing"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

func TestTopicsAndGroupsAreDeclaredTogether(t *testing.T) {
	setEnv(t, map[string]string{
		"PODMQ_TOPICS": " orders?partitions=8&capacity=10000&ack-timeout=30s&groups=billing,email; payments\n\n  audit?max-bytes=1MiB;\r\n",
		"PODMQ_GROUPS": "orders/billing?type=queue&session-timeout=2m\norders/late?start=earliest&expires=60s; payments/ledger",
	})
	c, faults := loadConfig(0)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	want := []declaration{
		{
			topic: "orders",
			spec:  core.TopicSpec{Partitions: core.Some(8), Capacity: core.Some(10000), AckTimeout: core.Some(30 * time.Second)},
			groups: []declaredGroup{
				{"orders", "billing", core.GroupSpec{Type: core.Some(core.Queue), SessionTimeout: core.Some(2 * time.Minute)}},
				{"orders", "late", core.GroupSpec{Start: core.Some(core.Earliest), Expires: core.Some(time.Minute)}},
				{"orders", "email", core.GroupSpec{}},
			},
		},
		{topic: "payments", groups: []declaredGroup{{"payments", "ledger", core.GroupSpec{}}}},
		{topic: "audit", spec: core.TopicSpec{MaxBytes: core.Some[int64](1 << 20)}},
	}
	if got := c.declarations(); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got, want := c.Topics.String(), "orders?partitions=8&capacity=10000&ack-timeout=30s&groups=billing,email; payments; audit?max-bytes=1MiB"; got != want {
		t.Errorf("shown as %q, want %q", got, want)
	}
}

func TestOptionsAreDecodedAsInAQuery(t *testing.T) {
	var l topicList
	if err := l.Decode("a?groups=x%2Cy&ack%2dtimeout=1s"); err == nil {
		t.Error("an encoded name of an option was taken; names are plain")
	}
	l = topicList{}
	if err := l.Decode("a?groups=x%2Cy"); err != nil || !reflect.DeepEqual(l.topics[0].groups, []string{"x", "y"}) {
		t.Errorf("got %v, %v", l.topics, err)
	}
}

func FuzzDeclarationsAreReadOrRefused(f *testing.F) {
	for _, seed := range []string{
		"", ";", "orders?partitions=8&capacity=10000&ack-timeout=30s&groups=billing,email; payments",
		"orders/billing?type=queue&session-timeout=2m; orders/email", "a?b", "a?=", "a?&&", "?", "/", "a/b?start=earliest\nc/d", "a?groups=,", "a?capacity=%31",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var topics, again topicList
		if topics.Decode(text) == nil {
			// What is shown in the log can be used as the setting.
			if err := again.Decode(topics.String()); err != nil || !reflect.DeepEqual(again, topics) {
				t.Errorf("topics %q were shown as %q, which reads as %+v, %v", text, topics, again, err)
			}
		}
		var groups, same groupList
		if groups.Decode(text) == nil {
			if err := same.Decode(groups.String()); err != nil || !reflect.DeepEqual(same, groups) {
				t.Errorf("groups %q were shown as %q, which reads as %+v, %v", text, groups, same, err)
			}
		}
	})
}
