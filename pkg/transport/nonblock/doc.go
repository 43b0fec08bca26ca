// Package nonblock reads and writes sockets that do not block, and spares Go's
// scheduler what it does around a system call that might.
//
// Before each call the scheduler gives its processor up for the time of the call,
// and takes it back afterwards. When the call lasts a little, somebody else has
// taken it: a thread was woken for that, and the goroutine waits for its turn. But
// a socket that does not block is read and written in microseconds, and nobody is
// waited for, so all of this is in vain. On a virtual machine whose system calls are
// dear it was a quarter of the CPU of a message (hack/bench, "one").
//
// The price is that nothing else runs on that processor while a call lasts. The
// descriptors must be non-blocking, as those of Go's sockets are.
package nonblock
