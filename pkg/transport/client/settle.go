package client

import (
	"context"
	"net/http"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

// Settled is what an ack, nack or extend touched.
type Settled struct {
	Cursors []CursorPlace     `json:"cursors"`
	Late    bool              `json:"late"`  // an ack was applied after its lease had ended
	Stale   []core.StaleRange `json:"stale"` // what of the receipts no longer counted
	Lease   time.Duration     `json:"-"`     // what is left for the part that is still out; lease_ms
}

// A CursorPlace is where a cursor stands after a settlement.
type CursorPlace struct {
	Partition int   `json:"partition"`
	Committed int64 `json:"committed"`
	Next      int64 `json:"next"`
}

// NackOptions narrow a nack. The zero value hands out again all that the receipt
// covers, after the broker's backoff.
type NackOptions struct {
	// Partition and Offset name the message that failed; then only its
	// partition's range ends, and only its attempt counts.
	Partition core.Opt[int]
	Offset    core.Opt[int64]
	Delay     core.Opt[time.Duration] // instead of the backoff, at most core.MaxNackDelay
}

// Ack settles all that the receipts cover as done. Repeating it is fine.
// core.CodeStaleReceipt when none of it counts any more.
func (c *Client) Ack(ctx context.Context, topic, group string, receipts ...string) (Settled, error) {
	q := newQuery()
	q.Values["receipt"] = receipts
	return c.settle(ctx, topic, group, "/ack", q)
}

// AckUpto settles an ordered batch in one partition, up to and including upto.
func (c *Client) AckUpto(ctx context.Context, topic, group, receipt string, partition int, upto int64) (Settled, error) {
	q := newQuery()
	q.Set("receipt", receipt)
	q.int("partition", int64(partition))
	q.int("upto", upto)
	return c.settle(ctx, topic, group, "/ack", q)
}

// AckOffset settles without a receipt what is in flight for a member, up to and
// including upto; core.CodeNotInFlight when upto is not. It cannot tell two
// processes under one member name apart, which receipts can.
func (c *Client) AckOffset(ctx context.Context, topic, group, member string, partition int, upto int64) (Settled, error) {
	q := newQuery()
	q.Set("member", member)
	q.int("partition", int64(partition))
	q.int("upto", upto)
	return c.settle(ctx, topic, group, "/ack", q)
}

// Nack hands out again what the receipt covers, or what o narrows it to. It acks
// nothing.
func (c *Client) Nack(ctx context.Context, topic, group, receipt string, o NackOptions) (Settled, error) {
	q := newQuery()
	q.Set("receipt", receipt)
	optInt(q, "partition", o.Partition)
	optInt(q, "offset", o.Offset)
	optDuration(q, "delay", o.Delay)
	return c.settle(ctx, topic, group, "/nack", q)
}

// Extend asks for a new lease from now: by, or the topic's ack timeout where by
// is 0. Settled.Lease is what it got. core.CodeLeaseLimit when the group's
// max-lease is used up.
func (c *Client) Extend(ctx context.Context, topic, group, receipt string, by time.Duration) (Settled, error) {
	q := newQuery()
	q.Set("receipt", receipt)
	if by != 0 {
		q.duration("by", by)
	}
	return c.settle(ctx, topic, group, "/extend", q)
}

func (c *Client) settle(ctx context.Context, topic, group, verb string, q query) (s Settled, err error) {
	path, err := groupPath(topic, group, verb)
	if err != nil {
		return s, err
	}
	a, err := c.do(ctx, &call{method: http.MethodPost, path: path, query: q.Values})
	if err != nil {
		return s, err
	}
	wire := struct {
		*Settled
		leaseJSON
	}{Settled: &s}
	err = a.json(&wire)
	s.Lease = wire.lease()
	return s, err
}
