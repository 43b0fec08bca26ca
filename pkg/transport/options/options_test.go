package options

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

func TestEveryOptionOfATopicIsRead(t *testing.T) {
	var got core.TopicSpec
	for name, value := range map[string]string{"partitions": "8", "capacity": "10000", "max-bytes": "16MiB", "ack-timeout": "45s"} {
		if known, err := SetTopic(&got, name, value); !known || err != nil {
			t.Errorf("SetTopic(%s, %s) = %v, %v", name, value, known, err)
		}
		if !strings.Contains(TopicNames, name) {
			t.Errorf("TopicNames does not list %s", name)
		}
	}
	want := core.TopicSpec{Partitions: core.Some(8), Capacity: core.Some(10000), MaxBytes: core.Some[int64](16 << 20), AckTimeout: core.Some(45 * time.Second)}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestEveryOptionOfAGroupIsRead(t *testing.T) {
	var got core.GroupSpec
	for name, value := range map[string]string{
		"type": "queue", "start": "earliest", "strategy": "round-robin", "session-timeout": "2m", "max-lease": "2h", "expires": "60s",
	} {
		if known, err := SetGroup(&got, name, value); !known || err != nil {
			t.Errorf("SetGroup(%s, %s) = %v, %v", name, value, known, err)
		}
		if !strings.Contains(GroupNames, name) {
			t.Errorf("GroupNames does not list %s", name)
		}
	}
	want := core.GroupSpec{
		Type: core.Some(core.Queue), Start: core.Some(core.Earliest), Strategy: core.Some(core.RoundRobin),
		SessionTimeout: core.Some(2 * time.Minute), MaxLease: core.Some(2 * time.Hour), Expires: core.Some(time.Minute),
	}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestUnknownOptionsAreNotTaken(t *testing.T) {
	var topic core.TopicSpec
	var group core.GroupSpec
	for _, name := range []string{"", "partition", "Capacity", "groups"} {
		if known, err := SetTopic(&topic, name, "1"); known || err != nil {
			t.Errorf("SetTopic(%q) = %v, %v", name, known, err)
		}
		if known, err := SetGroup(&group, name, "1"); known || err != nil {
			t.Errorf("SetGroup(%q) = %v, %v", name, known, err)
		}
	}
	if topic != (core.TopicSpec{}) || group != (core.GroupSpec{}) {
		t.Errorf("something was set: %+v %+v", topic, group)
	}
}

func TestUnreadableOptionsAreNamed(t *testing.T) {
	var topic core.TopicSpec
	var group core.GroupSpec
	for _, c := range []struct {
		set               func(name, value string) (bool, error)
		name, value, want string
	}{
		{topicSetter(&topic), "partitions", "four", `cannot use partitions="four": it is a whole number`},
		{topicSetter(&topic), "capacity", "1e3", `cannot use capacity="1e3"`},
		{topicSetter(&topic), "max-bytes", "64", "cannot read size"},
		{topicSetter(&topic), "ack-timeout", "30", "cannot read duration"},
		{groupSetter(&group), "session-timeout", "x", "cannot read duration"},
		{groupSetter(&group), "max-lease", "-1s", "cannot use duration"},
		{groupSetter(&group), "expires", "", "cannot read an empty duration"},
	} {
		known, err := c.set(c.name, c.value)
		var e *core.Error
		if !known || !errors.As(err, &e) || e.Code != core.CodeInvalidRequest || !strings.HasPrefix(e.Detail, c.want) || !strings.Contains(e.Detail, c.name) {
			t.Errorf("%s=%s: %v, %v; want %q", c.name, c.value, known, err, c.want)
		} else if e.Fields[0] != (core.Field{Name: "parameter", Value: c.name}) {
			t.Errorf("%s=%s: fields %v do not name it", c.name, c.value, e.Fields)
		}
	}
	if topic != (core.TopicSpec{}) || group != (core.GroupSpec{}) {
		t.Errorf("something was set: %+v %+v", topic, group)
	}
}

func topicSetter(spec *core.TopicSpec) func(name, value string) (bool, error) {
	return func(name, value string) (bool, error) { return SetTopic(spec, name, value) }
}

func groupSetter(spec *core.GroupSpec) func(name, value string) (bool, error) {
	return func(name, value string) (bool, error) { return SetGroup(spec, name, value) }
}
