package client

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

// PollRequest is one poll. The zero PollRequest takes what is there for the
// member "default" and does not wait.
type PollRequest struct {
	Member    string        // "": core.DefaultMember
	Max       int           // messages; 0: core.DefaultPollMax
	MaxBytes  int           // payload, key and headers; 0: core.DefaultPollBytes
	Wait      time.Duration // how long to wait when there is nothing, at most core.MaxWait
	Partition core.Opt[int] // only this one
	Acks      []string      // receipts, settled first: acknowledge and fetch in one round trip
	// PollID makes the poll safe to repeat: the same member repeating it gets
	// the same batch while that is unsettled.
	PollID string
}

// A Batch is what one poll handed out. Without messages it has no receipt.
type Batch struct {
	Messages   []Delivery
	Receipt    string        // of all messages
	Lease      time.Duration // how long they can be settled
	Generation int64
	Epoch      string            // the run of the broker that handed them out
	Stale      []core.StaleRange // of PollRequest.Acks: what no longer counted
	Skipped    []core.Skipped    // what retention took from the group since its last poll
	Blocked    []Blocked         // of an empty batch
}

// Blocked is a partition that an empty poll passed over because a batch is out.
type Blocked struct {
	Partition int           `json:"partition"`
	Member    string        `json:"member"`
	Lease     time.Duration `json:"-"` // lease_ms
}

// UnmarshalJSON reads the contract's form, in which the lease is lease_ms.
func (b *Blocked) UnmarshalJSON(text []byte) error {
	type plain Blocked
	wire := struct {
		*plain
		leaseJSON
	}{plain: (*plain)(b)}
	err := json.Unmarshal(text, &wire)
	b.Lease = wire.lease()
	return err
}

// Poll takes messages for a member, which joins the group by it. Nothing within
// Wait is an empty batch and no error. core.CodeStaleReceipt when r.Acks no
// longer count at all: then nothing was polled either.
func (c *Client) Poll(ctx context.Context, topic, group string, r PollRequest) (*Batch, error) {
	pc, err := pollCall(topic, group, &r)
	if err != nil {
		return nil, err
	}
	a, err := c.do(ctx, pc)
	if err != nil {
		return nil, err
	}
	return readBatch(a)
}

func pollCall(topic, group string, r *PollRequest) (*call, error) {
	path, err := groupPath(topic, group, "/poll")
	if err != nil {
		return nil, err
	}
	q := newQuery()
	q.duration("wait", r.Wait)
	if r.Member != "" {
		q.Set("member", r.Member)
	}
	if r.Max != 0 {
		q.int("max", int64(r.Max))
	}
	if r.MaxBytes != 0 {
		q.size("max-bytes", int64(r.MaxBytes))
	}
	optInt(q, "partition", r.Partition)
	if len(r.Acks) > 0 {
		q.Values["ack"] = r.Acks
	}
	if r.PollID != "" {
		q.Set("poll-id", r.PollID)
	}
	return &call{
		method: http.MethodPost, path: path, query: q.Values,
		header: http.Header{"Accept": {framesType}},
	}, nil
}

// readBatch reads an answer in frames: what is of the whole batch stands in
// headers, the body is one delivery after the other.
func readBatch(a *answer) (*Batch, error) {
	b := &Batch{Receipt: a.header.Get("Podmq-Receipt"), Epoch: a.header.Get("Podmq-Epoch")}
	count, err := headerInt(a.header, "Podmq-Count")
	if err != nil {
		return nil, err
	}
	lease, err := headerInt(a.header, "Podmq-Lease-Ms")
	if err != nil {
		return nil, err
	}
	b.Lease = time.Duration(lease) * time.Millisecond
	if b.Generation, err = headerInt(a.header, "Podmq-Generation"); err != nil {
		return nil, err
	}
	for name, list := range map[string]any{"Podmq-Stale": &b.Stale, "Podmq-Skipped": &b.Skipped, "Podmq-Blocked": &b.Blocked} {
		if err := headerList(a.header, name, list); err != nil {
			return nil, err
		}
	}
	if count < 0 || count > core.MaxPollMessages {
		return nil, badAnswer("it counts %d messages, the most is %d", count, core.MaxPollMessages)
	}
	b.Messages = make([]Delivery, 0, count)
	for rest := a.body; len(rest) > 0; {
		var d Delivery
		if d, rest, err = readDelivery(rest); err != nil {
			return nil, badAnswer("%v", err)
		}
		b.Messages = append(b.Messages, d)
	}
	if int64(len(b.Messages)) != count {
		return nil, badAnswer("it counts %d messages and holds %d", count, len(b.Messages))
	}
	return b, nil
}

// deliveryFixed is what stands before a delivery's receipt: partition u32,
// offset u64, attempt u32, published i64 (ns since the Unix epoch), receipt
// length u16, all big-endian.
const deliveryFixed = 4 + 8 + 4 + 8 + 2

func readDelivery(b []byte) (d Delivery, rest []byte, err error) {
	if len(b) < deliveryFixed {
		return d, nil, core.Errorf(core.CodeInternal, "cannot read delivery: %d bytes are left, it has at least %d", len(b), deliveryFixed)
	}
	d = Delivery{
		Partition:   int(binary.BigEndian.Uint32(b)),
		Offset:      int64(binary.BigEndian.Uint64(b[4:])),
		Attempt:     int(binary.BigEndian.Uint32(b[12:])),
		PublishedAt: time.Unix(0, int64(binary.BigEndian.Uint64(b[16:]))),
	}
	receipt := int(binary.BigEndian.Uint16(b[24:]))
	b = b[deliveryFixed:]
	if len(b) < receipt {
		return d, nil, core.Errorf(core.CodeInternal, "cannot read delivery: its receipt of %d bytes does not fit into %d", receipt, len(b))
	}
	d.Receipt = string(b[:receipt])
	d.Message, rest, err = decode(b[receipt:])
	return d, rest, err
}

// headerInt is 0 where the header is missing.
func headerInt(h http.Header, name string) (int64, error) {
	text := h.Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, badAnswer("its header %s is %.40q", name, text)
	}
	return n, nil
}

// headerList reads a header that holds a JSON array; a missing one is none.
func headerList(h http.Header, name string, list any) error {
	text := h.Get(name)
	if text == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(text), list); err != nil {
		return badAnswer("its header %s is %.100q", name, text)
	}
	return nil
}

func badAnswer(format string, args ...any) error {
	e := core.Errorf(core.CodeInternal, format, args...)
	e.Detail = "cannot understand the answer to a poll: " + e.Detail
	return e
}
