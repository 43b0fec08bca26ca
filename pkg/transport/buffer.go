package transport

import (
	"bufio"
	"io"
	"sync"
)

const (
	newBuffer = 2 << 10
	// keepBuffer is the largest buffer that is kept for later: a few rare large
	// bodies must not stay in memory for ever.
	keepBuffer = 1 << 20
)

// A buffer is memory for one body or for collected answers.
type buffer struct{ b []byte }

// sized returns the buffer's first n bytes, with anything in them.
func (b *buffer) sized(n int) []byte {
	if cap(b.b) < n {
		b.b = make([]byte, n)
	}
	b.b = b.b[:n]
	return b.b
}

// grow makes room for n bytes in all.
func (b *buffer) grow(n int) {
	b.b = append(make([]byte, 0, n), b.b...)
}

// buffers lends buffers, so that an idle or parked connection has none.
type buffers struct{ pool sync.Pool }

// get returns an empty buffer.
func (p *buffers) get() *buffer {
	if b, ok := p.pool.Get().(*buffer); ok {
		b.b = b.b[:0]
		return b
	}
	return &buffer{make([]byte, 0, newBuffer)}
}

func (p *buffers) put(b *buffer) {
	if cap(b.b) <= keepBuffer {
		p.pool.Put(b)
	}
}

// readers lends readers, so that a connection that waits with nothing unread has none.
type readers struct{ pool sync.Pool }

func (p *readers) get(from io.Reader) *bufio.Reader {
	if r, ok := p.pool.Get().(*bufio.Reader); ok {
		r.Reset(from)
		return r
	}
	return bufio.NewReaderSize(from, readSize)
}

func (p *readers) put(r *bufio.Reader) {
	r.Reset(nil)
	p.pool.Put(r)
}
