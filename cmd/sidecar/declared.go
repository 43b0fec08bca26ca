package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/podmq/podmq/pkg/core"
	"github.com/podmq/podmq/pkg/transport/options"
)

// declaredTopic is one entry of PODMQ_TOPICS.
type declaredTopic struct {
	name   string
	spec   core.TopicSpec
	groups []string
}

// declaredGroup is one entry of PODMQ_GROUPS.
type declaredGroup struct {
	topic, name string
	spec        core.GroupSpec
}

// topicList is PODMQ_TOPICS: entries of the form name?option=value&…, separated
// by semicolons or new lines.
type topicList struct {
	text   string
	topics []declaredTopic
}

// Decode implements envconfig.Decoder. The error joins all faults of all entries.
func (l *topicList) Decode(text string) error {
	seen := map[string]bool{}
	return eachEntry(text, &l.text, func(name string, opts []option) error {
		t := declaredTopic{name: name}
		if err := core.CheckName("topic", name); err != nil {
			return err
		}
		if seen[name] {
			return fmt.Errorf("cannot declare topic %s twice", name)
		}
		seen[name] = true
		var faults []error
		for _, o := range opts {
			var err error
			if o.name == "groups" {
				t.groups, err = groupNames(o.value)
			} else {
				err = setTopic(&t.spec, o)
			}
			faults = append(faults, err)
		}
		l.topics = append(l.topics, t)
		return errors.Join(faults...)
	})
}

// setTopic sets one option, if that is good by itself.
func setTopic(spec *core.TopicSpec, o option) error {
	var alone core.TopicSpec
	known, err := options.SetTopic(&alone, o.name, o.value)
	if err == nil && !known {
		err = fmt.Errorf("cannot use option %.40q: those of a topic are %s, groups", o.name, options.TopicNames)
	}
	if err == nil {
		_, err = alone.Settings(sane)
	}
	if err == nil {
		_, err = options.SetTopic(spec, o.name, o.value)
	}
	return err
}

// names are those of all entries, of bad ones as well.
func (l topicList) names() map[string]bool {
	names := map[string]bool{}
	for entry := range strings.SplitSeq(l.text, "; ") {
		name, _, _ := strings.Cut(entry, "?")
		names[name] = true
	}
	return names
}

func (l topicList) String() string { return l.text }

// sane stands for what an entry leaves out, so that the entry can be judged by
// what it says alone.
var sane = core.TopicSettings{Partitions: 1, Capacity: core.DefaultCapacity, AckTimeout: core.DefaultAckTimeout}

func groupNames(value string) ([]string, error) {
	names := strings.Split(value, ",")
	seen := map[string]bool{}
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
		if err := core.CheckName("group", names[i]); err != nil {
			return nil, err
		}
		if seen[names[i]] {
			return nil, fmt.Errorf("cannot declare group %s twice", names[i])
		}
		seen[names[i]] = true
	}
	return names, nil
}

// groupList is PODMQ_GROUPS: entries of the form topic/group?option=value&….
type groupList struct {
	text   string
	groups []declaredGroup
}

// Decode implements envconfig.Decoder. The error joins all faults of all entries.
func (l *groupList) Decode(text string) error {
	seen := map[string]bool{}
	return eachEntry(text, &l.text, func(name string, opts []option) error {
		topic, group, ok := strings.Cut(name, "/")
		if !ok {
			return fmt.Errorf("cannot read it: an entry is topic/group?option=value&..., and the slash is missing")
		}
		g := declaredGroup{topic: topic, name: group}
		if err := cmp.Or(core.CheckName("topic", topic), core.CheckName("group", group)); err != nil {
			return err
		}
		if seen[name] {
			return fmt.Errorf("cannot declare group %s twice", name)
		}
		seen[name] = true
		var faults []error
		for _, o := range opts {
			faults = append(faults, setGroup(&g.spec, o))
		}
		l.groups = append(l.groups, g)
		return errors.Join(faults...)
	})
}

// setGroup sets one option, if that is good by itself.
func setGroup(spec *core.GroupSpec, o option) error {
	var alone core.GroupSpec
	known, err := options.SetGroup(&alone, o.name, o.value)
	if err == nil && !known {
		err = fmt.Errorf("cannot use option %.40q: those of a group are %s", o.name, options.GroupNames)
	}
	if err == nil {
		_, err = alone.Settings()
	}
	if err == nil {
		_, err = options.SetGroup(spec, o.name, o.value)
	}
	return err
}

func (l groupList) String() string { return l.text }

// An option is one name and value behind the question mark, decoded as in a
// query.
type option struct{ name, value string }

// eachEntry calls read for each entry of a list, joins all that it refuses with the
// entry's number, and sets normal to the list on one line.
func eachEntry(text string, normal *string, read func(name string, opts []option) error) error {
	var faults []error
	var entries []string
	split := func(r rune) bool { return r == ';' || r == '\n' || r == '\r' }
	for _, entry := range strings.FieldsFunc(text, split) {
		entry = strings.TrimSpace(entry)
		if entry == "" {
			continue
		}
		entries = append(entries, entry)
		name, query, asked := strings.Cut(entry, "?")
		opts, err := readOptions(query)
		switch {
		case err != nil:
		case !asked && strings.Contains(name, "="):
			err = errors.New("cannot read it: options follow a question mark, as in orders?partitions=8")
		default:
			err = read(name, opts)
		}
		all, ok := joined(err)
		if !ok && err != nil {
			all = []error{err}
		}
		for _, fault := range all {
			faults = append(faults, fmt.Errorf("entry %d (%.80s): %s", len(entries), entry, detail(fault)))
		}
	}
	*normal = strings.Join(entries, "; ")
	return errors.Join(faults...)
}

func readOptions(query string) ([]option, error) {
	var opts []option
	seen := map[string]bool{}
	for pair := range strings.SplitSeq(query, "&") {
		if pair == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		if !ok {
			return nil, fmt.Errorf("cannot read option %.40q: it is name=value", pair)
		}
		value, err := url.QueryUnescape(value)
		if err != nil {
			return nil, fmt.Errorf("cannot read option %.40q: its percent-encoding is broken", pair)
		}
		if seen[name] {
			return nil, fmt.Errorf("cannot use option %s twice", name)
		}
		seen[name] = true
		opts = append(opts, option{name, value})
	}
	return opts, nil
}
