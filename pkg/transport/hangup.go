package transport

import (
	"errors"
	"net"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// hangups tells connections whose client is gone. Neither fasthttp nor net does:
// a goroutine that waits in the engine does not read, and a read is not even a
// sure sign, because bytes of a pipelined request stand before the end.
//
// What counts is what the kernel reports for the descriptor. On a Unix socket
// HUP and ERR: RDHUP alone is a client that sends no more but still reads, such
// as nc -N. On TCP the kernel tells no difference between the two until a write
// fails, so there RDHUP counts as well. It also tells a connection that waits for
// a request that none will come (ready.go).
//
// Each connection is registered once, edge-triggered, and nothing happens until
// its client hangs up, so requests cost no system call for it. The epoll
// descriptor is itself watched by Go's poller: no thread is blocked in
// epoll_wait, and closing it ends the goroutine.
type hangups struct {
	file *os.File // the epoll descriptor
	raw  syscall.RawConn
	done sync.WaitGroup

	mu    sync.Mutex
	last  uint64
	conns map[uint64]*conn // by id; ids are never used again, as descriptors are
}

func newHangups() (*hangups, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // or os.NewFile would not let Go's poller watch it
		_ = unix.Close(fd)
		return nil, os.NewSyscallError("fcntl", err)
	}
	h := &hangups{file: os.NewFile(uintptr(fd), "epoll"), conns: make(map[uint64]*conn)}
	if h.raw, err = h.file.SyscallConn(); err != nil {
		_ = h.file.Close()
		return nil, err
	}
	h.done.Go(h.watch)
	return h, nil
}

// watch tells connections until the epoll descriptor is closed.
func (h *hangups) watch() {
	var events [64]unix.EpollEvent
	for {
		var n int
		err := h.raw.Read(func(fd uintptr) bool {
			n, _ = unix.EpollWait(int(fd), events[:], 0) // it does not wait, so no signal interrupts it
			return n > 0
		})
		if err != nil {
			return
		}
		h.mu.Lock()
		for _, e := range events[:n] {
			if c := h.conns[uint64(uint32(e.Fd))|uint64(uint32(e.Pad))<<32]; c != nil {
				c.report(e.Events)
			}
		}
		h.mu.Unlock()
	}
}

// add watches a connection, if it has a descriptor at all.
func (h *hangups) add(c *conn) {
	raw := rawConn(c.nc)
	if raw == nil {
		return
	}
	h.mu.Lock()
	h.last++
	c.watched = h.last
	h.conns[c.watched] = c
	h.mu.Unlock()

	// HUP and ERR are always reported.
	e := unix.EpollEvent{Events: unix.EPOLLET | unix.EPOLLRDHUP, Fd: int32(uint32(c.watched)), Pad: int32(uint32(c.watched >> 32))}
	if h.control(raw, unix.EPOLL_CTL_ADD, &e) == nil {
		c.raw = raw
	}
}

// A socketConn is what *net.UnixConn and *net.TCPConn are.
type socketConn interface {
	net.Conn
	syscall.Conn
	CloseRead() error
	CloseWrite() error
}

// report tells the connection what the kernel said of it. Shared.
func (c *conn) report(events uint32) {
	if _, tcp := c.nc.(*net.TCPConn); tcp || events&(unix.EPOLLHUP|unix.EPOLLERR) != 0 {
		c.hangUp()
	}
	c.endOfInput()
}

// remove must come before the descriptor is closed: after that its number may be
// another's.
func (h *hangups) remove(c *conn) {
	if c.watched == 0 {
		return
	}
	_ = h.control(rawConn(c.nc), unix.EPOLL_CTL_DEL, nil)
	h.mu.Lock()
	delete(h.conns, c.watched)
	h.mu.Unlock()
}

// control fails when the kernel has no memory for it: then a hang-up of this
// connection is seen when the answer is written.
func (h *hangups) control(conn syscall.RawConn, op int, e *unix.EpollEvent) (err error) {
	outer := h.raw.Control(func(epoll uintptr) {
		inner := conn.Control(func(fd uintptr) { err = unix.EpollCtl(int(epoll), op, int(fd), e) })
		err = errors.Join(err, inner)
	})
	return errors.Join(err, outer)
}

func (h *hangups) close() {
	_ = h.file.Close()
	h.done.Wait()
}

// rawConn is nil for what is no socket.
func rawConn(nc net.Conn) syscall.RawConn {
	sc, ok := nc.(socketConn)
	if !ok {
		return nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}
