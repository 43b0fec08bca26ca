package loadgen

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podmq/podmq/pkg/transport/nonblock"
)

// A Session is what is said on one connection. Times are in ns since the start
// of the run.
type Session interface {
	// Hear reads what has arrived and returns how much of it was understood.
	// What is left comes again, together with what arrives later.
	Hear(now int64, in []byte) (used int, err error)
	// Say appends what is to be sent now to out. It is called at the start,
	// whenever something was heard, and at the time again; or, when again is Soon,
	// once other sessions of the loop have heard something.
	Say(now int64, out []byte) (all []byte, again int64)
}

// Instead of a time to speak again.
const (
	Never = 0  // not before something was heard
	Soon  = -1 // when others have heard something
)

const (
	readBuffer = 64 << 10
	// longestSleep bounds how late a loop sees that the run is over.
	longestSleep = 20 * time.Millisecond
	// shortSleep does it for a session that waits for others: these may be in
	// another loop.
	shortSleep = time.Millisecond
)

// A Loop drives connections on one goroutine: for each answer one read and one
// write, and none that finds nothing.
type Loop struct {
	began time.Time
	epoll int
	conns []*loopConn
	timed int // connections with a time to speak
	soon  int // connections that are to speak soon
}

type loopConn struct {
	fd      int
	session Session
	in      []byte // in[:have] is not understood yet
	have    int
	out     []byte // out[sent:] is not written yet
	sent    int
	full    bool  // the socket takes no more: wait until it does
	again   int64 // when to call Say next, if nothing is heard before
}

// NewLoop makes a loop; began is the start of the run.
func NewLoop(began time.Time) (*Loop, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	return &Loop{began: began, epoll: fd}, nil
}

func (l *Loop) now() int64 { return int64(time.Since(l.began)) }

// Add gives the loop a connection, which it takes over, and its session. It must
// not be called while the loop runs.
func (l *Loop) Add(nc net.Conn, s Session) error {
	fd, err := descriptor(nc)
	if err != nil {
		return err
	}
	event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(len(l.conns))}
	if err := unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, fd, &event); err != nil {
		return errors.Join(os.NewSyscallError("epoll_ctl", err), unix.Close(fd))
	}
	l.conns = append(l.conns, &loopConn{fd: fd, session: s})
	return nil
}

// descriptor takes a connection out of the hands of package net.
func descriptor(nc net.Conn) (fd int, err error) {
	defer nc.Close()
	f, ok := nc.(interface{ File() (*os.File, error) })
	if !ok {
		return 0, fmt.Errorf("cannot drive a %T: it has no descriptor", nc)
	}
	file, err := f.File()
	if err != nil {
		return 0, err
	}
	defer file.Close()
	raw, err := file.SyscallConn()
	if err != nil {
		return 0, err
	}
	var dup error
	err = raw.Control(func(own uintptr) { fd, dup = unix.FcntlInt(own, unix.F_DUPFD_CLOEXEC, 0) })
	if err := errors.Join(err, dup); err != nil {
		return 0, err
	}
	return fd, unix.SetNonblock(fd, true)
}

// Close closes the connections.
func (l *Loop) Close() {
	for _, c := range l.conns {
		_ = unix.Close(c.fd)
	}
	_ = unix.Close(l.epoll)
}

// Run lets the sessions talk until over says so.
func (l *Loop) Run(over func() bool) error {
	for _, c := range l.conns {
		if err := l.say(c, l.now()); err != nil {
			return err
		}
	}
	var events [256]unix.EpollEvent
	for !over() {
		n, err := l.wait(events[:])
		if err != nil {
			return err
		}
		for _, e := range events[:n] {
			if err := l.serve(l.conns[e.Fd], e.Events); err != nil {
				return err
			}
		}
		if l.timed+l.soon == 0 {
			continue
		}
		now := l.now()
		for _, c := range l.conns {
			if c.again != Never && c.again <= now {
				if err := l.say(c, now); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// wait waits for events, or for the first time to speak.
func (l *Loop) wait(events []unix.EpollEvent) (n int, err error) {
	timeout := int(longestSleep.Milliseconds())
	if l.soon > 0 {
		timeout = int(shortSleep.Milliseconds())
	}
	if l.timed > 0 {
		// epoll_wait counts in ms, which is too coarse for a schedule.
		if d := l.untilNext(); d > 0 {
			t := unix.NsecToTimespec(int64(d))
			_, err := unix.Ppoll([]unix.PollFd{{Fd: int32(l.epoll), Events: unix.POLLIN}}, &t, nil)
			if err != nil && !errors.Is(err, unix.EINTR) {
				return 0, os.NewSyscallError("ppoll", err)
			}
		}
		timeout = 0
	}
	n, err = unix.EpollWait(l.epoll, events, timeout)
	if errors.Is(err, unix.EINTR) {
		return 0, nil
	}
	return n, os.NewSyscallError("epoll_wait", err)
}

func (l *Loop) untilNext() time.Duration {
	sleep := longestSleep
	if l.soon > 0 {
		sleep = shortSleep
	}
	now := l.now()
	next := now + int64(sleep)
	for _, c := range l.conns {
		if c.again > 0 {
			next = min(next, c.again)
		}
	}
	return time.Duration(next - now)
}

func (l *Loop) serve(c *loopConn, what uint32) error {
	if what&unix.EPOLLOUT != 0 {
		if err := l.write(c); err != nil {
			return err
		}
	}
	if what&^uint32(unix.EPOLLOUT) == 0 {
		return nil
	}
	if len(c.in) == c.have {
		c.in = append(make([]byte, 0, max(readBuffer, 2*len(c.in))), c.in[:c.have]...)
		c.in = c.in[:cap(c.in)]
	}
	n, err := nonblock.Read(c.fd, c.in[c.have:])
	switch {
	case errors.Is(err, unix.EAGAIN):
		return nil
	case err != nil:
		return os.NewSyscallError("read", err)
	case n == 0:
		return fmt.Errorf("cannot go on: the broker closed a connection, having said %.300q: %w", c.in[:c.have], io.ErrUnexpectedEOF)
	}
	c.have += n
	now := l.now()
	used, err := c.session.Hear(now, c.in[:c.have])
	if err != nil {
		return err
	}
	if used == 0 {
		return nil
	}
	c.have = copy(c.in, c.in[used:c.have])
	return l.say(c, now)
}

func (l *Loop) say(c *loopConn, now int64) error {
	l.plan(c, Never)
	before := len(c.out)
	var again int64
	c.out, again = c.session.Say(now, c.out)
	l.plan(c, again)
	if c.full || len(c.out) == before {
		return nil
	}
	return l.write(c)
}

// plan notes when a connection is to speak again.
func (l *Loop) plan(c *loopConn, again int64) {
	count := func(again int64, by int) {
		switch {
		case again > 0:
			l.timed += by
		case again == Soon:
			l.soon += by
		}
	}
	count(c.again, -1)
	count(again, +1)
	c.again = again
}

// write writes what the socket takes, and has epoll say when it takes more.
func (l *Loop) write(c *loopConn) error {
	n, err := nonblock.Write(c.fd, c.out[c.sent:])
	if err != nil && !errors.Is(err, unix.EAGAIN) {
		return fmt.Errorf("cannot go on: the broker takes no more: %w", os.NewSyscallError("write", err))
	}
	c.sent += n
	full := c.sent < len(c.out)
	if !full {
		c.out, c.sent = c.out[:0], 0
	}
	if full == c.full {
		return nil
	}
	c.full = full
	event := unix.EpollEvent{Events: unix.EPOLLIN}
	if full {
		event.Events |= unix.EPOLLOUT
	}
	for i := range l.conns {
		if l.conns[i] == c {
			event.Fd = int32(i)
		}
	}
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(l.epoll, unix.EPOLL_CTL_MOD, c.fd, &event))
}
