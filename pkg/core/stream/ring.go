package stream

// A ring is a queue in one slice that grows by doubling and is reused: it takes
// no memory anew while its length stays within what it was lately.
type ring[T any] struct {
	buf  []T // its length is a power of two, or 0
	head int
	n    int
}

// ringKept is how many elements' room a ring keeps that needs less, or none: as
// many as a usual batch has.
const ringKept = 128

func (r *ring[T]) len() int { return r.n }

// at returns the i-th element from the head; it is valid until the next push or
// drop.
func (r *ring[T]) at(i int) *T { return &r.buf[(r.head+i)&(len(r.buf)-1)] }

func (r *ring[T]) push(v T) {
	if r.n == len(r.buf) {
		r.move(max(8, 2*len(r.buf)))
	}
	r.n++
	*r.at(r.n - 1) = v
}

// drop forgets the first k elements.
func (r *ring[T]) drop(k int) {
	first := min(k, len(r.buf)-r.head)
	clear(r.buf[r.head : r.head+first])
	clear(r.buf[:k-first])
	r.n -= k
	if r.head += k; r.head >= len(r.buf) {
		r.head -= len(r.buf)
	}
	if size := len(r.buf); size > ringKept && r.n <= size/8 {
		for size > ringKept && r.n <= size/4 {
			size /= 2
		}
		r.move(size)
	}
}

// move gives the ring another slice.
func (r *ring[T]) move(size int) {
	buf := make([]T, size)
	for i := range r.n {
		buf[i] = *r.at(i)
	}
	r.buf, r.head = buf, 0
}
