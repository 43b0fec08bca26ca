package enginetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

const (
	chaosSeeds     = 40
	chaosProducers = 3
	chaosMessages  = 150 // of each producer
	chaosKeys      = 4   // of each producer
	chaosConsumers = 3   // of each group
	chaosLease     = time.Second
	chaosEnd       = time.Hour // of virtual time: more means that something is stuck
)

// Chaos lets producers publish while consumers work, stall, nack, extend, leave,
// lose answers and crash, in virtual time. When they are done, every message
// must have been acked once in every group, in the order of its key where the
// group keeps one. Sub-test i uses seed i.
func Chaos(t *testing.T, open func(testing.TB, Options) core.Engine, features Features) {
	if what := features.lacks(virtualTime); what != "" {
		t.Skipf("the engine has no %s", what)
	}
	seeds := chaosSeeds
	if raceEnabled || testing.Short() {
		seeds = 5
	}
	for seed := range seeds {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			features.bubble(t, func(t *testing.T) { chaos(newScript(t, open, features), uint64(seed)) })
		})
	}
}

func chaos(s *script, seed uint64) {
	s.topicLike(core.TopicSpec{Partitions: core.Some(3), Capacity: core.Some(20), AckTimeout: core.Some(chaosLease)})
	var ledgers []*ledger
	for _, spec := range []core.GroupSpec{
		{SessionTimeout: core.Some(3 * chaosLease)},
		{SessionTimeout: core.Some(chaosLease / 2), Strategy: core.Some(core.RoundRobin)},
		{SessionTimeout: core.Some(chaosLease), Type: core.Some(core.Queue)},
	} {
		ledgers = append(ledgers, newLedger(s.group(fmt.Sprint("group-", len(ledgers)), spec)))
	}
	ctx, stop := context.WithTimeout(s.Context(), chaosEnd)
	defer stop()
	var producers, consumers sync.WaitGroup
	for p := range chaosProducers {
		producers.Go(func() { chaosProduce(ctx, s, p, rand.New(rand.NewPCG(seed, uint64(p)))) })
	}
	for i, l := range ledgers {
		for n := range chaosConsumers {
			c := &chaosConsumer{ledger: l, ctx: ctx, name: fmt.Sprint("c", n), random: rand.New(rand.NewPCG(seed, uint64(100*i+n+100)))}
			consumers.Go(c.run)
		}
	}
	producers.Wait()
	consumers.Wait()
	for _, l := range ledgers {
		l.balance()
	}
	for p, part := range s.stats().Partitions {
		if part.Start != part.End {
			s.Errorf("partition %d still holds %d messages", p, part.Backlog)
		}
	}
}

// chaosProduce publishes numbered messages, alone and in batches, and tries
// again when there was no room.
func chaosProduce(ctx context.Context, s *script, producer int, random *rand.Rand) {
	numbers := make([]int, chaosKeys)
	for sent := 0; sent < chaosMessages && ctx.Err() == nil; {
		k := random.IntN(chaosKeys)
		key := fmt.Sprintf("p%d-k%d", producer, k)
		req := core.PublishRequest{Partition: core.AnyPartition, Wait: time.Duration(random.IntN(3)) * chaosLease / 4}
		for i := range min(1+random.IntN(4), chaosMessages-sent) {
			c := core.Content{Key: []byte(key), HasKey: true, Payload: fmt.Appendf(nil, "%s#%d", key, numbers[k]+i)}
			m, err := core.NewMessage(&c, core.DefaultMessageBytes)
			if err != nil {
				s.Errorf("NewMessage: %v", err)
				return
			}
			req.Messages = append(req.Messages, m)
		}
		_, err := s.engine.Publish(ctx, s.topicName, &req, nil)
		switch core.CodeOf(err) {
		case "":
			numbers[k] += len(req.Messages)
			sent += len(req.Messages)
		case core.CodePartitionFull:
			<-time.After(chaosLease / 10)
		default:
			s.Errorf("Publish: %v", err)
			return
		}
	}
}

// A ledger is what the consumers of one group saw and did. Its counter puts
// what they did in order: of two things that may have happened at once none
// counts as before the other.
type ledger struct {
	*group
	mu       sync.Mutex
	now      int64
	sent     map[string]bool  // an ack was sent
	acked    map[string]int64 // an ack was answered, and when
	attempts map[string]int
}

func newLedger(g *group) *ledger {
	return &ledger{group: g, sent: make(map[string]bool), acked: make(map[string]int64), attempts: make(map[string]int)}
}

// moment is a point in the order of things.
func (l *ledger) moment() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now++
	return l.now
}

func (l *ledger) done() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked) == chaosProducers*chaosMessages
}

// got checks what a poll that began at a moment handed out.
func (l *ledger) got(began int64, ds []core.Delivery) {
	l.mu.Lock()
	defer l.mu.Unlock()
	here := make(map[string]bool)
	for _, d := range ds {
		id := string(d.Payload())
		if at, ok := l.acked[id]; ok && at < began {
			l.Errorf("%s: %s was handed out again after it was acked", l.name, id)
		}
		if d.Attempt < l.attempts[id] {
			l.Errorf("%s: %s came as attempt %d after attempt %d", l.name, id, d.Attempt, l.attempts[id])
		}
		l.attempts[id] = d.Attempt
		key, number, _ := strings.Cut(id, "#")
		if n, err := strconv.Atoi(number); err == nil && n > 0 && !l.queue {
			if before := fmt.Sprintf("%s#%d", key, n-1); !here[before] && !l.sent[before] {
				l.Errorf("%s: %s was handed out while %s was not settled", l.name, id, before)
			}
		}
		here[id] = true
	}
}

func (l *ledger) sending(ds []core.Delivery) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range ds {
		l.sent[string(d.Payload())] = true
	}
}

// answered takes note of which of the messages an ack counted for.
func (l *ledger) answered(ds []core.Delivery, got core.Settled) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now++
	for _, d := range ds {
		stale := false
		for _, r := range got.Stale {
			stale = stale || r.Partition == d.Partition && r.From <= d.Offset && d.Offset < r.To
		}
		if id := string(d.Payload()); !stale && l.acked[id] == 0 {
			l.acked[id] = l.now
		}
	}
}

// balance checks that everything was acked, each message once. An ack that was
// refused and yet applied would leave a message that nobody has acked.
func (l *ledger) balance() {
	gs := l.look()
	if want := chaosProducers * chaosMessages; len(l.acked) != want || gs.Acked != uint64(want) {
		l.Errorf("%s: consumers acked %d messages and the engine counts %d, want %d", l.name, len(l.acked), gs.Acked, want)
	}
	for p, c := range gs.Cursors {
		if c.Lag != 0 {
			l.Errorf("%s: %d messages are left in partition %d", l.name, c.Lag, p)
		}
	}
}

// A chaosConsumer is a consumer that does everything wrong now and then.
type chaosConsumer struct {
	*ledger
	ctx    context.Context
	name   string
	lives  int
	random *rand.Rand
}

func (c *chaosConsumer) run() {
	for !c.done() {
		if c.ctx.Err() != nil {
			c.Errorf("%s: after %v not everything is acked", c.ledger.name, chaosEnd)
			return
		}
		if err := sound(c.engine.Stats()); err != nil {
			c.Error(err)
			return
		}
		req := ask(fmt.Sprintf("%s-%d", c.name, c.lives), 1+c.random.IntN(8))
		req.Wait = time.Duration(c.random.IntN(5)) * chaosLease / 10
		if c.random.IntN(2) == 0 {
			req.PollID = strconv.Itoa(c.random.IntN(1000))
		}
		began := c.moment()
		b, err := c.tryPoll(c.ctx, req)
		if err != nil {
			if c.ctx.Err() == nil {
				c.Errorf("Poll: %v", err)
				return
			}
			continue
		}
		c.got(began, b.Deliveries)
		if len(b.Deliveries) > 0 {
			c.work(req, b)
		}
	}
}

// work does something with a batch, more often than not what it should.
func (c *chaosConsumer) work(req core.PollRequest, b core.Batch) {
	switch c.random.IntN(14) {
	case 0: // crashes, and comes again under another name
		c.lives++
	case 1: // stalls beyond its lease
		<-time.After(chaosLease + time.Duration(c.random.IntN(3))*chaosLease/2)
		c.settle(b)
	case 2:
		_, err := c.tryNack(core.NackRequest{Receipt: b.Receipt})
		c.unless("Nack", err)
	case 3:
		d := b.Deliveries[c.random.IntN(len(b.Deliveries))]
		_, err := c.tryNackOffset(b.Receipt, d.Partition, d.Offset)
		c.unless("Nack", err)
		c.settle(b) // the rest of it
	case 4: // leaves with everything in hand
		c.unless("Leave", c.engine.Leave(c.ctx, c.topicName, c.ledger.group.name, req.Member))
		c.lives++
	case 5: // its answer was lost on the way
		c.unless("Return", c.engine.Return(c.ctx, c.topicName, c.ledger.group.name, &b.Receipt))
	case 6: // the answer was lost, and it asks again
		began := c.moment()
		again, err := c.tryPoll(c.ctx, req)
		c.unless("Poll", err)
		c.got(began, again.Deliveries)
		if len(again.Deliveries) > 0 {
			c.settle(again)
		}
	case 7:
		for range 3 {
			<-time.After(chaosLease / 2)
			_, err := c.tryExtend(b.Receipt, core.Opt[time.Duration]{})
			c.unless("Extend", err, core.CodeStaleReceipt, core.CodeLeaseLimit)
		}
		c.settle(b)
	case 8:
		c.oneByOne(b)
	default:
		<-time.After(time.Duration(c.random.IntN(3)) * chaosLease / 20)
		c.settle(b)
	}
}

// unless takes note of an error that such a call must not end with.
func (c *chaosConsumer) unless(call string, err error, codes ...core.Code) {
	for _, code := range append(codes, "", core.CodeStaleReceipt) {
		if core.CodeOf(err) == code {
			return
		}
	}
	if c.ctx.Err() == nil {
		c.Errorf("%s: %v", call, err)
	}
}

func (c *chaosConsumer) settle(b core.Batch) {
	c.sending(b.Deliveries)
	got, err := c.tryAck(b.Receipt)
	c.unless("Ack", err)
	if err == nil {
		c.answered(b.Deliveries, got)
	}
}

// oneByOne acks each message after it was worked on, and crashes in the middle
// now and then.
func (c *chaosConsumer) oneByOne(b core.Batch) {
	for i, d := range b.Deliveries {
		if c.random.IntN(6) == 0 {
			c.lives++
			return
		}
		<-time.After(chaosLease / 20)
		one := b.Deliveries[i : i+1]
		c.sending(one)
		var got core.Settled
		var err error
		if c.queue {
			got, err = c.tryAck(b.Receipt.Message(d.Partition, d.Offset))
		} else {
			got, err = c.tryAckUpto(b.Receipt, d.Partition, d.Offset)
		}
		c.unless("Ack", err)
		if err == nil {
			c.answered(one, got)
		}
	}
}
