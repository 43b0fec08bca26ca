//go:build !race

package nonblock

import (
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxVectors is how many buffers one call of Writev takes.
const maxVectors = 32

// Read reads into p what is there: EAGAIN when that is nothing, and 0 without an
// error at the end.
func Read(fd int, p []byte) (n int, err error) {
	return call(unix.SYS_READ, fd, unsafe.Pointer(unsafe.SliceData(p)), len(p))
}

// Write writes what the socket takes of p: EAGAIN when that is nothing.
func Write(fd int, p []byte) (n int, err error) {
	return call(unix.SYS_WRITE, fd, unsafe.Pointer(unsafe.SliceData(p)), len(p))
}

// Writev is Write for buffers that follow each other. It may end between them.
func Writev(fd int, buffers [][]byte) (n int, err error) {
	if len(buffers) == 1 {
		return Write(fd, buffers[0])
	}
	var vectors [maxVectors]unix.Iovec
	used := min(len(buffers), maxVectors)
	for i, b := range buffers[:used] {
		vectors[i].Base = unsafe.SliceData(b)
		vectors[i].SetLen(len(b))
	}
	n, err = call(unix.SYS_WRITEV, fd, unsafe.Pointer(&vectors), used)
	runtime.KeepAlive(buffers)
	return n, err
}

// call makes a system call that the scheduler is not told of, and makes it again
// when a signal came first.
func call(trap uintptr, fd int, p unsafe.Pointer, n int) (int, error) {
	for {
		done, _, errno := syscall.RawSyscall(trap, uintptr(fd), uintptr(p), uintptr(n))
		if errno == 0 {
			return int(done), nil
		}
		if errno != unix.EINTR {
			return 0, errno
		}
	}
}
