package options

import (
	"strconv"
	"time"

	"github.com/podmq/podmq/pkg/core"
	"github.com/podmq/podmq/pkg/transport/units"
)

// SetTopic sets the option name of a topic, and reports whether there is one of
// that name. The error is a CodeInvalidRequest that names the option.
func SetTopic(spec *core.TopicSpec, name, value string) (known bool, err error) {
	switch name {
	case "partitions":
		return true, setInt(&spec.Partitions, name, value)
	case "capacity":
		return true, setInt(&spec.Capacity, name, value)
	case "max-bytes":
		return true, set(&spec.MaxBytes, name, value, units.ParseSize)
	case "ack-timeout":
		return true, set(&spec.AckTimeout, name, value, units.ParseDuration)
	}
	return false, nil
}

// TopicNames are the options that SetTopic knows, for those who got one wrong.
const TopicNames = "partitions, capacity, max-bytes, ack-timeout"

// SetGroup does for a group what SetTopic does for a topic.
func SetGroup(spec *core.GroupSpec, name, value string) (known bool, err error) {
	switch name {
	case "type":
		spec.Type = core.Some(core.GroupType(value))
	case "start":
		spec.Start = core.Some(core.Start(value))
	case "strategy":
		spec.Strategy = core.Some(core.Strategy(value))
	case "session-timeout":
		return true, setDuration(&spec.SessionTimeout, name, value)
	case "max-lease":
		return true, setDuration(&spec.MaxLease, name, value)
	case "expires":
		return true, setDuration(&spec.Expires, name, value)
	default:
		return false, nil
	}
	return true, nil
}

// GroupNames are the options that SetGroup knows.
const GroupNames = "type, start, strategy, session-timeout, max-lease, expires"

func setInt(to *core.Opt[int], name, value string) error {
	n, err := strconv.Atoi(value)
	if err != nil {
		return core.Invalid(name, "cannot use %s=%.40q: it is a whole number", name, value)
	}
	*to = core.Some(n)
	return nil
}

func setDuration(to *core.Opt[time.Duration], name, value string) error {
	return set(to, name, value, units.ParseDuration)
}

func set[T comparable](to *core.Opt[T], name, value string, parse func(string) (T, error)) error {
	v, err := parse(value)
	if err != nil {
		return core.Invalid(name, "%v (%s)", err, name)
	}
	*to = core.Some(v)
	return nil
}
