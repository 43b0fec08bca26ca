package transport

import (
	"errors"
	"io"
	"net"
	"net/http/httputil"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/podmq/podmq/pkg/core"
)

// discardUpTo is how large the body of a refused request may be for it to be
// read away, so that the connection can be used again.
const discardUpTo = 64 << 10

// Read implements io.Reader for the connection's bufio.Reader. It comes when
// that has no more bytes: so all answers that were collected are written first.
func (c *conn) Read(p []byte) (int, error) {
	if err := c.flush(); err != nil {
		c.readErr = err
		return 0, err
	}
	if c.phase() == idle && c.server.stops() {
		// Shutdown looked while the answers above were being written, and left
		// this connection alone.
		c.readErr = net.ErrClosed
		return 0, net.ErrClosed
	}
	read := c.nc.Read
	if c.fd != noFD {
		read = c.readNow
	}
	n, err := read(p)
	if err != nil && !errors.Is(err, errDrained) {
		c.readErr = err
	}
	if n > 0 && c.phase() == idle {
		c.enter(receivingHead)
	}
	return n, err
}

// nextHead reads the head of the next request. When there is none, or none that
// can be understood, the connection has ended.
func (c *conn) nextHead() bool {
	c.cutShort = false
	if c.in.Buffered() > 0 {
		c.enter(receivingHead)
	} else if !c.rests() {
		return false
	}
	if c.call.readSameHead() {
		return true
	}
	err := c.call.header.Read(c.in)
	if err == nil {
		return true
	}
	if c.readErr == nil && !c.cutShort {
		c.refuseHead(err)
	}
	return false
}

// rests prepares the connection for waiting for its next request, and reports
// whether it may.
func (c *conn) rests() bool {
	c.enter(idle)
	return !c.server.stops()
}

// park gives the reader away if nothing stands in it, because the connection is
// about to wait, maybe for long.
func (c *conn) park() {
	if c.in != nil && c.in.Buffered() == 0 {
		c.server.readers.put(c.in)
		c.in = nil
	}
}

// unpark undoes it.
func (c *conn) unpark() {
	if c.in == nil {
		c.in = c.server.readers.get(c)
	}
}

// refuseHead answers what is no request.
func (c *conn) refuseHead(err error) {
	e := core.Errorf(core.CodeInvalidRequest, "cannot read the request, it is not HTTP/1.1 as we understand it: %.200s", reasonOf(err))
	var small *fasthttp.ErrSmallBuffer
	if errors.As(err, &small) {
		e = core.Errorf(core.CodeTooLarge, "cannot take a request line and headers of more than %d bytes", readSize).With("max_bytes", readSize)
	}
	c.call.header.Reset() // of the request as far as it was understood
	r := c.call.problem(e)
	c.server.metrics.observe(nil, r.status, 0)
	c.respond(&r, false)
	c.lingers = true
}

// reasonOf is the innermost error: what fasthttp says of a parse error around it
// is the whole buffer.
func reasonOf(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}

// readBody reads the request's body, of at most limit bytes, into k.body, which
// stays valid until the call is reset. A body of more than freeOfBudget bytes
// is admitted first; wait is how long the call waits anyway.
func (k *call) readBody(limit int, wait time.Duration) error {
	in := k.conn.in
	n := k.header.ContentLength()
	switch {
	case n > limit:
		return tooLargeBody(n, limit)
	case n == chunked:
		return k.readChunked(limit, wait)
	case n <= 0:
		k.bodyRead = true
		return nil
	case n <= in.Buffered():
		k.body, _ = in.Peek(n) // it can stay where it is: nothing is read before the next request
		_, _ = in.Discard(n)
		k.bodyRead = true
		return nil
	}
	if n > freeOfBudget {
		if err := k.admit(k.server.bodies, int64(n), wait); err != nil {
			return err
		}
	}
	if err := k.sayContinue(); err != nil {
		return err
	}
	k.bodyBuffer = k.server.buffers.get()
	k.body = k.bodyBuffer.sized(n)
	return k.receive(func() error {
		_, err := io.ReadFull(in, k.body)
		return err
	})
}

// chunked is what fasthttp says for the length of a body that comes in chunks.
const chunked = -1

// readChunked reads a body of unknown length. It takes the budget for the
// longest one as soon as it is not small, and gives back the rest when it knows.
func (k *call) readChunked(limit int, wait time.Duration) error {
	c := k.conn
	if err := k.sayContinue(); err != nil {
		return err
	}
	k.bodyBuffer = c.server.buffers.get()
	src := httputil.NewChunkedReader(c.in)
	n, err := k.readUpTo(src, min(limit, freeOfBudget)+1)
	if err == nil && n > freeOfBudget && limit > freeOfBudget {
		if err := k.admit(k.server.bodies, int64(limit), wait); err != nil {
			return err
		}
		n, err = k.readUpTo(src, limit+1)
		k.keepOfBudget(int64(n))
	}
	if n > limit {
		return tooLargeBody(n, limit)
	}
	if !errors.Is(err, io.EOF) {
		return k.broken(err)
	}
	k.body = k.bodyBuffer.b[:n]
	return k.receive(func() error { return k.header.ReadTrailer(c.in) })
}

// readUpTo reads until the body's buffer holds n bytes. io.EOF: it ended before.
func (k *call) readUpTo(src io.Reader, n int) (have int, err error) {
	b := k.bodyBuffer
	k.conn.enter(receivingBody)
	defer k.conn.enter(working)
	for len(b.b) < n && err == nil {
		if len(b.b) == cap(b.b) {
			b.grow(min(2*cap(b.b), n))
		}
		var more int
		more, err = src.Read(b.b[len(b.b):min(cap(b.b), n)])
		b.b = b.b[:len(b.b)+more]
	}
	return len(b.b), err
}

// receive runs read, which ends the body, under the body's time limit.
func (k *call) receive(read func() error) error {
	k.conn.enter(receivingBody)
	err := read()
	k.conn.enter(working)
	if err != nil {
		return k.broken(err)
	}
	k.bodyRead = true
	return nil
}

// broken is what becomes of a request whose body did not come whole: when the
// network ended it there is nobody to answer.
func (k *call) broken(err error) error {
	if k.conn.readErr != nil {
		k.conn.hangUp()
		return k.conn.readErr
	}
	return core.Errorf(core.CodeInvalidRequest, "cannot read the body: %.200s", reasonOf(err))
}

// sayContinue tells a client to send the body, if it asked (curl does for more
// than 1 MiB).
func (k *call) sayContinue() error {
	if !k.expects() {
		return nil
	}
	c := k.conn
	if c.out == nil {
		c.out = c.server.buffers.get()
	}
	c.out.b = append(c.out.b, "HTTP/1.1 100 Continue\r\n\r\n"...)
	return c.flush()
}

func (k *call) expects() bool {
	return k.header.IsHTTP11() && equalFold(k.header.Peek("Expect"), "100-continue")
}

// unread reports whether bytes of the body may still come.
func (k *call) unread() bool { return !k.bodyRead && k.header.ContentLength() != 0 && k.hasBody() }

func (k *call) hasBody() bool {
	return k.header.ContentLength() > 0 || k.header.ContentLength() == chunked
}

// unreadTooMuch reports whether more of the body may come than is read away. One
// that waits for our 100 Continue may come or not: nobody can tell what the next
// byte is.
func (k *call) unreadTooMuch() bool {
	if !k.unread() {
		return false
	}
	n := k.header.ContentLength()
	return n == chunked || n > discardUpTo || k.expects()
}

// discardBody reads away what a refused request left unread, and reports whether
// it could.
func (k *call) discardBody() bool {
	if !k.unread() {
		return true
	}
	return k.receive(func() error {
		_, err := k.conn.in.Discard(k.header.ContentLength())
		return err
	}) == nil
}

// noBody reads the body of a call that takes none.
func (k *call) noBody() error {
	if !k.hasBody() {
		k.bodyRead = true
		return nil
	}
	if err := k.readBody(freeOfBudget, 0); err != nil || len(k.body) == 0 {
		return err
	}
	return core.Errorf(core.CodeInvalidRequest, "cannot use a body of %d bytes here: this call takes its values in the query", len(k.body))
}

func tooLargeBody(n, most int) error {
	return core.Errorf(core.CodeTooLarge, "cannot take a body of %d bytes: the most is %d", n, most).
		With("bytes", n).With("max_bytes", most)
}
