package core_test

import (
	"strings"
	"testing"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

// The expected values are those of Kafka's own test of its murmur2
// (UtilsTest.testMurmur2); the partition follows from them by clearing the sign
// bit.
func TestPartitionForIsKafkasDefaultPartitioner(t *testing.T) {
	hashes := map[string]int32{
		"21":                         -973932308,
		"foobar":                     -790332482,
		"a-little-bit-long-string":   -985981536,
		"a-little-bit-longer-string": -1486304829,
		"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
		"abc": 479470107,
	}
	for key, hash := range hashes {
		for _, n := range []int{1, 2, 3, 7, 8, core.MaxPartitions} {
			want := int(uint32(hash)&0x7fffffff) % n
			if got := core.PartitionFor([]byte(key), n); got != want {
				t.Errorf("PartitionFor(%q, %d) = %d, want %d", key, n, got, want)
			}
		}
	}
}

func TestPartitionForPutsTheSeedsKeysWhereTheTraceSaysThem(t *testing.T) {
	if p := core.PartitionFor([]byte("user-a"), 2); p != 1 {
		t.Errorf("user-a is in partition %d, want 1", p)
	}
	if p := core.PartitionFor([]byte("user-b"), 2); p != 0 {
		t.Errorf("user-b is in partition %d, want 0", p)
	}
}

func TestPartitionForTakesEveryKeyAndUsesEveryPartition(t *testing.T) {
	used := make(map[int]int)
	key := make([]byte, 0, 300)
	for i := range 300 {
		key = append(key, byte(i*7))
		p := core.PartitionFor(key, 4)
		if p < 0 || p >= 4 {
			t.Fatalf("PartitionFor(%x, 4) = %d, want 0..3", key, p)
		}
		used[p]++
	}
	for p := range 4 {
		if used[p] < 30 {
			t.Errorf("%d of 300 keys are in partition %d, want about 75", used[p], p)
		}
	}
	if p := core.PartitionFor(nil, 4); p != core.PartitionFor([]byte{}, 4) {
		t.Errorf("no bytes hash to two partitions, one of them %d", p)
	}
}

func TestNamesAreCheckedByteByByte(t *testing.T) {
	long := strings.Repeat("n", core.MaxNameLen)
	tests := []struct {
		name          string
		topic, member bool
	}{
		{"a", true, true},
		{"7", true, true},
		{"Orders.v2_eu-west", true, true},
		{long, true, true},
		{"web-1:4242@node", false, true},
		{"", false, false},
		{long + "n", false, false},
		{".hidden", false, false},
		{"-dash", false, false},
		{"_under", false, false},
		{":colon", false, false},
		{"@at", false, false},
		{"a b", false, false},
		{"a/b", false, false},
		{"a\x00", false, false},
		{"a\n", false, false},
		{"größe", false, false},
		{"a\xff", false, false},
	}
	for _, tt := range tests {
		for what, check := range map[string]func(string) error{
			"topic": func(n string) error { return core.CheckName("topic", n) },
			"group": func(n string) error { return core.CheckName("group", n) },
		} {
			if err := check(tt.name); (err == nil) != tt.topic {
				t.Errorf("%s %q: %v, want good: %v", what, tt.name, err, tt.topic)
			} else if err != nil {
				wantRefused(t, err, core.CodeInvalidRequest, what)
			}
		}
		if err := core.CheckMember(tt.name); (err == nil) != tt.member {
			t.Errorf("member %q: %v, want good: %v", tt.name, err, tt.member)
		} else if err != nil {
			wantRefused(t, err, core.CodeInvalidRequest, "member")
		}
	}
}

// wantRefused checks the code of err, that its text is as every error text of
// ours, and that it names the parameter.
func wantRefused(t *testing.T, err error, code core.Code, parameter string) {
	t.Helper()
	if got := core.CodeOf(err); got != code {
		t.Errorf("%v has code %q, want %q", err, got, code)
		return
	}
	e := err.(*core.Error)
	if !strings.HasPrefix(e.Detail, "cannot ") {
		t.Errorf("the text %q does not begin with \"cannot\"", e.Detail)
	}
	if parameter == "" {
		return
	}
	for _, f := range e.Fields {
		if f.Name == "parameter" && f.Value == parameter {
			return
		}
	}
	t.Errorf("%q does not name the parameter %q: %v", e.Detail, parameter, e.Fields)
}

var topicDefaults = core.TopicSettings{Partitions: 1, Capacity: core.DefaultCapacity, AckTimeout: core.DefaultAckTimeout}

func TestTopicSettingsFillWhatIsNotGiven(t *testing.T) {
	got, err := core.TopicSpec{}.Settings(topicDefaults)
	if err != nil || got != topicDefaults {
		t.Errorf("nothing given: %+v, %v, want the defaults %+v", got, err, topicDefaults)
	}
	all := core.TopicSpec{
		Partitions: core.Some(core.MaxPartitions), Capacity: core.Some(core.MaxCapacity),
		MaxBytes: core.Some(int64(1)), AckTimeout: core.Some(core.MaxDuration),
	}
	want := core.TopicSettings{Partitions: core.MaxPartitions, Capacity: core.MaxCapacity, MaxBytes: 1, AckTimeout: core.MaxDuration}
	if got, err = all.Settings(topicDefaults); err != nil || got != want {
		t.Errorf("all given: %+v, %v, want %+v", got, err, want)
	}
}

func TestTopicSettingsOutOfBoundsAreRefusedByName(t *testing.T) {
	tests := []struct {
		parameter string
		spec      core.TopicSpec
	}{
		{"partitions", core.TopicSpec{Partitions: core.Some(0)}},
		{"partitions", core.TopicSpec{Partitions: core.Some(-1)}},
		{"partitions", core.TopicSpec{Partitions: core.Some(core.MaxPartitions + 1)}},
		{"capacity", core.TopicSpec{Capacity: core.Some(0)}},
		{"capacity", core.TopicSpec{Capacity: core.Some(core.MaxCapacity + 1)}},
		{"max-bytes", core.TopicSpec{MaxBytes: core.Some(int64(-1))}},
		{"ack-timeout", core.TopicSpec{AckTimeout: core.Some(time.Duration(0))}},
		{"ack-timeout", core.TopicSpec{AckTimeout: core.Some(-time.Second)}},
		{"ack-timeout", core.TopicSpec{AckTimeout: core.Some(core.MaxDuration + 1)}},
	}
	for _, tt := range tests {
		if _, err := tt.spec.Settings(topicDefaults); err == nil {
			t.Errorf("%s: %+v is taken", tt.parameter, tt.spec)
		} else {
			wantRefused(t, err, core.CodeInvalidRequest, tt.parameter)
		}
	}
}

func TestTopicSpecDiffersOnlyWhereSomethingWasGiven(t *testing.T) {
	have := core.TopicSettings{Partitions: 2, Capacity: 3, MaxBytes: 4, AckTimeout: time.Second}
	same := core.TopicSpec{Partitions: core.Some(2), Capacity: core.Some(3), MaxBytes: core.Some(int64(4)), AckTimeout: core.Some(time.Second)}
	for _, spec := range []core.TopicSpec{{}, same, {Capacity: core.Some(3)}} {
		if what := spec.Differs(have); what != "" {
			t.Errorf("%+v differs from %+v in %s", spec, have, what)
		}
	}
	for want, spec := range map[string]core.TopicSpec{
		"partitions":  {Partitions: core.Some(3)},
		"capacity":    {Capacity: core.Some(4)},
		"max-bytes":   {MaxBytes: core.Some(int64(0))},
		"ack-timeout": {AckTimeout: core.Some(time.Minute)},
	} {
		if what := spec.Differs(have); what != want {
			t.Errorf("%+v differs in %q, want %q", spec, what, want)
		}
	}
}
