package memory

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/podmq/podmq/pkg/core"
)

// Options are what a Broker is made with.
type Options struct {
	// Topic is what a topic gets that does not say. Zero values mean one
	// partition, core.DefaultCapacity and core.DefaultAckTimeout.
	Topic core.TopicSettings
	// MaxBytes is what all topics together may hold; 0 means 64 MiB.
	MaxBytes int64
	// Logger gets one line for each event that an operator may want to know of;
	// nil discards them.
	Logger *slog.Logger
}

// A Broker is the engine: a registry of topics, and what they share.
//
// Locks: Broker.mu → topic.mu. The registry is read without a lock.
type Broker struct {
	*shared
	defaults core.TopicSettings

	mu         sync.Mutex // guards making and removing topics
	partitions int        // of all topics
	closed     bool
}

// shared is what a topic uses of the engine.
type shared struct {
	clock        clock
	epoch        uint64
	budget       budget
	upkeep       upkeep
	topics       atomic.Pointer[map[string]*topic] // replaced under Broker.mu, never changed
	deliveries   atomic.Uint64                     // numbers of deliveries, never used twice
	incarnations atomic.Uint64                     // of topics and groups, likewise
	draining     atomic.Bool
	log          *slog.Logger

	// The pools are the engine's own, not the package's: what they hold has
	// channels and timers, which must not leave a synctest bubble.
	pollers    sync.Pool
	publishers sync.Pool
}

var _ core.Engine = (*Broker)(nil)

// New makes a Broker without topics.
func New(o Options) *Broker {
	var epoch [8]byte
	rand.Read(epoch[:])
	b := &Broker{
		shared: &shared{
			epoch:  binary.BigEndian.Uint64(epoch[:]),
			budget: budget{limit: o.MaxBytes},
			log:    o.Logger,
		},
		defaults: o.Topic,
	}
	if b.budget.limit <= 0 {
		b.budget.limit = 64 << 20
	}
	b.upkeep.limit = upkeepOf(b.budget.limit)
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	b.defaults.Partitions = max(1, b.defaults.Partitions)
	if b.defaults.Capacity == 0 {
		b.defaults.Capacity = core.DefaultCapacity
	}
	if b.defaults.AckTimeout == 0 {
		b.defaults.AckTimeout = core.DefaultAckTimeout
	}
	b.pollers.New = func() any { return newPoller() }
	b.publishers.New = func() any { return newPublisher() }
	b.clock.start()
	b.topics.Store(&map[string]*topic{})
	return b
}

// Epoch names this run of the broker.
func (b *Broker) Epoch() string {
	return hex.EncodeToString(binary.BigEndian.AppendUint64(nil, b.epoch))
}

// find returns a topic by its name, of which it keeps nothing.
func (s *shared) find(name string) (*topic, error) {
	if t := (*s.topics.Load())[name]; t != nil {
		return t, nil
	}
	return nil, unknownTopic(name)
}

// CreateTopic implements core.Engine.
func (b *Broker) CreateTopic(_ context.Context, name string, spec core.TopicSpec) (created bool, err error) {
	if err := core.CheckName("topic", name); err != nil {
		return false, err
	}
	settings, err := spec.Settings(b.defaults)
	if err != nil {
		return false, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	topics := *b.topics.Load()
	if t := topics[name]; t != nil {
		return false, t.same(spec)
	}
	if err := b.admit(name, settings, len(topics)); err != nil {
		return false, err
	}
	name = strings.Clone(name)
	topics = maps.Clone(topics)
	topics[name] = newTopic(name, settings, b.shared)
	b.partitions += settings.Partitions
	b.topics.Store(&topics)
	return true, nil
}

// admit checks the bounds of all topics together, and reserves.
func (b *Broker) admit(name string, s core.TopicSettings, topics int) error {
	switch {
	case b.closed:
		return core.Errorf(core.CodeDraining, "cannot create topic %s: the broker is shutting down", name)
	case topics >= core.MaxTopics:
		return core.Invalid("topic", "cannot create topic %s: there are %d topics, which is the most; delete one first", name, topics)
	case b.partitions+s.Partitions > core.MaxPartitionsInAll:
		return core.Invalid("partitions", "cannot create topic %s with %d partitions: there are %d in all, and the most is %d", name, s.Partitions, b.partitions, core.MaxPartitionsInAll)
	case s.MaxBytes > b.budget.limit:
		return core.Invalid("max-bytes", "cannot reserve %d bytes for topic %s: the memory budget is %d; raise PODMQ_MAX_BYTES or reserve less", s.MaxBytes, name, b.budget.limit)
	case !b.upkeep.take(topicCost(s.Partitions)):
		return b.noUpkeep("topic " + name)
	case !b.budget.reserve(s.MaxBytes):
		b.upkeep.give(topicCost(s.Partitions))
		return core.Errorf(core.CodeMemoryFull, "cannot reserve %d bytes for topic %s: of the memory budget of %d, %d are reserved and %d are held by topics without a reservation",
			s.MaxBytes, name, b.budget.limit, b.budget.reserved.Load(), b.budget.used.Load()).With("topic", name)
	}
	return nil
}

// noUpkeep refuses to create what would take too much memory for itself.
func (s *shared) noUpkeep(what string) error {
	return core.Errorf(core.CodeMemoryFull, "cannot create %s: the topics, partitions and groups that exist take %d bytes for themselves, of at most %d; "+
		"delete what nobody uses, let groups expire, or raise PODMQ_MAX_BYTES", what, s.upkeep.used.Load(), s.upkeep.limit)
}

// DeleteTopic implements core.Engine.
func (b *Broker) DeleteTopic(_ context.Context, name string) error {
	b.mu.Lock()
	topics := *b.topics.Load()
	t := topics[name]
	if t == nil {
		b.mu.Unlock()
		return unknownTopic(name)
	}
	topics = maps.Clone(topics)
	delete(topics, name)
	b.topics.Store(&topics)
	b.partitions -= t.settings.Partitions
	t.close(unknownTopic(t.name))
	b.budget.reserved.Add(-t.settings.MaxBytes)
	b.mu.Unlock()
	b.retryForMemory(nil)
	return nil
}

// retryForMemory lets publishers try again that wait for shared memory, in all
// topics but one. It is called without a lock.
func (s *shared) retryForMemory(but *topic) {
	if s.budget.waiting.Load() == 0 {
		return
	}
	for _, t := range *s.topics.Load() {
		if t == but || t.waitingForMemory.Load() == 0 {
			continue
		}
		if t.enter() == nil {
			t.retryBytes = true
			t.leave()
		}
	}
}

// Drain implements core.Engine.
func (b *Broker) Drain() {
	b.draining.Store(true)
	for _, t := range *b.topics.Load() {
		if t.enter() == nil {
			t.endWaits(draining())
			t.leave()
		}
	}
}

// Close implements core.Engine.
func (b *Broker) Close() error {
	b.Drain()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for _, t := range *b.topics.Load() {
		t.close(draining())
	}
	return nil
}

// Topic implements core.Engine.
func (b *Broker) Topic(_ context.Context, name string) (core.TopicStats, error) {
	t, err := b.find(name)
	if err != nil {
		return core.TopicStats{}, err
	}
	if err := t.enter(); err != nil {
		return core.TopicStats{}, err
	}
	defer t.leave()
	return t.stats(), nil
}

// Stats implements core.Engine.
func (b *Broker) Stats() core.Stats {
	s := core.Stats{MemoryLimit: b.budget.limit}
	topics := *b.topics.Load()
	for _, name := range slices.Sorted(maps.Keys(topics)) {
		t := topics[name]
		if t.enter() != nil {
			continue
		}
		s.Topics = append(s.Topics, t.stats())
		s.LeasesOut += t.leases
		s.MemoryBytes += t.held.Load()
		t.leave()
	}
	return s
}
