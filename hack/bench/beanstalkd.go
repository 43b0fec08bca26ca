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

	"github.com/podmq/podmq/pkg/transport/loadgen"
)

// beanstalkd has put, reserve and delete, each of one job, and can be pipelined:
// a consumer's write deletes the jobs it has and reserves the next. Only the
// first reserve of a write waits; the others take what is there.
type beanstalkd struct {
	process
	restart func() error // there is no command to empty a tube
}

// beanstalkdSettings allow jobs of more than 64 KiB.
var beanstalkdSettings = []string{"-z", "1048576"}

func startBeanstalkd(ctx context.Context, s setting, dir string) (*beanstalkd, error) {
	path := filepath.Join(dir, "beanstalkd.sock")
	b := &beanstalkd{process: process{network: "unix", address: path}}
	b.restart = func() error {
		if b.cmd != nil {
			b.stop()
		}
		args := append([]string{"-l", "unix:" + path}, beanstalkdSettings...)
		return b.start(ctx, s.command(serverCore, "beanstalkd", args...))
	}
	return b, b.restart()
}

func (b *beanstalkd) prepare(ctx context.Context, w *work) error {
	n, err := b.left(ctx, w)
	if err == nil && n > 0 {
		return b.restart()
	}
	return err
}

func (b *beanstalkd) talks(ctx context.Context, w *work, m *loadgen.Meter) ([]loadgen.Talk, error) {
	conns, err := loadgen.DialAll(ctx, b.network, b.address, w.consumers+w.producers)
	if err != nil {
		return nil, err
	}
	for _, c := range conns {
		if err := converse(c, "use bench\r\n", "USING bench\r\n", "watch bench\r\n", "WATCHING 2\r\n", "ignore default\r\n", "WATCHING 1\r\n"); err != nil {
			return nil, err
		}
	}
	return m.Pair(conns, func(int) loadgen.Session {
		return &beanstalkdConsumer{sink: m.Sink(), batch: w.batch}
	}, func(int) loadgen.Session {
		return &beanstalkdProducer{source: m.Source()}
	}), nil
}

// converse says and expects by turns.
func converse(nc net.Conn, words ...string) error {
	for i := 0; i < len(words); i += 2 {
		if _, err := nc.Write([]byte(words[i])); err != nil {
			return err
		}
		got := make([]byte, len(words[i+1]))
		if n, err := nc.Read(got); err != nil || string(got) != words[i+1] {
			return fmt.Errorf("cannot go on: %q was answered with %q: %w", words[i], got[:n], err)
		}
	}
	return nil
}

func (b *beanstalkd) left(ctx context.Context, _ *work) (n int, err error) {
	nc, err := (&net.Dialer{}).DialContext(ctx, b.network, b.address)
	if err != nil {
		return 0, err
	}
	defer nc.Close()
	if _, err := nc.Write([]byte("stats\r\n")); err != nil {
		return 0, err
	}
	in := bufio.NewScanner(nc)
	for in.Scan() {
		name, value, _ := strings.Cut(in.Text(), ": ")
		if name == "current-jobs-ready" || name == "current-jobs-reserved" {
			of, err := strconv.Atoi(value)
			if err != nil {
				return 0, err
			}
			n += of
		}
		if name == "current-jobs-buried" {
			return n, nil
		}
	}
	return 0, fmt.Errorf("cannot read stats: %w", in.Err())
}

type beanstalkdProducer struct {
	source *loadgen.Source
	stored int
}

func (p *beanstalkdProducer) Say(now int64, out []byte) ([]byte, int64) {
	yes, again := p.source.Next(now)
	if !yes {
		return out, again
	}
	for range p.source.Batch {
		out = append(out, "put 0 0 60 "...)
		out = strconv.AppendInt(out, int64(p.source.Size), 10)
		out = append(out, "\r\n"...)
		out = p.source.AppendPayload(out)
		out = append(out, "\r\n"...)
	}
	p.source.Sent()
	return out, loadgen.Never
}

func (p *beanstalkdProducer) Hear(now int64, in []byte) (used int, err error) {
	for {
		line, n := lineOf(in[used:])
		if n == 0 {
			return used, nil
		}
		if !bytes.HasPrefix(line, []byte("INSERTED ")) {
			return used, fmt.Errorf("cannot put: %s", line)
		}
		used += n
		if p.stored++; p.stored == p.source.Batch {
			p.stored = 0
			p.source.Stored(now)
		}
	}
}

type beanstalkdConsumer struct {
	sink     *loadgen.Sink
	batch    int
	reserved int    // answers to reserves that are still to come
	deleted  int    // answers to deletes that are still to come; they are first
	deletes  []byte // for the jobs that were reserved
	jobs     int
}

func (c *beanstalkdConsumer) Say(_ int64, out []byte) ([]byte, int64) {
	if c.reserved > 0 {
		return out, loadgen.Never
	}
	out = append(out, c.deletes...)
	c.deleted, c.jobs, c.deletes = c.jobs, 0, c.deletes[:0]
	out = append(out, "reserve-with-timeout 10\r\n"...)
	for range c.batch - 1 {
		out = append(out, "reserve-with-timeout 0\r\n"...)
	}
	c.reserved = c.batch
	return out, loadgen.Never
}

func (c *beanstalkdConsumer) Hear(now int64, in []byte) (used int, err error) {
	defer func() { c.sink.Heard(now) }()
	for {
		line, n := lineOf(in[used:])
		switch {
		case n == 0:
			return used, nil
		case c.deleted > 0:
			if string(line) != "DELETED" {
				return used, fmt.Errorf("cannot delete: %s", line)
			}
			c.deleted--
			used += n
			continue
		case string(line) == "TIMED_OUT":
			c.reserved--
			used += n
			continue
		}
		id, size, ok := job(line)
		if !ok {
			return used, fmt.Errorf("cannot reserve: %s", line)
		}
		if len(in) < used+n+size+2 {
			return used, nil
		}
		if err := c.sink.Got(now, in[used+n:used+n+size]); err != nil {
			return used, err
		}
		c.deletes = append(c.deletes, "delete "...)
		c.deletes = append(c.deletes, id...)
		c.deletes = append(c.deletes, "\r\n"...)
		c.jobs++
		c.reserved--
		used += n + size + 2
	}
}

// job reads RESERVED <id> <bytes>.
func job(line []byte) (id []byte, size int, ok bool) {
	rest, ok := bytes.CutPrefix(line, []byte("RESERVED "))
	if !ok {
		return nil, 0, false
	}
	id, text, ok := bytes.Cut(rest, []byte{' '})
	for _, d := range text {
		size = size*10 + int(d-'0')
	}
	return id, size, ok
}
