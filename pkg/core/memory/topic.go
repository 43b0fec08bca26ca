package memory

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/podmq/podmq/pkg/core"
	"github.com/podmq/podmq/pkg/core/stream"
)

// A topic owns its partitions, groups and all who wait on them, under one lock:
// every method but newTopic, enter and close needs mu, which enter takes and
// leave gives back.
type topic struct {
	name        string
	incarnation uint64
	settings    core.TopicSettings
	*shared

	mu         sync.Mutex
	now        stream.Instant // of this entry; never goes back
	ended      *core.Error    // the topic is deleted, and this is what callers get
	partitions []*partition
	chunks     stream.Chunks
	groups     map[string]*group
	inOrder    []*group // of creation

	alarms  alarms
	timer   *time.Timer    // rings for the first of alarms
	timerAt stream.Instant // when

	ready      []*track     // cursors with something new for a parked poll
	roomy      []*partition // partitions with new room for a waiting publisher
	retryBytes bool         // bytes were freed that a publisher may wait for
	gaveBytes  bool         // of these some were shared with other topics
	notes      []note       // log lines to write after the lock

	parked      int              // polls, in all groups
	leases      int              // out, in all groups
	publishing  line[*publisher] // all who wait for room
	arrivals    uint64           // of those who had to wait
	floating    line[*publisher] // of these, those who do not want one partition alone
	nextUnkeyed int              // partition to try first for a message without a key
	scratch     scratch
	count       counts

	held             atomic.Int64 // bytes; written under mu
	waitingForMemory atomic.Int64 // publishers; written under mu
}

// A partition is the pure one and who waits for room in it.
type partition struct {
	*stream.Partition
	index   int
	waiting line[*publisher] // of those who want this partition alone
	planned int              // messages that the publish being tried puts here
	roomy   bool             // it is in topic.roomy
}

// A note is a line for the log.
type note struct {
	level          slog.Level
	message, group string
}

// scratch is memory that calls use while they hold the lock.
type scratch struct {
	want    stream.Want
	runs    []stream.Run
	parts   []stream.Part
	changes []stream.Change
	moved   []int
	touched []*partition
	places  []core.CursorPlace
}

// counts are a topic's counters.
type counts struct {
	published, publishedBytes, withoutGroup uint64
	rejected                                map[core.Code]uint64
	publishWait                             core.Histogram
	warned                                  bool // that nobody listens
}

func newTopic(name string, settings core.TopicSettings, s *shared) *topic {
	t := &topic{
		name:        name,
		incarnation: s.incarnations.Add(1),
		settings:    settings,
		shared:      s,
		partitions:  make([]*partition, settings.Partitions),
		groups:      map[string]*group{},
		timerAt:     stream.Never,
		count:       counts{rejected: map[core.Code]uint64{}},
	}
	for i := range t.partitions {
		t.partitions[i] = &partition{Partition: stream.NewPartition(settings.Capacity, &t.chunks), index: i}
	}
	t.timer = time.AfterFunc(time.Hour, t.onTimer)
	t.timer.Stop()
	return t
}

// same reports with an error whether the topic is not as spec says.
func (t *topic) same(spec core.TopicSpec) error {
	if differs := spec.Differs(t.settings); differs != "" {
		return core.Errorf(core.CodeTopicExists, "cannot create topic %s: it exists with another value of %s; use it as it is, or delete it first", t.name, differs).
			With("topic", t.name).With("parameter", differs)
	}
	return nil
}

// enter takes the lock and lets time do what it has to do. It fails, without
// the lock, when the topic has ended.
func (t *topic) enter() error {
	now := t.clock.now()
	t.mu.Lock()
	if t.ended != nil {
		t.mu.Unlock()
		return t.ended
	}
	t.now = max(t.now, now)
	if t.alarms.next() <= t.now {
		t.tick()
	}
	return nil
}

// leave hands what became available to those who wait for it, and gives the
// lock back.
func (t *topic) leave() {
	if broken := recover(); broken != nil {
		t.mu.Unlock()
		panic(broken)
	}
	gave, notes := t.finish()
	for _, n := range notes {
		t.log.Log(context.Background(), n.level, n.message, "topic", t.name, "group", n.group)
	}
	if gave {
		t.retryForMemory(t)
	}
}

// finish is the part of leave that needs the lock.
func (t *topic) finish() (gave bool, notes []note) {
	defer t.mu.Unlock()
	t.handOff()
	if next := t.alarms.next(); next < t.timerAt && t.ended == nil {
		t.timerAt = next
		t.timer.Reset(next.Sub(t.now))
	}
	gave, notes = t.gaveBytes, t.notes
	t.gaveBytes, t.notes = false, nil
	return gave, notes
}

func (t *topic) onTimer() {
	if t.enter() == nil {
		t.timerAt = stream.Never
		t.leave()
	}
}

// tick rings every alarm that is due.
func (t *topic) tick() {
	defer func() {
		if broken := recover(); broken != nil {
			t.mu.Unlock() // nobody will come to leave
			panic(broken)
		}
	}()
	for t.alarms.next() <= t.now {
		a := t.alarms[0]
		t.alarms.remove(a)
		a.target.ring()
	}
}

// handOff serves those who wait, until nothing is left that one of them may
// have.
func (t *topic) handOff() {
	for len(t.ready) > 0 || len(t.roomy) > 0 || t.retryBytes {
		for i := 0; i < len(t.ready); i++ {
			t.ready[i].marked = false
			t.dispatch(t.ready[i])
		}
		t.ready = t.ready[:0]
		if t.retryBytes {
			t.retryBytes = false
			for _, p := range t.partitions {
				t.markRoomy(p)
			}
		}
		for i := 0; i < len(t.roomy); i++ {
			t.roomy[i].roomy = false
			t.admitWaiting(t.roomy[i])
		}
		t.roomy = t.roomy[:0]
	}
}

// markReady notes that a parked poll may find something at tr.
func (t *topic) markReady(tr *track) {
	if tr.group.parked > 0 && !tr.marked {
		tr.marked = true
		t.ready = append(t.ready, tr)
	}
}

// markRoomy notes that a waiting publisher may find room in p.
func (t *topic) markRoomy(p *partition) {
	if t.publishing.n > 0 && !p.roomy {
		p.roomy = true
		t.roomy = append(t.roomy, p)
	}
}

// release gives back what messages cost that are gone from p.
func (t *topic) release(p *partition, cost int64) {
	if cost == 0 {
		return
	}
	t.held.Add(-cost)
	if t.settings.MaxBytes == 0 {
		t.budget.give(cost)
		t.gaveBytes = true
	}
	t.retryBytes = t.retryBytes || t.waitingForMemory.Load() > 0
	t.markRoomy(p)
}

// close ends the topic: all who wait, and all who come, get err.
func (t *topic) close(err *core.Error) {
	if t.enter() != nil {
		return
	}
	defer t.leave()
	t.endWaits(err)
	t.ended = err
	t.timer.Stop()
	t.alarms = nil
	for _, p := range t.partitions {
		t.release(p, p.Log().Bytes())
	}
	t.upkeep.give(topicCost(len(t.partitions)) + int64(len(t.groups))*groupCost(len(t.partitions)))
	t.partitions, t.inOrder, t.groups, t.ready, t.roomy = nil, nil, map[string]*group{}, nil, nil
	t.retryBytes = false
}

// endWaits ends every parked poll and waiting publisher with err.
func (t *topic) endWaits(err error) {
	for t.publishing.n > 0 {
		t.finishPublish(t.publishing.first.who, err)
	}
	for _, g := range t.inOrder {
		g.endPolls(err)
	}
}

// CreateGroup implements core.Engine.
func (b *Broker) CreateGroup(_ context.Context, topic, name string, spec core.GroupSpec) (created bool, err error) {
	if err := core.CheckName("group", name); err != nil {
		return false, err
	}
	settings, err := spec.Settings()
	if err != nil {
		return false, err
	}
	t, err := b.find(topic)
	if err != nil {
		return false, err
	}
	if err := t.enter(); err != nil {
		return false, err
	}
	defer t.leave()
	if g := t.groups[name]; g != nil {
		if differs := spec.Differs(g.settings); differs != "" {
			return false, core.Errorf(core.CodeGroupExists, "cannot create group %s of topic %s: it exists with another value of %s; use it as it is, or delete it first", name, t.name, differs).
				With("topic", t.name).With("group", g.name).With("parameter", differs)
		}
		return false, nil
	}
	if len(t.groups) >= core.MaxGroups {
		return false, core.Invalid("group", "cannot create group %s of topic %s: it has %d groups, which is the most; delete one first", name, t.name, len(t.groups))
	}
	if !t.upkeep.take(groupCost(len(t.partitions))) {
		return false, t.noUpkeep(fmt.Sprintf("group %s of topic %s", name, t.name))
	}
	g := newGroup(t, strings.Clone(name), settings, spec.Start.Or(core.Latest))
	t.groups[g.name] = g
	t.inOrder = append(t.inOrder, g)
	return true, nil
}

// DeleteGroup implements core.Engine.
func (b *Broker) DeleteGroup(_ context.Context, topic, name string) error {
	g, err := b.enterGroup(topic, name)
	if err != nil {
		return err
	}
	defer g.topic.leave()
	g.remove()
	return nil
}

// enterGroup enters a topic on behalf of one of its groups; leave it with
// group.leave.
func (b *Broker) enterGroup(topic, name string) (*group, error) {
	t, err := b.find(topic)
	if err != nil {
		return nil, err
	}
	if err := t.enter(); err != nil {
		return nil, err
	}
	g := t.groups[name]
	if g == nil {
		t.leave()
		return nil, unknownGroup(t.name, name)
	}
	return g, nil
}
