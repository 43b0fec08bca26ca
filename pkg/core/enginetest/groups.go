package enginetest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

// A group is a script's talk with one consumer group.
type group struct {
	*script
	name  string
	queue bool // promises no order, so what it hands out is compared sorted
}

// ask is a poll of any partition that does not wait.
func ask(member string, max int) core.PollRequest {
	return core.PollRequest{Member: member, Max: max, MaxBytes: core.DefaultPollBytes, Partition: core.AnyPartition}
}

func (g *group) tryPoll(ctx context.Context, req core.PollRequest) (core.Batch, error) {
	var b core.Batch
	err := g.engine.Poll(ctx, g.topicName, g.name, &req, &b)
	return b, err
}

func (g *group) pollLike(req core.PollRequest) core.Batch {
	g.Helper()
	b, err := g.tryPoll(g.Context(), req)
	g.ok("Poll", err)
	if n := len(b.Receipt.String()); n > core.MaxReceiptLen {
		g.Errorf("the receipt has %d bytes, the most is %d", n, core.MaxReceiptLen)
	}
	return b
}

// poll takes what is there, up to max, and checks it: see list.
func (g *group) poll(member string, max int, want string) core.Batch {
	g.Helper()
	return g.got(g.pollLike(ask(member, max)), want)
}

// got checks what a batch holds.
func (g *group) got(b core.Batch, want string) core.Batch {
	g.Helper()
	if g.queue {
		slices.SortFunc(b.Deliveries, func(a, b core.Delivery) int {
			return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Offset, b.Offset))
		})
	}
	if got := list(b.Deliveries); got != want {
		g.Fatalf("%s got %q, want %q", g.name, got, want)
	}
	return b
}

// list writes deliveries as partition:offset=payload, and #attempt after those
// that come again.
func list(ds []core.Delivery) string {
	var words []string
	for _, d := range ds {
		w := fmt.Sprintf("%d:%d=%s", d.Partition, d.Offset, d.Payload())
		if d.Attempt != 1 {
			w += fmt.Sprintf("#%d", d.Attempt)
		}
		words = append(words, w)
	}
	return strings.Join(words, " ")
}

func (g *group) tryAck(receipts ...core.Receipt) (core.Settled, error) {
	return g.engine.Ack(g.Context(), g.topicName, g.name, &core.AckRequest{Receipts: receipts})
}

// ack settles receipts, all of which must count, in time.
func (g *group) ack(receipts ...core.Receipt) core.Settled {
	g.Helper()
	got, err := g.tryAck(receipts...)
	g.ok("Ack", err)
	if got.Late || len(got.Stale) != 0 {
		g.Fatalf("Ack: late %v, stale %v, want neither", got.Late, got.Stale)
	}
	return got
}

func (g *group) tryAckUpto(r core.Receipt, partition int, upto int64) (core.Settled, error) {
	req := core.AckRequest{Receipts: []core.Receipt{r}, Partition: core.Some(partition), Upto: core.Some(upto)}
	return g.engine.Ack(g.Context(), g.topicName, g.name, &req)
}

// tryAckOffset is the seed's form of an ack, without a receipt.
func (g *group) tryAckOffset(member string, partition int, upto int64) (core.Settled, error) {
	req := core.AckRequest{Partition: core.Some(partition), Upto: core.Some(upto), Member: member}
	return g.engine.Ack(g.Context(), g.topicName, g.name, &req)
}

func (g *group) ackOffset(member string, partition int, upto int64) {
	g.Helper()
	_, err := g.tryAckOffset(member, partition, upto)
	g.ok("Ack by offset", err)
}

func (g *group) tryNack(req core.NackRequest) (core.Settled, error) {
	return g.engine.Nack(g.Context(), g.topicName, g.name, &req)
}

// nack hands out again what the receipt covers.
func (g *group) nack(r core.Receipt) core.Settled {
	g.Helper()
	got, err := g.tryNack(core.NackRequest{Receipt: r})
	g.ok("Nack", err)
	return got
}

func (g *group) nackAfter(r core.Receipt, delay time.Duration) core.Settled {
	g.Helper()
	got, err := g.tryNack(core.NackRequest{Receipt: r, Delay: core.Some(delay)})
	g.ok("Nack", err)
	return got
}

func (g *group) tryNackOffset(r core.Receipt, partition int, offset int64) (core.Settled, error) {
	return g.tryNack(core.NackRequest{Receipt: r, Partition: core.Some(partition), Offset: core.Some(offset)})
}

func (g *group) tryExtend(r core.Receipt, by core.Opt[time.Duration]) (core.Settled, error) {
	return g.engine.Extend(g.Context(), g.topicName, g.name, &core.ExtendRequest{Receipt: r, By: by})
}

func (g *group) extend(r core.Receipt, by time.Duration) core.Settled {
	g.Helper()
	got, err := g.tryExtend(r, core.Some(by))
	g.ok("Extend", err)
	return got
}

func (g *group) giveBack(r core.Receipt) {
	g.Helper()
	g.ok("Return", g.engine.Return(g.Context(), g.topicName, g.name, &r))
}

func (g *group) join(member string) core.Membership {
	g.Helper()
	m, _, err := g.engine.Join(g.Context(), g.topicName, g.name, member)
	g.ok("Join", err)
	if m.Member != member {
		g.Fatalf("%s joined as %q", member, m.Member)
	}
	return m
}

func (g *group) leave(member string) {
	g.Helper()
	g.ok("Leave", g.engine.Leave(g.Context(), g.topicName, g.name, member))
}

func (g *group) look() core.GroupStats {
	g.Helper()
	gs, err := g.engine.Group(g.Context(), g.topicName, g.name)
	g.ok("Group", err)
	return gs
}

// members checks who is assigned what: "c1:0,2 c2:1,3", in the order of joining.
func (g *group) members(want string) {
	g.Helper()
	if got := assigned(g.look()); got != want {
		g.Fatalf("%s is shared as %q, want %q", g.name, got, want)
	}
}

func assigned(gs core.GroupStats) string {
	var words []string
	for _, m := range gs.Members {
		ps := strings.Trim(strings.ReplaceAll(fmt.Sprint(m.Partitions), " ", ","), "[]")
		words = append(words, m.Member+":"+ps)
	}
	return strings.Join(words, " ")
}

// owners checks who holds each partition now: "c1 c2 - c1".
func (g *group) owners(want string) {
	g.Helper()
	var words []string
	for _, c := range g.look().Cursors {
		if c.Owner == "" {
			c.Owner = "-"
		}
		words = append(words, c.Owner)
	}
	if got := strings.Join(words, " "); got != want {
		g.Fatalf("%s is held by %q, want %q", g.name, got, want)
	}
}

// cursor checks one cursor.
func (g *group) cursor(partition int, committed, next, lag int64) {
	g.Helper()
	c := g.look().Cursors[partition]
	if c.Committed != committed || c.Next != next || c.Lag != lag {
		g.Fatalf("%s in partition %d: committed %d, next %d, lag %d; want %d, %d, %d",
			g.name, partition, c.Committed, c.Next, c.Lag, committed, next, lag)
	}
}
