package transport

import (
	"bufio"
	"context"
	"log/slog"
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// readSize is how much one read brings at most: most requests whole, batches
	// among them. It bounds a head, for which headers of 16 KiB and a query with a
	// key of 1 KiB, percent-encoded, or with many receipts must have room.
	readSize = 64 << 10

	// flushFrom is when collected answers are written even though more requests
	// stand in the read buffer.
	flushFrom = 64 << 10
	// vectorFrom is the size from which an answer's body, or a message in it, is
	// written from where it lies, and no longer copied behind what comes before.
	vectorFrom = 16 << 10
)

// A conn is one connection. The goroutine that runs serve owns it, except for
// the fields that are said to be shared.
//
// It is the context of its calls, so that no request allocates one: it is done
// when the client hangs up, and when the server cuts it off.
type conn struct {
	server  *Server
	nc      net.Conn
	watched uint64 // its id for hang-ups, 0 if it is not watched

	moment    atomic.Int64  // shared: phase and its begin, see clock
	ended     atomic.Bool   // shared: done is closed
	inputEnds atomic.Bool   // shared: the client sends no more, see ready.go
	isCut     atomic.Bool   // shared: the server wants it gone now
	done      chan struct{} // shared

	// Of serving from within RawConn.Read, see ready.go.
	raw      syscall.RawConn               // nil: it is served by blocking reads
	onReady  func(fd uintptr) (leave bool) // ready, made once
	onRoom   func(fd uintptr) (done bool)  // send, made once
	fd       int                           // noFD outside
	drained  bool                          // all that was reported to us is read
	cutShort bool                          // a read had nothing to bring
	leaving  leaving

	in      *bufio.Reader // nil while the connection or its call waits and nothing stands in it
	readErr error         // the first error of the network

	out      *buffer  // answers not yet written; nil when there are none
	parts    [][]byte // of what is being written, and their memory
	unsent   [][]byte // those that are not yet written whole
	writeErr error    // the first error of the network
	lingers  bool     // it ends with linger

	call call
}

func newConn(s *Server, nc net.Conn) *conn {
	c := &conn{server: s, nc: nc, done: make(chan struct{}), fd: noFD}
	c.onReady, c.onRoom = c.ready, c.send
	c.call.conn = c
	c.call.server = s
	c.enter(idle)
	return c
}

// Deadline, Done, Err and Value make a conn a context.Context.
func (c *conn) Deadline() (time.Time, bool) { return time.Time{}, false }

// Done is closed when the client is gone.
func (c *conn) Done() <-chan struct{} { return c.done }

// Err is context.Canceled when the client is gone.
func (c *conn) Err() error {
	if c.gone() {
		return context.Canceled
	}
	return nil
}

// Value is nil.
func (c *conn) Value(any) any { return nil }

func (c *conn) gone() bool { return c.ended.Load() }

// lost reports whether there is nobody to answer.
func (c *conn) lost() bool { return c.gone() || c.readErr != nil || c.writeErr != nil }

// hangUp says that the client is gone. Shared.
func (c *conn) hangUp() {
	if c.ended.CompareAndSwap(false, true) {
		close(c.done)
	}
}

// longAgo is a deadline that has passed.
var longAgo = time.Unix(1, 0)

// expire ends what blocks on the network: it took too long. Shared.
func (c *conn) expire() { _ = c.nc.SetDeadline(longAgo) }

// rest ends the connection if no request has begun on it; another ends by itself
// after its answer, because the server is stopping. Shared.
func (c *conn) rest() {
	if c.phase() == idle {
		_ = c.nc.SetReadDeadline(longAgo)
	}
}

// cut ends the connection now, parked calls included. Shared.
func (c *conn) cut() {
	c.isCut.Store(true)
	c.hangUp()
	c.expire()
}

func (c *conn) enter(p phase) { c.moment.Store(c.server.clock.moment(p)) }

// phase is what it is doing. Shared.
func (c *conn) phase() phase { return phase(c.moment.Load() & (1<<phaseBits - 1)) }

// serve answers requests until the client or the server ends it.
func (c *conn) serve() {
	defer c.close()
	if c.raw == nil {
		for c.unpark(); c.nextHead() && c.exchange(); {
		}
	} else {
		for c.serveWaiting() {
		}
	}
	if c.lingers {
		c.linger()
	}
}

func (c *conn) close() {
	_ = c.flush()
	c.hangUp()
	c.server.hangups.remove(c)
	_ = c.nc.Close()
	if c.in != nil {
		c.server.readers.put(c.in)
	}
	c.server.release(c)
}

// exchange answers the request whose head was read, and reports whether another
// may follow.
func (c *conn) exchange() bool {
	s, k := c.server, &c.call
	began := time.Since(s.clock.start)
	c.enter(working)
	s.metrics.requested(began)
	defer k.reset()

	r, err := k.answer()
	c.unpark()
	if err != nil || c.lost() && k.batched {
		k.giveBack()
		if c.lost() {
			return false
		}
		r = k.problem(err)
	}
	s.metrics.observe(k.route, r.status, time.Since(s.clock.start)-began)
	if s.log.Enabled(c, slog.LevelDebug) {
		s.log.Debug("answering", "route", k.route.label(), "status", r.status, "error", err)
	}
	keep := c.keepsAlive()
	c.respond(&r, keep)
	if k.batched && c.flush() != nil {
		k.giveBack()
	}
	if !keep {
		unread := k.unread()
		k.reset() // nothing is held while the client goes on sending
		c.lingers = unread
		return false
	}
	return k.discardBody()
}

// keepsAlive reports whether another request may follow this one.
func (c *conn) keepsAlive() bool {
	k := &c.call
	return !k.header.ConnectionClose() && !k.unreadTooMuch() && !c.server.stops() && c.writeErr == nil
}

// linger is for a client that is still sending a request which was refused. A
// socket closed with bytes unread is reset, and the client might not read the
// answer: so we end our side and read away the rest, for a moment.
func (c *conn) linger() {
	if c.flush() != nil {
		return
	}
	half, ok := c.nc.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	_ = c.nc.SetReadDeadline(time.Now().Add(lingerFor))
	c.enter(idle) // so that a server which stops ends it
	b := c.server.buffers.get()
	defer c.server.buffers.put(b)
	trash := b.b[:cap(b.b)]
	for !c.isCut.Load() && !c.server.stops() {
		if _, err := c.nc.Read(trash); err != nil {
			return
		}
	}
}

const lingerFor = 2 * time.Second
