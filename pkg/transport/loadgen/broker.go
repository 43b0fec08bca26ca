package loadgen

import (
	"context"
	"fmt"
	"net"
)

// A Broker is where a PodMQ broker is, and what of it is used. The topic and its
// groups exist, and so do the members that consumers are.
type Broker struct {
	Network string // "unix" or "tcp"
	Address string
	Topic   string
	Format  Format
}

// Group is the name of a run's group, from 0.
func Group(i int) string { return fmt.Sprintf("g%d", i) }

// Member is the name of a run's consumer, from 0. Consumer i is a member of group
// i mod the number of groups.
func Member(i int) string { return fmt.Sprintf("c%d", i) }

// Talks are the connections of a run with a PodMQ broker.
func (b *Broker) Talks(ctx context.Context, m *Meter) ([]Talk, error) {
	conns, err := DialAll(ctx, b.Network, b.Address, m.work.Consumers+m.work.Producers)
	if err != nil {
		return nil, err
	}
	return m.Pair(conns, func(i int) Session {
		return NewConsumer(b.Topic, Group(i%m.work.Groups), Member(i), m.Sink(), m.work.Batch, b.Format)
	}, func(int) Session {
		return NewProducer(b.Topic, m.Source(), b.Format)
	}), nil
}

// Pair gives each of a run's connections its session: consumers first, as their
// polls are to be parked when the first message comes.
func (m *Meter) Pair(conns []net.Conn, consumer, producer func(i int) Session) (talks []Talk) {
	for i, c := range conns {
		if i < m.work.Consumers {
			talks = append(talks, Talk{Conn: c, Session: consumer(i)})
		} else {
			talks = append(talks, Talk{Conn: c, Session: producer(i - m.work.Consumers)})
		}
	}
	return talks
}
