package transport

import (
	"errors"
	"net"
	"os"
	"syscall"

	"github.com/podmq/podmq/pkg/transport/nonblock"
)

// respond collects an answer, or writes it at once when it is large.
func (c *conn) respond(r *response, keep bool) {
	if c.out == nil {
		c.out = c.server.buffers.get()
	}
	c.out.b = c.server.appendHead(c.out.b, r, &c.call, keep)
	switch {
	case c.call.header.IsHead():
	case len(r.body) >= vectorFrom || len(r.blocks) > 0:
		_ = c.write(r)
		return
	default:
		c.out.b = append(c.out.b, r.body...)
	}
	if len(c.out.b) >= flushFrom {
		_ = c.flush()
	}
}

// flush writes what was collected. It comes before everything that blocks.
func (c *conn) flush() error {
	if c.out == nil || len(c.out.b) == 0 {
		return c.writeErr
	}
	return c.write(nil)
}

// keepParts is how many parts' memory a connection keeps for later.
const keepParts = 64

// write writes what was collected, and then the body of r, if that is not nil.
// After an error nothing more is written: what was answered in part must not be
// continued.
func (c *conn) write(r *response) error {
	if c.writeErr == nil {
		before := c.moment.Load()
		c.enter(sending)
		c.parts = append(c.parts, c.out.b)
		if r != nil {
			c.parts = r.appendBody(c.parts)
		}
		if err := c.writeParts(); c.writeErr == nil {
			c.writeErr = err
		}
		clear(c.parts)
		c.parts, c.unsent = c.parts[:0], nil
		if cap(c.parts) > keepParts {
			c.parts = nil
		}
		c.moment.Store(before)
	}
	c.server.buffers.put(c.out)
	c.out = nil
	return c.writeErr
}

func (c *conn) writeParts() error {
	if c.raw == nil {
		all := net.Buffers(c.parts)
		_, err := all.WriteTo(c.nc)
		return err
	}
	c.unsent = c.parts
	if c.fd != noFD && c.send(uintptr(c.fd)) {
		return nil // the usual case: there was room for all
	}
	return c.raw.Write(c.onRoom)
}

// send writes what is unsent to fd. It reports false to wait until there is room
// for more.
func (c *conn) send(fd uintptr) (done bool) {
	for len(c.unsent) > 0 {
		n, err := nonblock.Writev(int(fd), c.unsent)
		switch {
		case errors.Is(err, syscall.EAGAIN):
			return false
		case err != nil:
			c.writeErr = os.NewSyscallError("write", err)
			return true
		}
		c.sent(n)
	}
	return true
}

// sent takes n bytes off what is unsent.
func (c *conn) sent(n int) {
	for len(c.unsent) > 0 {
		if first := c.unsent[0]; n < len(first) {
			c.unsent[0] = first[n:]
			return
		}
		n -= len(c.unsent[0])
		c.unsent = c.unsent[1:]
	}
}
