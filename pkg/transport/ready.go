package transport

import (
	"errors"
	"io"
	"os"
	"syscall"

	"github.com/podmq/podmq/pkg/transport/nonblock"
)

// A connection that waits for its next request could call Read, as others do:
// Go then tries to read, finds nothing, waits, and reads. The first of these
// system calls is in vain, and there would be one for each request. So
// connections are served from within RawConn.Read instead: it calls us when there
// may be something to read, and waits, for nothing, when we say that we have
// taken all.
//
// A read that brings less than was asked for has taken all: what a stream socket
// gets later the poller of Go reports anew (epoll(7), question 9), and it keeps
// for the next wait what it reports while we serve. There is one exception. The
// end of the stream is reported as well, but maybe together with the last bytes,
// and a short read does not tell it. hangups sees it on its own and says so
// through endOfInput.
//
// As long as RawConn.Read runs, nobody else may read: c.nc.Read would wait for
// ever. So what is served within is only requests that stand in the buffer whole.
// For any other we leave, and the connection blocks as connections do. Writing,
// deadlines and closing know no such rule.
//
// Within, the descriptor cannot be closed under us: system calls may use it.

// noFD says that we are not within RawConn.Read.
const noFD = -1

// errDrained is what a read within RawConn.Read says instead of waiting.
var errDrained = errors.New("nothing more to read now")

// A leaving is why RawConn.Read was left.
type leaving int

const (
	atEnd  leaving = iota // the connection has ended
	inHead                // the head of the next request has not come whole
	inBody                // its head was read, its body has not come whole
)

// serveWaiting serves requests and waits for them until one comes in pieces, and
// serves that one too. It reports whether another may follow.
func (c *conn) serveWaiting() bool {
	c.leaving = atEnd
	err := c.raw.Read(c.onReady)
	c.fd = noFD
	if err != nil {
		c.readErr = err
		return false
	}
	switch c.leaving {
	case inHead:
		return c.nextHead() && c.exchange()
	case inBody:
		return c.exchange()
	}
	return false
}

// ready serves the requests that can be read from fd. It reports false to wait
// for more, and true to leave, with c.leaving saying why.
func (c *conn) ready(fd uintptr) bool {
	c.fd, c.drained = int(fd), false
	c.unpark()
	for c.hasInput() {
		if !c.nextHead() {
			if c.cutShort {
				c.leaving = inHead
			}
			return true
		}
		if !c.bodyIsHere() {
			c.leaving = inBody
			return true
		}
		if !c.exchange() {
			return true
		}
	}
	// The read that found nothing has written what was answered.
	if c.readErr != nil || !c.rests() {
		return true
	}
	c.park()
	return false
}

// hasInput reports whether there is a byte of the next request.
func (c *conn) hasInput() bool {
	if c.in.Buffered() > 0 {
		return true
	}
	_, err := c.in.Peek(1)
	return err == nil
}

// bodyIsHere reports whether the body of the request whose head was read stands in
// the buffer whole.
func (c *conn) bodyIsHere() bool {
	n := c.call.header.ContentLength()
	return n != chunked && n <= c.in.Buffered()
}

// readNow reads what is there and does not wait.
func (c *conn) readNow(p []byte) (int, error) {
	if c.drained {
		c.cutShort = true
		return 0, errDrained
	}
	n, err := nonblock.Read(c.fd, p)
	switch {
	case errors.Is(err, syscall.EAGAIN):
		c.drained, c.cutShort = true, true
		return 0, errDrained
	case err != nil:
		return 0, os.NewSyscallError("read", err)
	case n == 0:
		return 0, io.EOF
	}
	// The flag counts as it is after the read: an end that comes later than this
	// is reported later than this.
	c.drained = n < len(p) && !c.inputEnds.Load()
	return n, nil
}

// endOfInput says that the client will send no more. What it sent may still be
// unread, and what became of that is for the connection's reads to find out: it
// is only made sure that there is one. For shutting down for reading what the
// client has shut down for writing changes nothing, but is reported to who waits
// for the socket. Shared.
func (c *conn) endOfInput() {
	if c.inputEnds.CompareAndSwap(false, true) {
		_ = c.nc.(socketConn).CloseRead()
	}
}
