package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

// A Group is one consumer group, read together with its topic.
type Group struct {
	Group      string         `json:"group"`
	Type       core.GroupType `json:"type"`
	Generation int64          `json:"generation"`
	Strategy   core.Strategy  `json:"strategy"`
	Members    []Member       `json:"members"` // in the order of joining
	Cursors    []Cursor       `json:"cursors"`
}

// A Member is one consumer of a group and what it is assigned, which is nothing
// in a queue group: its members share the messages.
type Member struct {
	Member     string `json:"member"`
	Partitions []int  `json:"partitions"`
}

// A Cursor is where a group stands in one partition.
type Cursor struct {
	Partition int           `json:"partition"`
	Committed int64         `json:"committed"`
	Next      int64         `json:"next"`
	Lag       int64         `json:"lag"`
	Owner     string        `json:"owner"` // who holds the partition now, "" for nobody
	Lease     time.Duration `json:"-"`     // what is left of the lease that is out, 0 for none; lease_ms
}

// UnmarshalJSON reads the contract's form, in which the lease is lease_ms.
func (k *Cursor) UnmarshalJSON(b []byte) error {
	type plain Cursor
	wire := struct {
		*plain
		leaseJSON
	}{plain: (*plain)(k)}
	err := json.Unmarshal(b, &wire)
	k.Lease = wire.lease()
	return err
}

// A Membership is what a member is told when it joins.
type Membership struct {
	Member     string `json:"member"`
	Generation int64  `json:"generation"`
	Partitions []int  `json:"partitions"`
}

// CreateGroup makes a group at one instant across all partitions, or reports
// that it exists and is as spec says, but for spec.Start. core.CodeGroupExists
// when it differs.
func (c *Client) CreateGroup(ctx context.Context, topic, group string, spec core.GroupSpec) (created bool, err error) {
	path, err := groupPath(topic, group)
	if err != nil {
		return false, err
	}
	q := newQuery()
	optText(q, "type", spec.Type)
	optText(q, "start", spec.Start)
	optText(q, "strategy", spec.Strategy)
	optDuration(q, "session-timeout", spec.SessionTimeout)
	optDuration(q, "max-lease", spec.MaxLease)
	optDuration(q, "expires", spec.Expires)
	a, err := c.do(ctx, &call{method: http.MethodPut, path: path, query: q.Values})
	if err != nil {
		return false, err
	}
	return a.status == http.StatusCreated, nil
}

// DeleteGroup deletes a group; its backlog is released.
func (c *Client) DeleteGroup(ctx context.Context, topic, group string) error {
	path, err := groupPath(topic, group)
	if err != nil {
		return err
	}
	_, err = c.do(ctx, &call{method: http.MethodDelete, path: path})
	return err
}

// Group looks at one group.
func (c *Client) Group(ctx context.Context, topic, group string) (Group, error) {
	path, err := groupPath(topic, group)
	if err != nil {
		return Group{}, err
	}
	var g Group
	err = c.get(ctx, path, &g)
	return g, err
}

// Groups looks at all groups of a topic, by name.
func (c *Client) Groups(ctx context.Context, topic string) ([]Group, error) {
	path, err := topicPath(topic, "/groups")
	if err != nil {
		return nil, err
	}
	var list struct {
		Groups []Group `json:"groups"`
	}
	err = c.get(ctx, path, &list)
	return list.Groups, err
}

// Join makes a member, or reports that it is one. A poll joins as well.
func (c *Client) Join(ctx context.Context, topic, group, member string) (m Membership, joined bool, err error) {
	path, err := memberPath(topic, group, member)
	if err != nil {
		return m, false, err
	}
	a, err := c.do(ctx, &call{method: http.MethodPut, path: path})
	if err != nil {
		return m, false, err
	}
	err = a.json(&m)
	return m, a.status == http.StatusCreated, err
}

// Leave ends a membership. What the member has unsettled comes back at once and
// is not counted as an attempt. No error when it was no member.
func (c *Client) Leave(ctx context.Context, topic, group, member string) error {
	path, err := memberPath(topic, group, member)
	if err != nil {
		return err
	}
	_, err = c.do(ctx, &call{method: http.MethodDelete, path: path})
	return err
}
