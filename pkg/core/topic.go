package core

import (
	"encoding/binary"
	"time"
)

// Opt is a setting that may be left out: what a caller gives is compared with
// what exists, what it leaves out is not.
type Opt[T comparable] struct {
	Value T
	Given bool
}

// Some is a setting that was given.
func Some[T comparable](v T) Opt[T] { return Opt[T]{v, true} }

// Or returns the value, or def when it was not given.
func (o Opt[T]) Or(def T) T {
	if o.Given {
		return o.Value
	}
	return def
}

func (o Opt[T]) differs(from T) bool { return o.Given && o.Value != from }

// TopicSettings is what a topic is like.
type TopicSettings struct {
	Partitions int
	Capacity   int           // messages a partition
	MaxBytes   int64         // reserved for the topic, which can use no more; 0: shares the rest
	AckTimeout time.Duration // how long a lease lasts
}

// TopicSpec is what a caller asks a topic to be like.
type TopicSpec struct {
	Partitions Opt[int]
	Capacity   Opt[int]
	MaxBytes   Opt[int64]
	AckTimeout Opt[time.Duration]
}

// Settings fills what s leaves out from def and checks the bounds.
func (s TopicSpec) Settings(def TopicSettings) (TopicSettings, error) {
	t := TopicSettings{
		Partitions: s.Partitions.Or(def.Partitions),
		Capacity:   s.Capacity.Or(def.Capacity),
		MaxBytes:   s.MaxBytes.Or(def.MaxBytes),
		AckTimeout: s.AckTimeout.Or(def.AckTimeout),
	}
	switch {
	case t.Partitions < 1 || t.Partitions > MaxPartitions:
		return t, Invalid("partitions", "cannot make %d partitions: a topic has 1 to %d", t.Partitions, MaxPartitions)
	case t.Capacity < 1 || t.Capacity > MaxCapacity:
		return t, Invalid("capacity", "cannot hold %d messages a partition: capacity is 1 to %d", t.Capacity, MaxCapacity)
	case t.MaxBytes < 0:
		return t, Invalid("max-bytes", "cannot reserve %d bytes: max-bytes is 0 (no reservation) or more", t.MaxBytes)
	}
	return t, checkDuration("ack-timeout", t.AckTimeout)
}

// Differs names the first setting that was given and is not t's, "" if there is
// none.
func (s TopicSpec) Differs(t TopicSettings) string {
	switch {
	case s.Partitions.differs(t.Partitions):
		return "partitions"
	case s.Capacity.differs(t.Capacity):
		return "capacity"
	case s.MaxBytes.differs(t.MaxBytes):
		return "max-bytes"
	case s.AckTimeout.differs(t.AckTimeout):
		return "ack-timeout"
	}
	return ""
}

// Invalid is a CodeInvalidRequest that names the parameter.
func Invalid(parameter, format string, args ...any) *Error {
	return Errorf(CodeInvalidRequest, format, args...).With("parameter", parameter)
}

func checkDuration(name string, d time.Duration) error {
	if d < MinDuration || d > MaxDuration {
		return Invalid(name, "cannot use %s=%v: it is %v to %v", name, d, MinDuration, MaxDuration)
	}
	return nil
}

// CheckName checks the name of a topic or group; what is the word for it in the
// error.
func CheckName(what, name string) error {
	if !validName(name, false) {
		return Invalid(what, "cannot use %.220q as the name of a %s: it has 1 to %d letters, digits, dots, dashes and underscores, and starts with a letter or digit", name, what, MaxNameLen)
	}
	return nil
}

// CheckMember checks the name of a member, which may also hold ':' and '@'.
func CheckMember(name string) error {
	if !validName(name, true) {
		return Invalid("member", "cannot use %.220q as the name of a member: it has 1 to %d letters, digits, dots, dashes, underscores, colons and @, and starts with a letter or digit", name, MaxNameLen)
	}
	return nil
}

func validName(name string, member bool) bool {
	if name == "" || len(name) > MaxNameLen {
		return false
	}
	for i := 0; i < len(name); i++ {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case i > 0 && (c == '.' || c == '_' || c == '-'):
		case i > 0 && member && (c == ':' || c == '@'):
		default:
			return false
		}
	}
	return true
}

// PartitionFor returns the partition of a key among n: Kafka's default
// partitioner (murmur2 with seed 0x9747b28c, the sign bit cleared, mod n), so
// that a key has the same partition here and in a Kafka topic of n partitions.
func PartitionFor(key []byte, n int) int {
	return int(murmur2(key)&0x7fffffff) % n
}

// murmur2 is Austin Appleby's MurmurHash2 as Kafka computes it (public domain).
func murmur2(b []byte) uint32 {
	const m, r = 0x5bd1e995, 24
	h := uint32(0x9747b28c) ^ uint32(len(b))
	for ; len(b) >= 4; b = b[4:] {
		k := binary.LittleEndian.Uint32(b) * m
		k ^= k >> r
		h = h*m ^ k*m
	}
	switch len(b) {
	case 3:
		h ^= uint32(b[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(b[1]) << 8
		fallthrough
	case 1:
		h = (h ^ uint32(b[0])) * m
	}
	h = (h ^ h>>13) * m
	return h ^ h>>15
}
