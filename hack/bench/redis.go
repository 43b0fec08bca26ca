package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/podmq/podmq/pkg/transport/loadgen"
)

// redis is Redis Streams: XADD, and XACK with the next XREADGROUP in one write,
// so that a consumer needs one round trip a message or batch, as PodMQ's does.
// A batch is so many XADDs in one write, one XREADGROUP COUNT and one XACK of all
// its ids. Nothing is trimmed and nothing written to disk.
type redis struct{ process }

var redisSettings = []string{"--save", "", "--appendonly", "no", "--port", "0", "--maxclients", "20000"}

func startRedis(ctx context.Context, s setting, dir string) (*redis, error) {
	r := &redis{process{network: "unix", address: filepath.Join(dir, "redis.sock")}}
	args := append([]string{"--unixsocket", r.address, "--dir", dir}, redisSettings...)
	return r, r.start(ctx, s.command(serverCore, "redis-server", args...))
}

// do sends commands and returns the line of the last answer, for what is no load.
func (r *redis) do(ctx context.Context, commands ...string) (line string, err error) {
	nc, err := (&net.Dialer{}).DialContext(ctx, r.network, r.address)
	if err != nil {
		return "", err
	}
	defer nc.Close()
	in := bufio.NewReader(nc)
	for _, c := range commands {
		if _, err := fmt.Fprintf(nc, "%s\r\n", c); err != nil {
			return "", err
		}
		if line, err = in.ReadString('\n'); err != nil {
			return "", err
		}
		if line[0] == '-' {
			return "", fmt.Errorf("cannot do %q: %s", c, line)
		}
	}
	if line[0] == '*' { // of XPENDING's summary the first is the number
		line, err = in.ReadString('\n')
	}
	return strings.TrimSpace(line), err
}

func (r *redis) prepare(ctx context.Context, w *work) error {
	commands := []string{"FLUSHALL SYNC"}
	for i := range w.groups {
		commands = append(commands, fmt.Sprintf("XGROUP CREATE %s %s $ MKSTREAM", topic, loadgen.Group(i)))
	}
	_, err := r.do(ctx, commands...)
	return err
}

func (r *redis) talks(ctx context.Context, w *work, m *loadgen.Meter) ([]loadgen.Talk, error) {
	conns, err := loadgen.DialAll(ctx, r.network, r.address, w.consumers+w.producers)
	if err != nil {
		return nil, err
	}
	return m.Pair(conns, func(i int) loadgen.Session {
		return newRedisConsumer(loadgen.Group(i%w.groups), loadgen.Member(i), w.batch, m.Sink())
	}, func(int) loadgen.Session {
		return newRedisProducer(m.Source())
	}), nil
}

func (r *redis) left(ctx context.Context, w *work) (n int, err error) {
	for i := range w.groups {
		line, err := r.do(ctx, fmt.Sprintf("XPENDING %s %s", topic, loadgen.Group(i)))
		if err != nil {
			return 0, err
		}
		of, err := strconv.Atoi(strings.TrimPrefix(line, ":"))
		if err != nil {
			return 0, err
		}
		n += of
	}
	return n, nil
}

// appendCommand appends a command in Redis' protocol, as far as its words are
// known: more of them may follow.
func appendCommand(b []byte, words int, first ...string) []byte {
	b = fmt.Appendf(b, "*%d\r\n", words)
	for _, w := range first {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(w), w)
	}
	return b
}

type redisProducer struct {
	source *loadgen.Source
	before []byte // of an XADD, up to the payload
	stored int
}

func newRedisProducer(s *loadgen.Source) *redisProducer {
	before := appendCommand(nil, 5, "XADD", topic, "*", "p")
	return &redisProducer{source: s, before: fmt.Appendf(before, "$%d\r\n", s.Size)}
}

func (p *redisProducer) Say(now int64, out []byte) ([]byte, int64) {
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

func (p *redisProducer) Hear(now int64, in []byte) (used int, err error) {
	for {
		id, n, err := bulk(in[used:])
		if n == 0 || err != nil {
			return used, err
		}
		if len(id) == 0 {
			return used, fmt.Errorf("cannot add: %.100q", in[used:])
		}
		used += n
		if p.stored++; p.stored == p.source.Batch {
			p.stored = 0
			p.source.Stored(now)
		}
	}
}

type redisConsumer struct {
	sink     *loadgen.Sink
	read     []byte // the whole XREADGROUP
	group    string
	ids      []byte // $n\r\nID\r\n of each message to acknowledge
	got      int    // messages of the batch
	asked    bool
	acking   bool // the answer of XACK comes first
	expected int  // messages of the batch that are still to come
}

// redisWait is how long a read blocks.
const redisWait = 10 * time.Second

func newRedisConsumer(group, name string, batch int, sink *loadgen.Sink) *redisConsumer {
	read := appendCommand(nil, 11, "XREADGROUP", "GROUP", group, name, "COUNT", strconv.Itoa(batch),
		"BLOCK", strconv.FormatInt(redisWait.Milliseconds(), 10), "STREAMS", topic, ">")
	return &redisConsumer{sink: sink, read: read, group: group}
}

func (c *redisConsumer) Say(_ int64, out []byte) ([]byte, int64) {
	if c.asked {
		return out, loadgen.Never
	}
	c.asked = true
	if c.got > 0 {
		out = append(out, '*')
		out = strconv.AppendInt(out, int64(3+c.got), 10)
		out = append(out, "\r\n$4\r\nXACK\r\n"...)
		out = appendBulk(out, topic)
		out = appendBulk(out, c.group)
		out = append(out, c.ids...)
		c.acking = true
		c.got, c.ids = 0, c.ids[:0]
	}
	return append(out, c.read...), loadgen.Never
}

func appendBulk(b []byte, word string) []byte {
	b = append(b, '$')
	b = strconv.AppendInt(b, int64(len(word)), 10)
	b = append(b, "\r\n"...)
	b = append(b, word...)
	return append(b, "\r\n"...)
}

func (c *redisConsumer) Hear(now int64, in []byte) (used int, err error) {
	if c.acking {
		line, n := lineOf(in)
		if n == 0 {
			return 0, nil
		}
		if line[0] != ':' {
			return 0, fmt.Errorf("cannot acknowledge: %s", line)
		}
		c.acking = false
		used = n
	}
	if c.expected == 0 {
		n, err := c.begin(in[used:])
		if n == 0 || err != nil {
			return used, err
		}
		used += n
	}
	for c.expected > 0 {
		n, err := c.entry(now, in[used:])
		if err != nil {
			return used, err
		}
		if n == 0 {
			break
		}
		used += n
		if c.expected--; c.expected == 0 {
			c.asked = false
		}
	}
	c.sink.Heard(now)
	return used, nil
}

// begin reads what stands before the messages:
// *1 *2 $5 bench *n, or *-1 when there was nothing in time.
func (c *redisConsumer) begin(in []byte) (used int, err error) {
	line, used := lineOf(in)
	if used == 0 {
		return 0, nil
	}
	if string(line) == "*-1" {
		c.asked = false
		return used, nil
	}
	if string(line) != "*1" {
		return 0, fmt.Errorf("cannot read a batch that begins with %q", line)
	}
	for range 4 { // *2, $5, bench, *n
		var n int
		if line, n = lineOf(in[used:]); n == 0 {
			return 0, nil
		}
		used += n
	}
	c.expected, err = strconv.Atoi(string(line[1:]))
	return used, err
}

// entry reads a message: *2 $len ID *2 $1 p $size payload.
func (c *redisConsumer) entry(now int64, in []byte) (used int, err error) {
	_, n := lineOf(in)
	if n == 0 {
		return 0, nil
	}
	used = n
	from := used
	if _, n, err = bulk(in[used:]); n == 0 || err != nil {
		return 0, err
	}
	used += n
	id := in[from:used]
	if _, n = lineOf(in[used:]); n == 0 {
		return 0, nil
	}
	used += n
	if _, n, err = bulk(in[used:]); n == 0 || err != nil {
		return 0, err
	}
	used += n
	payload, n, err := bulk(in[used:])
	if n == 0 || err != nil {
		return 0, err
	}
	c.ids = append(c.ids, id...)
	c.got++
	return used + n, c.sink.Got(now, payload)
}

// lineOf returns the line at the start of in and its length with CRLF, 0 when it
// is not complete.
func lineOf(in []byte) (line []byte, n int) {
	end := bytes.IndexByte(in, '\n')
	if end < 1 {
		return nil, 0
	}
	return in[:end-1], end + 1
}

// bulk reads a bulk string, $n\r\n…\r\n; n is 0 when it is not complete.
func bulk(in []byte) (value []byte, n int, err error) {
	line, n := lineOf(in)
	if n == 0 {
		return nil, 0, nil
	}
	if line[0] != '$' {
		return nil, 0, fmt.Errorf("cannot go on: Redis said %.100q", line)
	}
	size := 0
	for _, d := range line[1:] {
		size = size*10 + int(d-'0')
	}
	if len(in) < n+size+2 {
		return nil, 0, nil
	}
	return in[n : n+size], n + size + 2, nil
}
