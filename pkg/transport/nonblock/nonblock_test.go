package nonblock

import (
	"bytes"
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// pair returns the two ends of a connection.
func pair(t *testing.T) (a, b int) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = unix.Close(fds[0]) // the tests may have closed it
		_ = unix.Close(fds[1])
	})
	return fds[0], fds[1]
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	t.Parallel()
	a, b := pair(t)
	in := make([]byte, 100)
	for _, c := range [][][]byte{
		{[]byte("one")},
		{[]byte("a "), nil, []byte("few")},
		bytes.SplitAfter(bytes.Repeat([]byte("x,"), 40), []byte{','}),
	} {
		want := bytes.Join(c, nil)
		for left := c; len(left) > 0; {
			n, err := Writev(a, left)
			if err != nil {
				t.Fatal(err)
			}
			for n > 0 || len(left) > 0 && len(left[0]) == 0 {
				if n < len(left[0]) {
					t.Fatalf("%q was cut", left[0])
				}
				n, left = n-len(left[0]), left[1:]
			}
		}
		if n, err := Read(b, in); err != nil || !bytes.Equal(in[:n], want) {
			t.Errorf("%q, %v; want %q", in[:n], err, want)
		}
	}
	if n, err := Write(a, []byte("last")); n != 4 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := Read(b, in); string(in[:n]) != "last" || err != nil {
		t.Errorf("%q, %v", in[:n], err)
	}
}

func TestNothingIsWaitedFor(t *testing.T) {
	t.Parallel()
	a, b := pair(t)
	p := make([]byte, 64<<10)
	if n, err := Read(b, p); n != 0 || !errors.Is(err, unix.EAGAIN) {
		t.Errorf("nothing there: %d, %v", n, err)
	}
	sent := 0
	for {
		n, err := Writev(a, [][]byte{p, p})
		sent += n
		if errors.Is(err, unix.EAGAIN) {
			break
		}
		if err != nil || sent > 1<<30 {
			t.Fatalf("%d bytes, %v", sent, err)
		}
	}
	if n, err := Write(a, p); n != 0 || !errors.Is(err, unix.EAGAIN) {
		t.Errorf("no room: %d, %v", n, err)
	}
	for sent > 0 {
		n, err := Read(b, p)
		if err != nil {
			t.Fatalf("%d bytes left: %v", sent, err)
		}
		sent -= n
	}
	if n, err := Write(a, p); n != len(p) || err != nil {
		t.Errorf("room again: %d, %v", n, err)
	}
}

func TestTheEndAndABrokenConnectionAreTold(t *testing.T) {
	t.Parallel()
	a, b := pair(t)
	if err := unix.Shutdown(a, unix.SHUT_WR); err != nil {
		t.Fatal(err)
	}
	if n, err := Read(b, make([]byte, 10)); n != 0 || err != nil {
		t.Errorf("the end: %d, %v", n, err)
	}
	if err := unix.Close(a); err != nil {
		t.Fatal(err)
	}
	if n, err := Write(b, []byte("x")); n != 0 || !errors.Is(err, unix.EPIPE) {
		t.Errorf("nobody is there: %d, %v", n, err)
	}
	if _, err := Read(-1, make([]byte, 1)); !errors.Is(err, unix.EBADF) {
		t.Errorf("no descriptor: %v", err)
	}
}

func TestCostIsNoAllocation(t *testing.T) {
	a, b := pair(t)
	two, in := [][]byte{[]byte("a"), []byte("b")}, make([]byte, 10)
	n := testing.AllocsPerRun(100, func() {
		_, _ = Writev(a, two)
		_, _ = Read(b, in)
		_, _ = Read(b, in) // in vain
	})
	if n > 0 {
		t.Errorf("%v allocations", n)
	}
}
