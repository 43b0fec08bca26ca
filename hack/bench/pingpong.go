package main

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"

	"github.com/podmq/podmq/pkg/transport/loadgen"
)

// pingPong is the ceiling: a bare Go server that reads as many bytes as a PodMQ
// request has and writes as many as its answer has, and does nothing else. The
// client's work is the same as with a broker; the messages go round inside it.
type pingPong struct {
	process
	sizes sizes
}

// sizes are how many bytes requests and answers have.
type sizes struct {
	publish, stored int
	poll, batch     int
}

// pingPongCommand is the argument with which this program is that server.
const pingPongCommand = "ping-pong"

func servePingPong(path string) error {
	l, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	for {
		nc, err := l.Accept()
		if err != nil {
			return err
		}
		go exchange(nc)
	}
}

// exchange serves one connection, which begins with the two sizes.
func exchange(nc net.Conn) {
	defer nc.Close()
	var lengths [8]byte
	if _, err := io.ReadFull(nc, lengths[:]); err != nil {
		return
	}
	request := make([]byte, binary.BigEndian.Uint32(lengths[:]))
	answer := make([]byte, binary.BigEndian.Uint32(lengths[4:]))
	for {
		if _, err := io.ReadFull(nc, request); err != nil {
			return
		}
		if _, err := nc.Write(answer); err != nil {
			return
		}
	}
}

func startPingPong(ctx context.Context, s setting, dir string) (*pingPong, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &pingPong{process: process{network: "unix", address: filepath.Join(dir, "pingpong.sock")}}
	return p, p.start(ctx, s.command(serverCore, self, pingPongCommand, p.address))
}

func (p *pingPong) prepare(context.Context, *work) error { return nil }

func (p *pingPong) left(context.Context, *work) (int, error) { return 0, nil }

func (p *pingPong) talks(ctx context.Context, w *work, m *loadgen.Meter) ([]loadgen.Talk, error) {
	conns, err := loadgen.DialAll(ctx, p.network, p.address, w.consumers+w.producers)
	if err != nil {
		return nil, err
	}
	for i, c := range conns {
		request, answer := p.sizes.publish, p.sizes.stored
		if i < w.consumers {
			request, answer = p.sizes.poll, p.sizes.batch
		}
		b := binary.BigEndian.AppendUint32(nil, uint32(request))
		if _, err := c.Write(binary.BigEndian.AppendUint32(b, uint32(answer))); err != nil {
			return nil, err
		}
	}
	q := &loop{}
	if w.consumers == 0 {
		q = nil
	}
	return m.Pair(conns, func(int) loadgen.Session {
		return &taker{sink: m.Sink(), loop: q, batch: w.batch, request: make([]byte, p.sizes.poll), answer: p.sizes.batch}
	}, func(int) loadgen.Session {
		return &giver{source: m.Source(), loop: q, request: p.sizes.publish, answer: p.sizes.stored}
	}), nil
}

// A loop hands messages from givers to takers, inside the client.
type loop struct {
	mu    sync.Mutex
	ready []stamp
}

// A stamp is what a payload begins with.
type stamp [loadgen.MinPayload]byte

func (q *loop) give(stamps []stamp) {
	if q == nil {
		return
	}
	q.mu.Lock()
	q.ready = append(q.ready, stamps...)
	q.mu.Unlock()
}

func (q *loop) take(n int, to []stamp) []stamp {
	q.mu.Lock()
	n = min(n, len(q.ready))
	from := len(q.ready) - n
	to = append(to[:0], q.ready[from:]...)
	q.ready = q.ready[:from]
	q.mu.Unlock()
	return to
}

type giver struct {
	source          *loadgen.Source
	loop            *loop
	request, answer int
	stamps          []stamp
}

func (g *giver) Say(now int64, out []byte) ([]byte, int64) {
	yes, again := g.source.Next(now)
	if !yes {
		return out, again
	}
	from := len(out)
	g.stamps = g.stamps[:0]
	for range g.source.Batch {
		at := len(out)
		out = g.source.AppendPayload(out)
		g.stamps = append(g.stamps, stamp(out[at:]))
	}
	g.source.Sent()
	for len(out)-from < g.request {
		out = append(out, make([]byte, g.request-(len(out)-from))...)
	}
	return out, loadgen.Never
}

func (g *giver) Hear(now int64, in []byte) (used int, err error) {
	if len(in) < g.answer {
		return 0, nil
	}
	g.loop.give(g.stamps)
	g.source.Stored(now)
	return g.answer, nil
}

type taker struct {
	sink    *loadgen.Sink
	loop    *loop
	batch   int
	request []byte
	answer  int
	stamps  []stamp
	asked   bool
}

func (t *taker) Say(_ int64, out []byte) ([]byte, int64) {
	if t.asked {
		return out, loadgen.Never
	}
	if t.stamps = t.loop.take(t.batch, t.stamps); len(t.stamps) == 0 {
		return out, loadgen.Soon
	}
	t.asked = true
	return append(out, t.request...), loadgen.Never
}

func (t *taker) Hear(now int64, in []byte) (used int, err error) {
	if len(in) < t.answer {
		return 0, nil
	}
	t.asked = false
	for i := range t.stamps {
		if err := t.sink.Got(now, t.stamps[i][:]); err != nil {
			return 0, err
		}
	}
	t.sink.Heard(now)
	return t.answer, nil
}
