package client

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

// A Placement is where a message was stored.
type Placement struct {
	Partition int   `json:"partition"`
	Offset    int64 `json:"offset"`
}

// A PublishOption says how to publish.
type PublishOption func(*publishing)

type publishing struct {
	wait      time.Duration
	partition core.Opt[int]
}

// Wait lets a publish wait for room, at most core.MaxWait. Without it a full
// topic answers core.CodePartitionFull, core.CodeTopicFull or
// core.CodeMemoryFull at once, and nothing is stored.
func Wait(d time.Duration) PublishOption { return func(p *publishing) { p.wait = d } }

// ToPartition overrides the choice of the partition by key. It is for single
// messages, whose headers then travel as HTTP's and arrive sorted by name.
func ToPartition(n int) PublishOption {
	return func(p *publishing) { p.partition = core.Some(n) }
}

// Publish stores one message. nil says that it is stored. An error that is
// Unknown says that it may be; every other one, that it is not.
func (c *Client) Publish(ctx context.Context, topic string, m Message, options ...PublishOption) (Placement, error) {
	p := publishingOf(options)
	if p.partition.Given {
		return c.publishTo(ctx, topic, &m, p)
	}
	// As a batch of one: a frame carries any header, which HTTP does not.
	placed, err := c.publishFrames(ctx, topic, []Message{m}, p.wait)
	if err != nil {
		return Placement{}, err
	}
	return placed[0], nil
}

// PublishBatch stores all messages or none, across partitions, and says where
// each went, in the order given. What an error means is as with Publish.
func (c *Client) PublishBatch(ctx context.Context, topic string, ms []Message, options ...PublishOption) ([]Placement, error) {
	p := publishingOf(options)
	if p.partition.Given {
		return nil, core.Invalid("partition", "cannot publish a batch to partition %d: each message of a batch goes where its key says", p.partition.Value)
	}
	return c.publishFrames(ctx, topic, ms, p.wait)
}

func publishingOf(options []PublishOption) (p publishing) {
	for _, o := range options {
		o(&p)
	}
	return p
}

func (c *Client) publishFrames(ctx context.Context, topic string, ms []Message, wait time.Duration) ([]Placement, error) {
	path, err := topicPath(topic, "/batch")
	if err != nil {
		return nil, err
	}
	body, err := frames(ms)
	if err != nil {
		return nil, err
	}
	q := newQuery()
	q.duration("wait", wait)
	a, err := c.do(ctx, &call{
		method: http.MethodPost, path: path, query: q.Values, body: body,
		header: http.Header{"Content-Type": {framesType}},
	})
	if err != nil {
		return nil, err
	}
	var stored struct {
		Messages []Placement `json:"messages"`
	}
	if err := a.json(&stored); err != nil {
		return nil, err
	}
	if len(stored.Messages) != len(ms) {
		return nil, core.Errorf(core.CodeInternal, "cannot understand the answer to a publish of %d messages: it places %d", len(ms), len(stored.Messages))
	}
	return stored.Messages, nil
}

func frames(ms []Message) ([]byte, error) {
	var body []byte
	for i := range ms {
		m, err := ms[i].encode()
		if err != nil {
			return nil, err
		}
		if body == nil {
			body = make([]byte, 0, len(m.Block())*len(ms))
		}
		body = append(body, m.Block()...)
	}
	return body, nil
}

// publishTo uses the call for single messages, the only one that takes a
// partition. The payload is the body; the rest must fit into query and headers.
func (c *Client) publishTo(ctx context.Context, topic string, m *Message, p publishing) (at Placement, err error) {
	path, err := topicPath(topic, "/messages")
	if err != nil {
		return at, err
	}
	header, err := m.http()
	if err != nil {
		return at, err
	}
	q := newQuery()
	q.duration("wait", p.wait)
	q.int("partition", int64(p.partition.Value))
	if m.Key != nil {
		q.Set("key", string(m.Key))
	}
	if m.Sender != "" {
		q.Set("sender", m.Sender)
	}
	if m.ID != "" {
		q.Set("id", m.ID)
	}
	a, err := c.do(ctx, &call{method: http.MethodPost, path: path, query: q.Values, header: header, body: m.Payload})
	if err != nil {
		return at, err
	}
	err = a.json(&at)
	return at, err
}

// http is m's headers as those of a request, or core.CodeInvalidRequest where
// HTTP has no way to carry one as it is.
func (m *Message) http() (http.Header, error) {
	if _, err := m.encode(); err != nil { // the contract's own bounds
		return nil, err
	}
	header := http.Header{}
	if m.ContentType != "" {
		if !plainValue(m.ContentType) {
			return nil, core.Invalid("content-type", "cannot send content type %.100q to a partition: HTTP cannot carry it", m.ContentType)
		}
		header.Set("Content-Type", m.ContentType)
	}
	for _, h := range m.Headers {
		if !plainName(h.Name) || !plainValue(h.Value) {
			return nil, core.Invalid("headers", "cannot send header %.40q: %.100q to a partition: HTTP cannot carry it; without ToPartition it can be sent", h.Name, h.Value)
		}
		header.Add("Podmq-Meta-"+h.Name, h.Value)
	}
	return header, nil
}

// plainName reports whether HTTP carries a name as it is (RFC 9110 §5.6.2): it
// arrives in lower case.
func plainName(name string) bool {
	for i := 0; i < len(name); i++ {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0:
		default:
			return false
		}
	}
	return true
}

// plainValue reports whether HTTP carries a header's value as it is: no control
// characters, and no spaces around it (RFC 9110 §5.5).
func plainValue(value string) bool {
	for i := 0; i < len(value); i++ {
		if c := value[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return strings.Trim(value, " \t") == value
}
