package enginetest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/podmq/podmq/pkg/core"
)

const (
	linearSeeds    = 30
	linearClients  = 6
	linearOps      = 400 // of each client
	linearCapacity = 6
	linearTimeout  = 30 * time.Second // of real time, for one history
)

// Linearizability lets concurrent clients publish, poll, ack and nack on
// partitions that two ordered groups read, and checks that what they were told
// could have been told one after the other.
func Linearizability(t *testing.T, open func(testing.TB, Options) core.Engine, features Features) {
	if what := features.lacks(Features{OffsetGaps: true, LooseCapacity: true}); what != "" {
		t.Skipf("the engine has no %s", what)
	}
	seeds := linearSeeds
	if raceEnabled || testing.Short() {
		seeds = 3
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			var history []porcupine.Operation
			features.bubble(t, func(t *testing.T) { history = linearHistory(newScript(t, open, features), uint64(seed)) })
			result, info := porcupine.CheckOperationsVerbose(linearModel, history, linearTimeout)
			t.Logf("%d operations, %d of them beside another", len(history), overlapping(history))
			if result == porcupine.Ok {
				mustBeIllegal(t, history)
				return
			}
			path := filepath.Join(os.TempDir(), fmt.Sprintf("podmq-linearizability-%d-%d.html", seed, os.Getpid()))
			if err := porcupine.VisualizePath(linearModel, info, path); err != nil {
				t.Errorf("cannot draw the history: %v", err)
			}
			t.Errorf("a history of %d operations is %s; it is drawn in %s", len(history), result, path)
		})
	}
}

// overlapping counts the operations that began while another was under way.
func overlapping(history []porcupine.Operation) (n int) {
	byCall := slices.SortedFunc(slices.Values(history), func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	latest := int64(0)
	for _, o := range byCall {
		if o.Call < latest {
			n++
		}
		latest = max(latest, o.Return)
	}
	return n
}

// mustBeIllegal lies about one offset, so that a checker which takes anything
// is found out.
func mustBeIllegal(t *testing.T, history []porcupine.Operation) {
	t.Helper()
	for i, o := range history {
		if in, out := o.Input.(linearInput), o.Output.(linearOutput); in.call == linearPublish && out.code == "" {
			lie := slices.Clone(history)
			out.from++
			lie[i].Output = out
			if porcupine.CheckOperationsTimeout(linearModel, lie, linearTimeout) == porcupine.Ok {
				t.Error("a history with a wrong offset passes for linearizable")
			}
			return
		}
	}
	t.Error("nothing was published")
}

type linearCall int

const (
	linearPublish linearCall = iota
	linearPoll
	linearAck
	linearNack
)

// A linearInput is a call on one partition, a linearOutput what came of it.
type linearInput struct {
	call      linearCall
	topic     string
	partition int
	group     int
	max       int    // poll
	delivery  uint64 // ack, nack
	from, to  int64  // ack, nack: [from, to)
}

type linearOutput struct {
	code     core.Code
	from, to int64  // poll: [from, to); publish: from
	delivery uint64 // poll
	late     bool   // ack
}

// A linearState is one partition with two groups.
type linearState struct {
	end    int64
	groups [2]linearGroup
}

type linearGroup struct {
	committed int64
	out       bool
	delivery  uint64 // the latest
	failed    string // a byte for each offset from committed on
}

var linearModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
		type key struct {
			topic     string
			partition int
		}
		at := make(map[key]int)
		for _, o := range history {
			in := o.Input.(linearInput)
			k := key{in.topic, in.partition}
			if _, ok := at[k]; !ok {
				at[k] = len(parts)
				parts = append(parts, nil)
			}
			parts[at[k]] = append(parts[at[k]], o)
		}
		return parts
	},
	Init: func() any { return linearState{} },
	Step: func(state, input, output any) (bool, any) {
		st, in, out := state.(linearState), input.(linearInput), output.(linearOutput)
		want, next := st.step(in, out.delivery)
		return want == out, next
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
	DescribeState:     func(state any) string { return fmt.Sprintf("%+v", state) },
}

// step is what a call must come to; the number of a delivery is the engine's.
func (st linearState) step(in linearInput, delivery uint64) (linearOutput, linearState) {
	g := &st.groups[in.group]
	var out linearOutput
	switch in.call {
	case linearPublish:
		if st.end-min(st.groups[0].committed, st.groups[1].committed) >= linearCapacity {
			return linearOutput{code: core.CodePartitionFull}, st
		}
		out.from = st.end
		st.end++
	case linearPoll:
		if g.out || g.committed == st.end {
			return out, st
		}
		out = linearOutput{from: g.committed, to: g.committed + 1, delivery: delivery}
		for g.failures(g.committed) < 2 && out.to < min(st.end, g.committed+int64(in.max)) && g.failures(out.to) < 2 {
			out.to++
		}
		g.out, g.delivery = true, delivery
	case linearAck:
		switch {
		case in.to <= g.committed:
		case in.delivery != g.delivery:
			out.code = core.CodeStaleReceipt
		default:
			out.late = !g.out
			g.failed = g.failed[min(len(g.failed), int(in.to-g.committed)):]
			g.committed, g.out = in.to, false
		}
	case linearNack:
		switch {
		case in.to <= g.committed:
		case in.delivery != g.delivery || !g.out:
			out.code = core.CodeStaleReceipt
		default:
			if g.failed == "" {
				g.failed = "\x00"
			}
			g.failed = string(g.failed[0]+1) + g.failed[1:]
			g.out = false
		}
	}
	return out, st
}

func (g *linearGroup) failures(offset int64) byte {
	if i := offset - g.committed; i < int64(len(g.failed)) {
		return g.failed[i]
	}
	return 0
}

// linearHistory is what concurrent clients did and were told. Calls and returns
// are put in order by a counter: a clock would show many at the same time.
func linearHistory(s *script, seed uint64) (history []porcupine.Operation) {
	topics, groups := []string{"orders", "payments"}, []string{"billing", "email"}
	for _, topic := range topics {
		on := s.on(topic)
		on.topic(2, linearCapacity)
		for _, g := range groups {
			on.ordered(g).join("c")
		}
	}
	var clock atomic.Int64
	var mu sync.Mutex
	var all sync.WaitGroup
	start := make(chan struct{})
	for id := range linearClients {
		c := &linearClient{script: s, random: rand.New(rand.NewPCG(seed, uint64(id)))}
		all.Go(func() {
			<-start
			for range linearOps {
				in := c.draw(topics)
				called := clock.Add(1)
				out := c.call(in, groups)
				returned := clock.Add(1)
				mu.Lock()
				history = append(history, porcupine.Operation{ClientId: id, Input: in, Call: called, Output: out, Return: returned})
				mu.Unlock()
			}
		})
	}
	close(start)
	all.Wait()
	return history
}

// A linearClient remembers the receipts it was given, and shows some of them
// more than once.
type linearClient struct {
	*script
	random *rand.Rand
	given  []linearGiven
}

type linearGiven struct {
	linearInput
	receipt core.Receipt
}

func (c *linearClient) draw(topics []string) linearInput {
	in := linearInput{
		topic:     topics[c.random.IntN(len(topics))],
		partition: c.random.IntN(2),
		group:     c.random.IntN(2),
	}
	dice := c.random.IntN(10)
	if dice >= 6 && len(c.given) > 0 {
		had := c.given[max(0, len(c.given)-1-c.random.IntN(3))]
		in = had.linearInput
		in.call = linearAck
		if dice == 9 {
			in.call = linearNack
		}
		return in
	}
	if dice < 3 {
		in.group = 0
		return in
	}
	in.call, in.max = linearPoll, 1+c.random.IntN(3)
	return in
}

func (c *linearClient) call(in linearInput, groups []string) (out linearOutput) {
	g := &group{c.on(in.topic), groups[in.group], false}
	switch in.call {
	case linearPublish:
		placed, err := g.tryPublish(c.Context(), 0, in.partition, "m")
		if err != nil {
			return linearOutput{code: core.CodeOf(err)}
		}
		out.from = placed[0].Offset
	case linearPoll:
		req := ask("c", in.max)
		req.Partition = in.partition
		b, err := g.tryPoll(c.Context(), req)
		if err != nil || len(b.Deliveries) == 0 {
			return linearOutput{code: core.CodeOf(err)}
		}
		r := b.Receipt.Ranges[0]
		out = linearOutput{from: r.From, to: r.To, delivery: b.Receipt.Delivery}
		in.delivery, in.from, in.to, in.max = out.delivery, out.from, out.to, 0
		c.given = append(c.given, linearGiven{in, b.Receipt})
	case linearAck:
		got, err := g.tryAck(c.receipt(in))
		out = linearOutput{code: core.CodeOf(err), late: got.Late}
	case linearNack:
		_, err := g.tryNack(core.NackRequest{Receipt: c.receipt(in), Delay: core.Some(time.Duration(0))})
		out = linearOutput{code: core.CodeOf(err)}
	}
	return out
}

func (c *linearClient) receipt(in linearInput) core.Receipt {
	for _, had := range c.given {
		if had.delivery == in.delivery {
			return had.receipt
		}
	}
	panic("enginetest: a client acks what it was not given")
}
