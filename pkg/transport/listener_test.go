package transport

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

func TestTheSocketHasExactlyItsModeWhateverTheUmask(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	for _, mode := range []fs.FileMode{0o666, 0o660, 0o600, 0o777} {
		path := filepath.Join(socketDir(t), "podmq.sock")
		l, err := Listen(path, mode)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Lstat(path)
		if err != nil || info.Mode() != fs.ModeSocket|mode {
			t.Errorf("the mode is %v, want %v: %v", info.Mode(), mode, err)
		}
		if l.Addr().String() != path {
			t.Errorf("the address is %s", l.Addr())
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestClosingRemovesOnlyItsOwnSocket(t *testing.T) {
	t.Parallel()
	dir := socketDir(t)
	path := filepath.Join(dir, "s")
	l, err := Listen(path, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	_ = l.Close() // once more is harmless
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("%v is left", left)
	}
	l, err = Listen(path, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("of somebody else"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("another's file was removed: %v", err)
	}
}

func TestADeadSocketIsReplaced(t *testing.T) {
	t.Parallel()
	path := filepath.Join(socketDir(t), "s")
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	_ = dead.Close()
	// A broker that was killed while it bound leaves this as well.
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), ".s.new"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := Listen(path, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
}

func TestWhatIsNoSocketIsLeftAlone(t *testing.T) {
	t.Parallel()
	dir := socketDir(t)
	for name, make := range map[string]func(path string) error{
		"file":          func(p string) error { return os.WriteFile(p, []byte("precious"), 0o600) },
		"directory":     func(p string) error { return os.Mkdir(p, 0o700) },
		"symbolic link": func(p string) error { return os.Symlink(filepath.Join(dir, "nowhere"), p) },
		"another kind":  func(p string) error { return syscall.Mkfifo(p, 0o600) },
	} {
		path := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
		if err := make(path); err != nil {
			t.Fatal(err)
		}
		before, _ := os.Lstat(path)
		if _, err := Listen(path, 0o666); err == nil || !strings.Contains(err.Error(), name) || !strings.HasPrefix(err.Error(), "cannot bind socket "+path) {
			t.Errorf("%s: %v", name, err)
		}
		if after, err := os.Lstat(path); err != nil || !os.SameFile(before, after) {
			t.Errorf("%s: it was touched: %v", name, err)
		}
	}
}

func TestASecondBrokerIsRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(socketDir(t), "s")
	l, err := Listen(path, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if _, err := Listen(path, 0o666); err == nil || !strings.Contains(err.Error(), "another broker runs here") {
		t.Errorf("the second broker: %v", err)
	}
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() != 0 { // root may open it all the same
		if _, err := Listen(path, 0o666); err == nil || !strings.Contains(err.Error(), "cannot tell whether another broker runs here") {
			t.Errorf("a socket that cannot be opened: %v", err)
		}
	}
	c, err := net.Dial("unix", path)
	if err == nil {
		_ = c.Close()
	}
}

func TestABrokerWithAFullQueueOfConnectionsIsNotReplaced(t *testing.T) {
	t.Parallel()
	path := filepath.Join(socketDir(t), "s")
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Close(fd) }()
	if err := errors.Join(syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}), syscall.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("unix", path) // it fills the queue
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if _, err := Listen(path, 0o666); err == nil || !strings.Contains(err.Error(), "does not accept connections") {
		t.Errorf("the second broker: %v", err)
	}
}

func TestOfBrokersThatStartAtOnceOneWins(t *testing.T) {
	t.Parallel()
	path := filepath.Join(socketDir(t), "s")
	const brokers = 16
	var won []net.Listener
	var mu sync.Mutex
	var all sync.WaitGroup
	for range brokers {
		all.Go(func() {
			l, err := Listen(path, 0o666)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won = append(won, l)
			} else if !strings.Contains(err.Error(), "another broker runs here") {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(won) != 1 {
		t.Errorf("%d brokers think that the socket is theirs", len(won))
	}
	for _, l := range won {
		_ = l.Close()
	}
}

func TestALongPathIsRefusedWithItsLength(t *testing.T) {
	t.Parallel()
	dir := socketDir(t)
	name := strings.Repeat("x", 107-len(dir)-1)
	// No name of one letter leaves room for the one that it is bound under at first.
	deep := filepath.Join(dir, name[2:])
	if err := os.Mkdir(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(dir, name+"y"): "its path has 108 bytes",
		filepath.Join(deep, "s"):     "its path has 107 bytes, and 112",
	} {
		if _, err := Listen(path, 0o666); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "the most is 107") {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for _, path := range []string{filepath.Join(dir, name), filepath.Join(dir, name[1:]), filepath.Join(dir, name[5:])} {
		l, err := Listen(path, 0o666)
		if err != nil {
			t.Fatal(err)
		}
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
		_ = l.Close()
	}
}

func TestAMissingDirectoryIsNamed(t *testing.T) {
	t.Parallel()
	if _, err := Listen("/nonexistent/s", 0o666); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "/nonexistent/s") {
		t.Errorf("%v", err)
	}
	dir := socketDir(t)
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(filepath.Join(file, "s"), 0o666); err == nil {
		t.Error("a socket in a file")
	}
}

func TestARelativePathIsFine(t *testing.T) {
	t.Chdir(socketDir(t))
	l, err := Listen("s", 0o666)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

func TestTCPIsForTheLoopbackOnly(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{":0", "0.0.0.0:0", "[::]:0", "192.0.2.1:80", "10.0.0.1:0"} {
		if l, err := ListenLoopback(addr); err == nil || !strings.Contains(err.Error(), "only the loopback is allowed") {
			t.Errorf("%s: %v, %v", addr, l, err)
		}
	}
	for _, addr := range []string{"", "localhost", "127.0.0.1:port", "127.0.0.1:99999"} {
		if _, err := ListenLoopback(addr); err == nil || !strings.HasPrefix(err.Error(), "cannot listen on "+addr) {
			t.Errorf("%q: %v", addr, err)
		}
	}
	for _, addr := range []string{"127.0.0.1:0", "localhost:0"} {
		l, err := ListenLoopback(addr)
		if err != nil {
			t.Fatal(err)
		}
		if !l.Addr().(*net.TCPAddr).IP.IsLoopback() {
			t.Errorf("%s is %s", addr, l.Addr())
		}
		_ = l.Close()
	}
}
