package transport

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

const (
	// MaxSocketPath is how many bytes of a path fit into a socket's address on
	// Linux, its terminating zero excluded.
	MaxSocketPath = 107

	// lockWait is how long to wait for another broker that is binding or leaving;
	// both take milliseconds.
	lockWait = 5 * time.Second
)

// Listen binds a Unix socket at path with exactly mode, whatever the umask. No
// client ever sees a socket there that it cannot open: it is bound under a name
// beside path and then renamed over what is there.
//
// What is there is replaced only if it is a socket on which nobody listens, as a
// killed broker leaves it. While that is found out and done, the directory is
// locked (flock), so that of two brokers that start at once one finds the other.
// The lock leaves no file behind and ends with its process.
//
// Closing the listener removes the socket, if it is still the one that was
// bound.
func Listen(path string, mode fs.FileMode) (net.Listener, error) {
	dir, name := filepath.Split(path)
	temporary := filepath.Join(dir, "."+name+".new")
	if over := len(temporary) - MaxSocketPath; over > 0 && over <= len(name) {
		temporary = filepath.Join(dir, "."+name[over:]+".new")
	}
	if n := max(len(path), len(temporary)); n > MaxSocketPath {
		return nil, fmt.Errorf("cannot bind socket %s: its path has %d bytes, and %d with the name that it is bound under at first; the most is %d", path, len(path), n, MaxSocketPath)
	}
	unlock, err := lockDirectory(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot bind socket %s: %w", path, err)
	}
	defer unlock()
	if err := checkDead(path); err != nil {
		return nil, err
	}
	l, err := bind(path, temporary, mode)
	if err != nil {
		_ = os.Remove(temporary)
		return nil, fmt.Errorf("cannot bind socket %s: %w", path, err)
	}
	return l, nil
}

// bind is to be called with the directory locked.
func bind(path, temporary string, mode fs.FileMode) (net.Listener, error) {
	if err := os.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: temporary, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // the name it knows is about to go
	made, err := os.Lstat(temporary)
	if err == nil {
		err = os.Chmod(temporary, mode)
	}
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &socket{UnixListener: l, path: path, made: made}, nil
}

// checkDead refuses what must not be replaced at path.
func checkDead(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("cannot bind socket %s: %w", path, err)
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("cannot bind socket %s: a %s is there, which is left alone", path, kindOf(info.Mode()))
	}
	c, err := net.Dial("unix", path)
	switch {
	case err == nil:
		_ = c.Close()
		return fmt.Errorf("cannot bind socket %s: another broker runs here", path)
	case errors.Is(err, syscall.EAGAIN): // its queue of connections is full
		return fmt.Errorf("cannot bind socket %s: another broker runs here, and does not accept connections", path)
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return fmt.Errorf("cannot bind socket %s: cannot tell whether another broker runs here: %w", path, err)
}

func kindOf(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "directory"
	case m.IsRegular():
		return "file"
	case m.Type() == fs.ModeSymlink:
		return "symbolic link"
	}
	return "file of another kind (" + m.Type().String() + ")"
}

// lockDirectory locks dir against other brokers.
func lockDirectory(dir string) (unlock func(), err error) {
	if dir == "" {
		dir = "."
	}
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(lockWait); ; {
		err = syscall.Flock(int(d.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = d.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) || time.Now().After(end) {
			_ = d.Close()
			return nil, fmt.Errorf("cannot lock directory %s: %w", dir, err)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// A socket is a bound Unix socket that removes its file.
type socket struct {
	*net.UnixListener
	path  string
	made  fs.FileInfo
	close sync.Once
}

// Addr is where clients find the socket.
func (s *socket) Addr() net.Addr { return &net.UnixAddr{Name: s.path, Net: "unix"} }

// Close stops listening and removes the socket, unless another has taken its
// place.
func (s *socket) Close() (err error) {
	s.close.Do(func() {
		unlock, lockErr := lockDirectory(filepath.Dir(s.path))
		if lockErr == nil {
			defer unlock()
			if now, statErr := os.Lstat(s.path); statErr == nil && os.SameFile(s.made, now) {
				err = os.Remove(s.path)
			}
		}
		err = errors.Join(err, lockErr)
	})
	return errors.Join(err, s.UnixListener.Close())
}

// ListenLoopback listens on TCP, for languages without Unix sockets. Anyone who
// reaches the address can use the broker, so only the loopback is allowed.
func ListenLoopback(addr string) (net.Listener, error) {
	a, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", addr, err)
	}
	if a.IP == nil || !a.IP.IsLoopback() {
		return nil, fmt.Errorf("cannot listen on %s: only the loopback is allowed, such as 127.0.0.1:%d or [::1]:%[2]d", addr, a.Port)
	}
	l, err := net.ListenTCP("tcp", a)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", addr, err)
	}
	return l, nil
}
