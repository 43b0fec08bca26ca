package main

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/podmq/podmq/pkg/core"
	"github.com/podmq/podmq/pkg/transport/client"
	"github.com/podmq/podmq/pkg/transport/loadgen"
)

// podmq is the broker of this repository. A consumer acknowledges with its next
// poll: two requests a message or batch, one of the producer's and one of the
// consumer's.
type podmq struct {
	process
	admin *client.Client
	tcp   string // the address of PODMQ_HTTP_ADDR
}

// podmqSettings are those that differ from the defaults: room for what a turn
// has on its way, and a log without a line a request.
var podmqSettings = []string{"PODMQ_MAX_BYTES=4GiB", "PODMQ_LOG_LEVEL=warn"}

func startPodMQ(ctx context.Context, s setting, program, dir string) (*podmq, error) {
	b := &podmq{process: process{network: "unix", address: filepath.Join(dir, "podmq.sock")}}
	var err error
	if b.tcp, err = freePort(); err != nil {
		return nil, err
	}
	c := s.command(serverCore, program)
	c.Env = append(c.Env, podmqSettings...)
	c.Env = append(c.Env, "PODMQ_SOCKET="+b.address, "PODMQ_HTTP_ADDR="+b.tcp, "PODMQ_METRICS_ADDR=127.0.0.1:0")
	if err := b.start(ctx, c); err != nil {
		return nil, err
	}
	b.admin, err = client.New(client.Config{Address: b.address})
	return b, err
}

const topic = "bench"

// A podmqWay is one way to use the broker.
type podmqWay struct {
	*podmq
	format loadgen.Format
	tcp    bool
	queue  bool // a queue group instead of an ordered one
	fleet  bool // groups that expire, as for a fan-out to plain subscribers
}

func (p podmqWay) prepare(ctx context.Context, w *work) error {
	err := p.admin.DeleteTopic(ctx, topic)
	if core.CodeOf(err) != core.CodeUnknownTopic && err != nil {
		return err
	}
	spec := core.TopicSpec{Partitions: core.Some(w.parts), Capacity: core.Some(core.MaxCapacity)}
	if _, err := p.admin.CreateTopic(ctx, topic, spec); err != nil {
		return err
	}
	for i := range w.groups {
		var g core.GroupSpec
		if p.queue {
			g.Type = core.Some(core.Queue)
		}
		if p.fleet {
			g.Expires = core.Some(time.Minute)
		}
		if _, err := p.admin.CreateGroup(ctx, topic, loadgen.Group(i), g); err != nil {
			return err
		}
	}
	// Every member first, and then load: nothing is handed over in a turn.
	for i := range w.consumers {
		if _, _, err := p.admin.Join(ctx, topic, loadgen.Group(i%w.groups), loadgen.Member(i)); err != nil {
			return err
		}
	}
	return nil
}

func (p podmqWay) talks(ctx context.Context, w *work, m *loadgen.Meter) ([]loadgen.Talk, error) {
	b := loadgen.Broker{Network: p.network, Address: p.address, Topic: topic, Format: p.format}
	if p.tcp {
		b.Network, b.Address = "tcp", p.podmq.tcp
	}
	return b.Talks(ctx, m)
}

func (p podmqWay) left(ctx context.Context, w *work) (n int, err error) {
	t, err := p.admin.Topic(ctx, topic)
	if err != nil {
		return 0, err
	}
	if len(t.Partitions) != w.parts {
		return 0, errors.New("cannot find all partitions")
	}
	for _, part := range t.Partitions {
		for _, g := range part.Groups {
			n += int(g.Lag)
		}
	}
	return n, nil
}
