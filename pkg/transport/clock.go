package transport

import (
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// limits are how long a connection may take for a part of its work before it is
// closed. Waiting for the next request has none: on this machine a client that
// is gone is seen (hangup.go), and closing a connection that a client keeps for
// later only makes errors.
type limits struct {
	head  time.Duration // from a request's first byte to the end of its head
	body  time.Duration // from there to the end of its body
	write time.Duration // for one write of answers
	sweep time.Duration // how often these are looked after
}

var defaultLimits = limits{head: 10 * time.Second, body: 30 * time.Second, write: 30 * time.Second, sweep: time.Second}

func (l *limits) of(p phase) time.Duration {
	switch p {
	case receivingHead:
		return l.head
	case receivingBody:
		return l.body
	case sending:
		return l.write
	}
	return 0
}

// A phase is what a connection is doing.
type phase int64

const (
	idle phase = iota // between requests
	receivingHead
	receivingBody
	working // for the engine, or parked in it
	sending

	phaseBits = 3
)

// A clock is the coarse time by which limits are kept, and the date that stands
// in answers. One goroutine moves it, so that a request reads no clock for them.
type clock struct {
	start time.Time
	now   atomic.Int64 // ns since start
	date  atomic.Pointer[[]byte]
}

func newClock() *clock {
	c := &clock{start: time.Now()}
	c.tick(c.start)
	return c
}

func (c *clock) tick(now time.Time) {
	c.now.Store(int64(now.Sub(c.start)))
	line := append(fasthttp.AppendHTTPDate([]byte("Date: "), now.UTC()), "\r\n"...)
	c.date.Store(&line)
}

// moment is a phase and when it began, in one word that can be shared.
func (c *clock) moment(p phase) int64 { return c.now.Load()<<phaseBits | int64(p) }

// overdue reports whether what began at m has outlasted its limit.
func (c *clock) overdue(m int64, l *limits) bool {
	limit := l.of(phase(m & (1<<phaseBits - 1)))
	return limit > 0 && c.now.Load()-m>>phaseBits > int64(limit)
}

// sweep moves the clock and ends overdue connections, until the server stops.
func (s *Server) sweep() {
	t := time.NewTicker(s.limits.sweep)
	defer t.Stop()
	for {
		select {
		case now := <-t.C:
			s.clock.tick(now)
			s.mu.Lock()
			for c := range s.conns {
				if s.clock.overdue(c.moment.Load(), &s.limits) {
					c.expire()
				}
			}
			s.mu.Unlock()
		case <-s.swept:
			return
		}
	}
}
