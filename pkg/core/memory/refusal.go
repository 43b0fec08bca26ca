package memory

import (
	"errors"
	"log/slog"

	"github.com/podmq/podmq/pkg/core"
)

// refuse counts a publish that found no room, and says why in words.
func (t *topic) refuse(w *publisher, why refusal) *core.Error {
	t.count.rejected[why.code]++
	var e *core.Error
	switch why.code {
	case core.CodeTopicFull:
		e = core.Errorf(why.code, "cannot publish %d bytes to topic %s: it holds %d of the %d bytes that are reserved for it", w.cost, t.name, t.held.Load(), t.settings.MaxBytes).
			With("topic", t.name).With("bytes", t.held.Load()).With("max_bytes", t.settings.MaxBytes)
	case core.CodeMemoryFull:
		e = core.Errorf(why.code, "cannot publish %d bytes to topic %s: topics without a reservation hold %d of the %d bytes that they share", w.cost, t.name, t.budget.used.Load(), t.budget.shared()).
			With("topic", t.name).With("bytes", t.budget.used.Load()).With("max_bytes", t.budget.shared())
	default:
		p := t.partitions[why.partition]
		e = core.Errorf(why.code, "cannot publish to topic %s: partition %d holds %d of %d messages", t.name, why.partition, p.Backlog(), t.settings.Capacity)
		if p.Room() >= len(w.req.Messages) && p.waiting.n > 0 {
			e.Detail += ", and other publishers wait for it"
		}
		e.With("topic", t.name).With("partition", why.partition).With("backlog", p.Backlog()).With("capacity", t.settings.Capacity)
	}
	e.RetryAfter = retryAfter
	if slowest := t.slowest(why.partition); slowest != "" && why.code != core.CodeMemoryFull {
		e.Detail += "; group " + slowest + " is the slowest"
		e.With("slowest_group", slowest)
	}
	e.Detail += "; try again, or give the publish a wait"
	return e
}

// slowest names the group that holds most of a partition back, "" without
// groups.
func (t *topic) slowest(partition int) (name string) {
	var least int64
	for _, g := range t.inOrder {
		if at := g.tracks[partition].cursor.Committed(); name == "" || at < least {
			name, least = g.name, at
		}
	}
	return name
}

// nameHolder adds to a refusal for want of shared memory who holds most of it.
// It looks at other topics, and so is called without a lock.
func (t *topic) nameHolder(err error) error {
	var e *core.Error
	if !errors.As(err, &e) {
		return err
	}
	var most *topic
	for _, other := range *t.topics.Load() {
		if other.settings.MaxBytes == 0 && (most == nil || other.held.Load() > most.held.Load()) {
			most = other
		}
	}
	if most == nil || most.enter() != nil {
		return e
	}
	defer most.leave()
	fullest := most.partitions[0]
	for _, p := range most.partitions {
		if p.Log().Bytes() > fullest.Log().Bytes() {
			fullest = p
		}
	}
	e.Detail += "; topic " + most.name + " holds most"
	e.With("holder_topic", most.name)
	if g := most.slowest(fullest.index); g != "" {
		e.Detail += ", and its group " + g + " is the slowest there"
		e.With("slowest_group", g)
	}
	return e
}

// unheard counts messages that nobody will ever see, and says so once.
func (t *topic) unheard(n int) {
	t.count.withoutGroup += uint64(n)
	if !t.count.warned {
		t.count.warned = true
		t.notes = append(t.notes, note{slog.LevelWarn, "topic without a group is published to; its messages are dropped", ""})
	}
}
