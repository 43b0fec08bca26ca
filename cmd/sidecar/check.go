package main

import (
	"fmt"

	"github.com/podmq/podmq/pkg/core"
	"github.com/podmq/podmq/pkg/transport/units"
)

// check finds the faults that lie between settings, and in what a topic gets
// that does not say.
func (c *config) check() (faults []error) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	def := c.topicSettings()
	for _, s := range []struct {
		variable string
		spec     core.TopicSpec
	}{
		{"PODMQ_PARTITIONS", core.TopicSpec{Partitions: core.Some(def.Partitions)}},
		{"PODMQ_CAPACITY", core.TopicSpec{Capacity: core.Some(def.Capacity)}},
		{"PODMQ_ACK_TIMEOUT", core.TopicSpec{AckTimeout: core.Some(def.AckTimeout)}},
	} {
		if _, err := s.spec.Settings(sane); err != nil {
			fault("%s: %s", s.variable, detail(err))
		}
	}
	if most := size(core.MaxBatchBytes); c.MaxMessageBytes > most {
		fault("PODMQ_MAX_MESSAGE_BYTES: cannot take messages of %v: the most is %v", c.MaxMessageBytes, most)
	} else if least := c.MaxMessageBytes + core.MessageOverhead; c.MaxBytes < least {
		fault("PODMQ_MAX_BYTES: cannot hold a single message of PODMQ_MAX_MESSAGE_BYTES=%v in %v: it takes %v", c.MaxMessageBytes, c.MaxBytes, least)
	}
	return append(faults, c.checkDeclared(def)...)
}

// checkDeclared finds the faults that lie between declared topics and groups.
func (c *config) checkDeclared(def core.TopicSettings) (faults []error) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	topics := c.Topics.names()
	partitions, reserved := 0, int64(0)
	for _, t := range c.Topics.topics {
		partitions += t.spec.Partitions.Or(def.Partitions)
		reserved += t.spec.MaxBytes.Or(0)
	}
	if n := len(c.Topics.topics); n > core.MaxTopics {
		fault("PODMQ_TOPICS: cannot create %d topics: the most is %d", n, core.MaxTopics)
	}
	if partitions > core.MaxPartitionsInAll {
		fault("PODMQ_TOPICS: cannot create %d partitions in all: the most is %d", partitions, core.MaxPartitionsInAll)
	}
	if reserved > int64(c.MaxBytes) {
		fault("PODMQ_TOPICS: cannot reserve %s with max-bytes: PODMQ_MAX_BYTES is %v", units.FormatSize(reserved), c.MaxBytes)
	}
	for _, g := range c.Groups.groups {
		if !topics[g.topic] {
			fault("PODMQ_GROUPS: cannot create group %s/%s: topic %s is not in PODMQ_TOPICS", g.topic, g.name, g.topic)
		}
	}
	for _, d := range c.declarations() {
		if n := len(d.groups); n > core.MaxGroups {
			fault("PODMQ_TOPICS: cannot create %d groups of topic %s: the most is %d", n, d.topic, core.MaxGroups)
		}
	}
	return faults
}

// A declaration is a topic to create, with all of its groups.
type declaration struct {
	topic  string
	spec   core.TopicSpec
	groups []declaredGroup
}

// declarations joins the two lists: a group may be named in PODMQ_TOPICS and
// get its settings in PODMQ_GROUPS.
func (c *config) declarations() []declaration {
	var all []declaration
	for _, t := range c.Topics.topics {
		d := declaration{topic: t.name, spec: t.spec}
		named := map[string]bool{}
		for _, g := range c.Groups.groups {
			if g.topic == t.name {
				named[g.name] = true
				d.groups = append(d.groups, g)
			}
		}
		for _, name := range t.groups {
			if !named[name] {
				d.groups = append(d.groups, declaredGroup{topic: t.name, name: name})
			}
		}
		all = append(all, d)
	}
	return all
}
