//go:build race

package nonblock

import (
	"errors"
	"syscall"
)

// The race detector is told by the calls of package syscall, and by no others, that
// what one side did before it wrote comes before what the other does after reading.

func Read(fd int, p []byte) (n int, err error) { return again(syscall.Read, fd, p) }

func Write(fd int, p []byte) (n int, err error) { return again(syscall.Write, fd, p) }

func Writev(fd int, buffers [][]byte) (all int, err error) {
	for _, b := range buffers {
		n, err := Write(fd, b)
		if all += n; err != nil && all == 0 {
			return 0, err
		}
		if n < len(b) {
			break
		}
	}
	return all, nil
}

func again(call func(int, []byte) (int, error), fd int, p []byte) (n int, err error) {
	for {
		if n, err = call(fd, p); !errors.Is(err, syscall.EINTR) {
			return max(n, 0), err
		}
	}
}
