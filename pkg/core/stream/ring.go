package stream

// A ring is a queue in one slice that grows by doubling and is reused: it takes
// no memory anew while its length stays within what it once was.
type ring[T any] struct {
	buf  []T // its length is a power of two, or 0
	head int
	n    int
}

// ringKept is how many elements' room an empty ring keeps.
const ringKept = 64

func (r *ring[T]) len() int { return r.n }

// at returns the i-th element from the head; it is valid until the next push.
func (r *ring[T]) at(i int) *T { return &r.buf[(r.head+i)&(len(r.buf)-1)] }

func (r *ring[T]) push(v T) {
	if r.n == len(r.buf) {
		buf := make([]T, max(8, 2*len(r.buf)))
		for i := range r.n {
			buf[i] = *r.at(i)
		}
		r.buf, r.head = buf, 0
	}
	r.n++
	*r.at(r.n - 1) = v
}

// drop forgets the first k elements.
func (r *ring[T]) drop(k int) {
	var zero T
	for i := range k {
		*r.at(i) = zero
	}
	r.n -= k
	if r.n > 0 {
		r.head = (r.head + k) & (len(r.buf) - 1)
		return
	}
	r.head = 0
	if len(r.buf) > ringKept {
		r.buf = nil
	}
}
