package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/podmq/podmq/pkg/transport/loadgen"
)

// nats is NATS JetStream with memory storage, in a process of its own. It has no
// Unix sockets. A producer publishes with a reply subject and waits for the
// stream's answers; a batch is so many publishes in one write. A consumer acks
// each message, without asking for a confirmation, and pulls the next in the
// same write.
type nats struct {
	process
	conn    *natsgo.Conn
	streams jetstream.JetStream
}

// natsCommand is the argument with which this program is a NATS server.
const natsCommand = "nats-server"

// serveNATS runs a NATS server until a signal comes.
func serveNATS(address, dir string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return err
	}
	s, err := server.NewServer(&server.Options{
		Host: host, Port: n, NoLog: true, NoSigs: true,
		JetStream: true, StoreDir: dir, JetStreamMaxMemory: 8 << 30,
	})
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	s.Start()
	<-signals
	s.Shutdown()
	return nil
}

func startNATS(ctx context.Context, s setting, dir string) (*nats, error) {
	address, err := freePort()
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	b := &nats{process: process{network: "tcp", address: address}}
	if err := b.start(ctx, s.command(serverCore, self, natsCommand, address, dir)); err != nil {
		return nil, err
	}
	if b.conn, err = natsgo.Connect("nats://" + address); err != nil {
		return nil, err
	}
	b.streams, err = jetstream.New(b.conn)
	return b, err
}

func (b *nats) stop() {
	b.conn.Close()
	b.process.stop()
}

func (b *nats) prepare(ctx context.Context, w *work) error {
	if err := b.streams.DeleteStream(ctx, topic); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return err
	}
	_, err := b.streams.CreateStream(ctx, jetstream.StreamConfig{Name: topic, Subjects: []string{topic}, Storage: jetstream.MemoryStorage})
	if err != nil {
		return err
	}
	for i := range w.groups {
		_, err := b.streams.CreateConsumer(ctx, topic, jetstream.ConsumerConfig{
			Durable: loadgen.Group(i), AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: 1_000_000, MemoryStorage: true,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *nats) talks(ctx context.Context, w *work, m *loadgen.Meter) ([]loadgen.Talk, error) {
	conns, err := loadgen.DialAll(ctx, b.network, b.address, w.consumers+w.producers)
	if err != nil {
		return nil, err
	}
	for i, c := range conns {
		if err := greet(c, inbox(i)); err != nil {
			return nil, err
		}
	}
	return m.Pair(conns, func(i int) loadgen.Session {
		return newNATSConsumer(inbox(i), loadgen.Group(i%w.groups), w.batch, m.Sink())
	}, func(i int) loadgen.Session {
		s := m.Source()
		return &natsProducer{source: s, before: fmt.Appendf(nil, "PUB %s %s %d\r\n", topic, inbox(w.consumers+i), s.Size)}
	}), nil
}

func inbox(i int) string { return fmt.Sprintf("_INBOX.%d", i) }

// greet logs in and subscribes to the inbox.
func greet(nc net.Conn, inbox string) error {
	info := make([]byte, 64<<10)
	if n, err := nc.Read(info); err != nil || !bytes.HasPrefix(info[:n], []byte("INFO ")) {
		return fmt.Errorf("cannot understand NATS, which said %.100q: %w", info[:n], err)
	}
	return converse(nc, `CONNECT {"verbose":false,"pedantic":false,"headers":true,"no_responders":true,"protocol":1}`+"\r\nSUB "+inbox+" 1\r\nPING\r\n", "PONG\r\n")
}

func (b *nats) left(ctx context.Context, w *work) (n int, err error) {
	for i := range w.groups {
		c, err := b.streams.Consumer(ctx, topic, loadgen.Group(i))
		if err != nil {
			return 0, err
		}
		info, err := c.Info(ctx)
		if err != nil {
			return 0, err
		}
		n += info.NumAckPending + int(info.NumPending)
	}
	return n, nil
}

// A natsMessage is what the server sends: MSG, HMSG, PING, or +OK.
type natsMessage struct {
	ping    bool
	reply   []byte
	headers []byte
	payload []byte
}

// readNATS reads one message; n is 0 while it is not complete.
func readNATS(in []byte) (m natsMessage, n int, err error) {
	line, n := lineOf(in)
	if n == 0 {
		return m, 0, nil
	}
	switch {
	case string(line) == "PING":
		return natsMessage{ping: true}, n, nil
	case string(line) == "+OK" || bytes.HasPrefix(line, []byte("INFO ")) || string(line) == "PONG":
		return m, n, nil
	case bytes.HasPrefix(line, []byte("-ERR")):
		return m, 0, fmt.Errorf("cannot go on: NATS said %s", line)
	}
	withHeaders := line[0] == 'H' // HMSG subject sid [reply] headers total
	var words [8][]byte
	count := 0
	for rest, more := line, true; more && count < len(words); count++ {
		words[count], rest, more = bytes.Cut(rest, []byte{' '})
	}
	sizes := 1
	if withHeaders {
		sizes = 2
	}
	if count < 3+sizes {
		return m, 0, fmt.Errorf("cannot understand NATS, which said %.100q", line)
	}
	if count == 4+sizes {
		m.reply = words[3]
	}
	total := number(words[count-1])
	if len(in) < n+total+2 {
		return m, 0, nil
	}
	m.payload = in[n : n+total]
	if withHeaders {
		h := number(words[count-2])
		m.headers, m.payload = m.payload[:h], m.payload[h:]
	}
	return m, n + total + 2, nil
}

func number(text []byte) (n int) {
	for _, d := range text {
		n = n*10 + int(d-'0')
	}
	return n
}

const pong = "PONG\r\n"

type natsProducer struct {
	source *loadgen.Source
	before []byte
	stored int
	pinged bool
}

func (p *natsProducer) Say(now int64, out []byte) ([]byte, int64) {
	if p.pinged {
		p.pinged = false
		out = append(out, pong...)
	}
	yes, again := p.source.Next(now)
	if !yes {
		return out, again
	}
	for range p.source.Batch {
		out = append(out, p.before...)
		out = p.source.AppendPayload(out)
		out = append(out, "\r\n"...)
	}
	p.source.Sent()
	return out, loadgen.Never
}

func (p *natsProducer) Hear(now int64, in []byte) (used int, err error) {
	for {
		m, n, err := readNATS(in[used:])
		if n == 0 || err != nil {
			return used, err
		}
		used += n
		switch {
		case m.ping:
			p.pinged = true
		case m.payload == nil:
		case bytes.Contains(m.payload, []byte(`"error"`)) || m.headers != nil:
			return used, fmt.Errorf("cannot publish: %s%s", m.headers, m.payload)
		default:
			if p.stored++; p.stored == p.source.Batch {
				p.stored = 0
				p.source.Stored(now)
			}
		}
	}
}

type natsConsumer struct {
	sink     *loadgen.Sink
	batch    int
	pull     []byte // the whole request
	expected int    // messages of the pull that are still to come
	acks     []byte
	pinged   bool
}

// natsWait is how long a pull waits.
const natsWait = 10 * time.Second

func newNATSConsumer(inbox, group string, batch int, sink *loadgen.Sink) *natsConsumer {
	ask := fmt.Sprintf(`{"batch":%d,"expires":%d}`, batch, natsWait.Nanoseconds())
	return &natsConsumer{sink: sink, batch: batch, pull: fmt.Appendf(nil, "PUB $JS.API.CONSUMER.MSG.NEXT.%s.%s %s %d\r\n%s\r\n", topic, group, inbox, len(ask), ask)}
}

func (c *natsConsumer) Say(_ int64, out []byte) ([]byte, int64) {
	if c.pinged {
		c.pinged = false
		out = append(out, pong...)
	}
	out = append(out, c.acks...)
	c.acks = c.acks[:0]
	if c.expected == 0 {
		c.expected = c.batch
		out = append(out, c.pull...)
	}
	return out, loadgen.Never
}

func (c *natsConsumer) Hear(now int64, in []byte) (used int, err error) {
	defer func() { c.sink.Heard(now) }()
	for {
		m, n, err := readNATS(in[used:])
		if n == 0 || err != nil {
			return used, err
		}
		used += n
		switch {
		case m.ping:
			c.pinged = true
		case m.headers != nil && m.reply == nil: // 404 or 408: the pull is over
			c.expected = 0
		case m.payload == nil:
		default:
			if err := c.sink.Got(now, m.payload); err != nil {
				return used, err
			}
			c.acks = append(c.acks, "PUB "...)
			c.acks = append(c.acks, m.reply...)
			c.acks = append(c.acks, " 0\r\n\r\n"...)
			c.expected--
		}
	}
}
