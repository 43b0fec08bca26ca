package transport

import (
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
// fails, so there RDHUP counts as well.
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
				c.hangUp()
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
	e := unix.EpollEvent{Events: unix.EPOLLET, Fd: int32(uint32(c.watched)), Pad: int32(uint32(c.watched >> 32))}
	if _, tcp := c.nc.(*net.TCPConn); tcp {
		e.Events |= unix.EPOLLRDHUP
	}
	h.control(raw, unix.EPOLL_CTL_ADD, &e)
}

// remove must come before the descriptor is closed: after that its number may be
// another's.
func (h *hangups) remove(c *conn) {
	if c.watched == 0 {
		return
	}
	h.control(rawConn(c.nc), unix.EPOLL_CTL_DEL, nil)
	h.mu.Lock()
	delete(h.conns, c.watched)
	h.mu.Unlock()
}

func (h *hangups) control(conn syscall.RawConn, op int, e *unix.EpollEvent) {
	_ = h.raw.Control(func(epoll uintptr) {
		_ = conn.Control(func(fd uintptr) {
			// It fails when the kernel has no memory for it: then a hang-up of
			// this connection is seen when the answer is written.
			_ = unix.EpollCtl(int(epoll), op, int(fd), e)
		})
	})
}

func (h *hangups) close() {
	_ = h.file.Close()
	h.done.Wait()
}

func rawConn(nc net.Conn) syscall.RawConn {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}
