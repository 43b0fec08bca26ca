package enginetest

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

var seedTests = []test{
	{"The seed's trace, word for word", exactEngine, seedTrace},
	{"The seed's load", exactEngine, seedLoad},
	{"The seed's push", denseOffsets, seedPush},
}

func seedTrace(s *script) {
	s.topicLike(core.TopicSpec{Partitions: core.Some(2), Capacity: core.Some(3), AckTimeout: core.Some(30 * time.Second)})
	billing, email := s.ordered("billing"), s.ordered("email")
	one := ask(core.DefaultMember, 10)
	one.Partition = 1

	// 1
	s.publishKey("user-a", "o-1", core.Placement{Partition: 1, Offset: 0})
	s.publishKey("user-a", "o-2", core.Placement{Partition: 1, Offset: 1})
	s.publishKey("user-a", "o-3", core.Placement{Partition: 1, Offset: 2})
	s.publishKey("user-b", "o-4", core.Placement{Partition: 0, Offset: 0})
	s.state(1, "log 0..2, backlog 3/3, billing committed 0 next 0, email committed 0 next 0")

	// 2
	_, err := s.tryPublishKey("user-a", "o-5")
	s.refused(core.CodePartitionFull, err)
	s.state(1, "log 0..2, backlog 3/3, billing committed 0 next 0, email committed 0 next 0")

	// 3
	two := one
	two.Max = 2
	billing.got(billing.pollLike(two), "1:0=o-1 1:1=o-2")
	billing.ackOffset(core.DefaultMember, 1, 0)
	s.state(1, "log 0..2, backlog 3/3, billing committed 1 next 2, email committed 0 next 0")

	// 4
	email.got(email.pollLike(one), "1:0=o-1 1:1=o-2 1:2=o-3")
	email.ackOffset(core.DefaultMember, 1, 2)
	s.state(1, "log 1..2, backlog 2/3, billing committed 1 next 2, email committed 3 next 3")

	// 5
	s.publishKey("user-a", "o-5", core.Placement{Partition: 1, Offset: 3})
	s.state(1, "log 1..3, backlog 3/3, billing committed 1 next 2, email committed 3 next 3")

	// 6
	s.pass(31 * time.Second)
	s.state(1, "log 1..3, backlog 3/3, billing committed 1 next 1, email committed 3 next 3")
	billing.got(billing.pollLike(one), "1:1=o-2#2 1:2=o-3 1:3=o-5")

	// 7
	billing.ackOffset(core.DefaultMember, 1, 3)
	s.state(1, "log 3..3, backlog 1/3, billing committed 4 next 4, email committed 3 next 3")

	// 8
	_, err = billing.tryAckOffset(core.DefaultMember, 1, 7)
	s.refused(core.CodeNotInFlight, err)
	if text := "offset 7 is not in flight for billing (nothing is)"; !strings.Contains(err.Error(), text) {
		s.Errorf("the refusal is %q, want %q in it", err, text)
	}
	s.state(1, "log 3..3, backlog 1/3, billing committed 4 next 4, email committed 3 next 3")
}

// seedPush is the push of the seed as a loop of polls.
func seedPush(s *script) {
	s.topic(1, 10)
	ledger := s.ordered("ledger")
	s.publish(0, "pay-1", "pay-2")
	var calls []string
	failed := false
	handle := func(d core.Delivery) bool {
		call := fmt.Sprintf("%d:%s", d.Offset, d.Payload())
		calls = append(calls, call)
		if call == "1:pay-2" && !failed {
			failed = true
			return false
		}
		return true
	}
	round := func() {
		b := ledger.pollLike(ask("default", 10))
		for _, d := range b.Deliveries {
			if !handle(d) {
				ledger.nack(b.Receipt)
				return
			}
			_, err := ledger.tryAckUpto(b.Receipt, d.Partition, d.Offset)
			ledger.ok("Ack", err)
		}
	}
	round()
	s.publish(0, "pay-3")
	round()
	if got, want := strings.Join(calls, " "), "0:pay-1 1:pay-2 1:pay-2 2:pay-3"; got != want {
		s.Errorf("the handler saw %q, want %q", got, want)
	}
	s.state(0, "log empty at 3, backlog 0/10, ledger committed 3 next 3")
}

const (
	loadProducers   = 4
	loadPerProducer = 2500
	loadKeys        = 40
	loadCapacity    = 64
)

func seedLoad(s *script) {
	s.topic(4, loadCapacity)
	groups := []*group{s.ordered("billing"), s.ordered("email")}
	pauses := []time.Duration{0, 200 * time.Microsecond}
	for _, g := range groups {
		g.join("c1")
		g.join("c2")
	}
	var all sync.WaitGroup
	var largest atomic.Int64
	for p := range loadProducers {
		all.Go(func() { loadProducer(s, p, &largest) })
	}
	seen := make([]*sightings, len(groups))
	for i, g := range groups {
		seen[i] = &sightings{next: make(map[string]int)}
		for _, member := range []string{"c1", "c2"} {
			all.Go(func() { loadConsumer(g, member, pauses[i], seen[i]) })
		}
	}
	all.Wait()

	for i, g := range groups {
		if got := seen[i].count; got != loadProducers*loadPerProducer {
			s.Errorf("%s got %d messages, want %d", g.name, got, loadProducers*loadPerProducer)
		}
		for key, n := range seen[i].next {
			if want := loadProducers * loadPerProducer / loadKeys; n != want {
				s.Errorf("%s saw %d messages of %s, want %d", g.name, n, key, want)
			}
		}
		if len(seen[i].next) != loadKeys {
			s.Errorf("%s saw %d keys, want %d", g.name, len(seen[i].next), loadKeys)
		}
	}
	if got := largest.Load(); got != loadCapacity {
		s.Errorf("the largest backlog seen is %d, want exactly %d", got, loadCapacity)
	}
	ts := s.stats()
	if ts.PublishWait.Count() == 0 {
		s.Error("no publisher ever waited for room, so back-pressure was not tried")
	}
	if ts.Published != loadProducers*loadPerProducer {
		s.Errorf("%d messages are counted as published, want %d", ts.Published, loadProducers*loadPerProducer)
	}
}

// loadProducer numbers the messages of its own keys, every fourth of all keys.
func loadProducer(s *script, producer int, largest *atomic.Int64) {
	numbers := make(map[int]int)
	for i := range loadPerProducer {
		k := producer + loadProducers*(i%(loadKeys/loadProducers))
		key := "user-" + strconv.Itoa(k)
		c := core.Content{Key: []byte(key), HasKey: true, Payload: fmt.Appendf(nil, "%s#%d", key, numbers[k])}
		m, err := core.NewMessage(&c, core.DefaultMessageBytes)
		if err != nil {
			s.Errorf("NewMessage: %v", err)
			return
		}
		numbers[k]++
		req := core.PublishRequest{Messages: []core.Message{m}, Partition: core.AnyPartition, Wait: core.MaxWait}
		placed, err := s.engine.Publish(s.Context(), s.topicName, &req, nil)
		if err != nil {
			s.Errorf("Publish: %v", err)
			return
		}
		p := s.stats().Partitions[placed[0].Partition]
		for was := largest.Load(); p.Backlog > was && !largest.CompareAndSwap(was, p.Backlog); {
			was = largest.Load()
		}
	}
}

// sightings is what a group's members saw.
type sightings struct {
	mu    sync.Mutex
	next  map[string]int // of each key
	count int
}

// note takes one message, and says what is wrong with its number.
func (s *sightings) note(payload string) (done bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key, number, _ := strings.Cut(payload, "#")
	if want := strconv.Itoa(s.next[key]); number != want {
		err = fmt.Errorf("%s came as %s#%s", payload, key, want)
	}
	s.next[key]++
	s.count++
	return s.count == loadProducers*loadPerProducer, err
}

func (s *sightings) all() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count == loadProducers*loadPerProducer
}

func loadConsumer(g *group, member string, pause time.Duration, seen *sightings) {
	req := ask(member, 10)
	req.Wait = time.Second
	for !seen.all() {
		b, err := g.tryPoll(g.Context(), req)
		if err != nil {
			g.Errorf("Poll: %v", err)
			return
		}
		for _, d := range b.Deliveries {
			if _, err := seen.note(string(d.Payload())); err != nil {
				g.Errorf("%s: want the next number of its key: %v", g.name, err)
			}
		}
		if len(b.Deliveries) > 0 {
			if _, err := g.tryAck(b.Receipt); err != nil {
				g.Errorf("Ack: %v", err)
			}
		}
		<-time.After(pause)
	}
}
