package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

// A Topic is one topic, all of it read at one moment.
type Topic struct {
	Name       string             `json:"name"`
	Settings   core.TopicSettings `json:"-"`
	Partitions []Partition        `json:"partitions"`
}

// A Partition holds the offsets [Start, End).
type Partition struct {
	Partition int              `json:"partition"`
	Start     int64            `json:"start"`
	End       int64            `json:"end"`
	Backlog   int64            `json:"backlog"` // End - the slowest group's committed
	Bytes     int64            `json:"bytes"`
	Groups    []PartitionGroup `json:"groups"`
}

// A PartitionGroup is where one group stands in one partition.
type PartitionGroup struct {
	Group     string        `json:"group"`
	Committed int64         `json:"committed"`
	Next      int64         `json:"next"`
	Lag       int64         `json:"lag"`
	Owner     string        `json:"owner"` // who holds the partition now, "" for nobody
	Lease     time.Duration `json:"-"`     // what is left of the lease that is out, 0 for none; lease_ms
}

// CreateTopic makes a topic, or reports that it exists and is as spec says.
// core.CodeTopicExists when it differs, core.CodeAdminDisabled where the broker
// makes no topics for clients.
func (c *Client) CreateTopic(ctx context.Context, topic string, spec core.TopicSpec) (created bool, err error) {
	path, err := topicPath(topic)
	if err != nil {
		return false, err
	}
	q := newQuery()
	optInt(q, "partitions", spec.Partitions)
	optInt(q, "capacity", spec.Capacity)
	if spec.MaxBytes.Given {
		q.size("max-bytes", spec.MaxBytes.Value)
	}
	optDuration(q, "ack-timeout", spec.AckTimeout)
	a, err := c.do(ctx, &call{method: http.MethodPut, path: path, query: q.Values})
	if err != nil {
		return false, err
	}
	return a.status == http.StatusCreated, nil
}

// DeleteTopic deletes a topic with all that it holds; calls that wait on it end
// with core.CodeUnknownTopic.
func (c *Client) DeleteTopic(ctx context.Context, topic string) error {
	path, err := topicPath(topic)
	if err != nil {
		return err
	}
	_, err = c.do(ctx, &call{method: http.MethodDelete, path: path})
	return err
}

// Topic looks at one topic.
func (c *Client) Topic(ctx context.Context, topic string) (Topic, error) {
	path, err := topicPath(topic)
	if err != nil {
		return Topic{}, err
	}
	var t Topic
	err = c.get(ctx, path, &t)
	return t, err
}

// Topics looks at all topics, by name.
func (c *Client) Topics(ctx context.Context) ([]Topic, error) {
	var list struct {
		Topics []Topic `json:"topics"`
	}
	err := c.get(ctx, "/v1/topics", &list)
	return list.Topics, err
}

func (c *Client) get(ctx context.Context, path string, v any) error {
	a, err := c.do(ctx, &call{method: http.MethodGet, path: path})
	if err != nil {
		return err
	}
	return a.json(v)
}

// UnmarshalJSON reads the contract's form, in which durations are text.
func (t *Topic) UnmarshalJSON(b []byte) error {
	type plain Topic
	wire := struct {
		*plain
		Settings struct {
			Partitions int    `json:"partitions"`
			Capacity   int    `json:"capacity"`
			MaxBytes   int64  `json:"max_bytes"`
			AckTimeout string `json:"ack_timeout"`
		} `json:"settings"`
	}{plain: (*plain)(t)}
	if err := json.Unmarshal(b, &wire); err != nil {
		return err
	}
	s := &wire.Settings
	timeout, err := time.ParseDuration(s.AckTimeout)
	t.Settings = core.TopicSettings{Partitions: s.Partitions, Capacity: s.Capacity, MaxBytes: s.MaxBytes, AckTimeout: timeout}
	return err
}

// UnmarshalJSON reads the contract's form, in which the lease is lease_ms.
func (g *PartitionGroup) UnmarshalJSON(b []byte) error {
	type plain PartitionGroup
	wire := struct {
		*plain
		leaseJSON
	}{plain: (*plain)(g)}
	err := json.Unmarshal(b, &wire)
	g.Lease = wire.lease()
	return err
}

type leaseJSON struct {
	LeaseMs int64 `json:"lease_ms"`
}

func (l leaseJSON) lease() time.Duration { return time.Duration(l.LeaseMs) * time.Millisecond }
