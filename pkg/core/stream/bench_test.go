package stream

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

// A cycle is what a batch costs from append to ack, in memory that is used again
// and again as an engine does.
type cycle struct {
	part     *Partition
	cursor   Cursor
	messages []core.Message
	want     Want
	now      Instant
	delivery uint64
	runs     []Run
	parts    []Part
	changes  []Change
}

func newCycle(tb testing.TB, typ core.GroupType, batch int) *cycle {
	p := NewPartition(1<<20, new(Chunks))
	return &cycle{
		part:     p,
		cursor:   p.AddGroup(1, typ, core.Latest),
		messages: slices.Repeat([]core.Message{message(tb, 256)}, batch),
	}
}

func (c *cycle) append() { c.part.Append(c.messages, 0, c.now) }

// grant hands out as much as one append has brought.
func (c *cycle) grant() {
	c.want = Want{Messages: len(c.messages), Bytes: 1 << 30, Runs: core.MaxReceiptRanges}
	c.runs = c.cursor.Offer(c.runs[:0], c.part.Log(), &c.want, c.now)
	c.delivery++
	for _, run := range c.runs {
		c.part.Apply(c.cursor, Change{Kind: Granted, Delivery: c.delivery, Member: 1, From: run.From, To: run.To, At: c.now, Until: c.now.Add(30 * time.Second)})
	}
	c.cursor.Due(c.now)
}

func (c *cycle) ack() {
	for _, run := range c.runs {
		c.parts = c.cursor.Judge(c.parts[:0], c.delivery, run)
		for _, part := range c.parts {
			c.part.Apply(c.cursor, Change{Kind: Acked, Member: part.Member, From: part.From, To: part.To, At: c.now})
		}
	}
}

func (c *cycle) nack() {
	for _, run := range c.runs {
		c.parts = c.cursor.Judge(c.parts[:0], c.delivery, run)
		for _, part := range c.parts {
			c.changes = c.cursor.Nack(c.changes[:0], part, part.From, core.Some(time.Second), c.now)
			for i := range c.changes {
				c.part.Apply(c.cursor, c.changes[i])
			}
		}
	}
	c.cursor.Due(c.now)
}

// expire lets the leases end of what is out.
func (c *cycle) expire() {
	c.now = c.now.Add(time.Minute)
	c.changes = c.cursor.Expired(c.changes[:0], c.now)
	for i := range c.changes {
		c.part.Apply(c.cursor, c.changes[i])
	}
	c.cursor.Due(c.now)
}

// once goes round: a batch is appended, handed out and acked.
func (c *cycle) once() {
	c.append()
	c.grant()
	c.ack()
	c.now++
}

var cycles = []struct {
	typ   core.GroupType
	batch int
}{{core.Ordered, 1}, {core.Ordered, 100}, {core.Queue, 1}, {core.Queue, 100}}

func forEachCycle[T interface {
	testing.TB
	Run(string, func(T)) bool
}](tb T, run func(T, *cycle)) {
	for _, c := range cycles {
		tb.Run(fmt.Sprintf("%s/batch=%d", c.typ, c.batch), func(tb T) { run(tb, newCycle(tb, c.typ, c.batch)) })
	}
}

func TestCostOfASteadyStateIsNoAllocation(t *testing.T) {
	forEachCycle(t, func(t *testing.T, c *cycle) {
		for range 200 { // beyond the first chunks, and into the steady state
			c.once()
		}
		for name, work := range map[string]func(){
			"append, grant, ack": c.once,
			"with a backlog": func() {
				c.append()
				c.append()
				c.grant()
				c.ack()
				c.grant()
				c.ack()
			},
			"and a nack": func() {
				c.append()
				c.grant()
				c.nack()
				c.now = c.now.Add(time.Second)
				c.grant()
				c.ack()
			},
		} {
			if n := testing.AllocsPerRun(500, work); n != 0 {
				t.Errorf("%s: %v allocations", name, n)
			}
		}
	})
}

// A message that is stuck must not make the others dear.
func TestCostOfMessagesBehindOneThatIsStuckIsNoAllocation(t *testing.T) {
	c := newCycle(t, core.Queue, 1)
	c.append()
	c.grant()
	for range 100_000 {
		c.once()
	}
	if n := testing.AllocsPerRun(1000, c.once); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkAppendGrantAck(b *testing.B) {
	forEachCycle(b, func(b *testing.B, c *cycle) {
		b.ReportAllocs()
		for b.Loop() {
			c.once()
		}
		perMessage(b, c)
	})
}

func BenchmarkAppendTrim(b *testing.B) {
	for _, batch := range []int{1, 100} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			c := newCycle(b, core.Ordered, batch)
			l := &c.part.log
			b.ReportAllocs()
			for b.Loop() {
				l.append(c.messages, 0, 0)
				l.trim(l.end)
			}
			perMessage(b, c)
		})
	}
}

// BenchmarkStuck has the first message out for good, and 100,000 acked behind it.
func BenchmarkStuck(b *testing.B) {
	c := newCycle(b, core.Queue, 1)
	c.append()
	c.grant()
	for range 100_000 {
		c.once()
	}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		if n%500_000 == 499_999 {
			b.StopTimer() // the capacity ends: begin again
			c = newCycle(b, core.Queue, 1)
			c.append()
			c.grant()
			for range 100_000 {
				c.once()
			}
			b.StartTimer()
		}
		c.once()
	}
}

// BenchmarkExpire has every lease end once.
func BenchmarkExpire(b *testing.B) {
	forEachCycle(b, func(b *testing.B, c *cycle) {
		b.ReportAllocs()
		for b.Loop() {
			c.append()
			c.grant()
			c.expire()
			c.grant()
			c.ack()
		}
		perMessage(b, c)
	})
}

func perMessage(b *testing.B, c *cycle) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(c.messages)), "ns/message")
}
