package memory

// A line is those who wait, in the order of arrival. Anyone can leave it at any
// time. The places are part of those who stand in it, so that waiting allocates
// nothing.
type line[T any] struct {
	first, last *place[T]
	n           int
}

// A place is where somebody stands in a line.
type place[T any] struct {
	who        T
	in         *line[T] // nil: in none
	prev, next *place[T]
}

func (l *line[T]) push(p *place[T]) {
	p.in, p.prev, p.next = l, l.last, nil
	if l.last == nil {
		l.first = p
	} else {
		l.last.next = p
	}
	l.last = p
	l.n++
}

// leave takes p out of its line; it may stand in none.
func (p *place[T]) leave() {
	l := p.in
	if l == nil {
		return
	}
	if p.prev == nil {
		l.first = p.next
	} else {
		p.prev.next = p.next
	}
	if p.next == nil {
		l.last = p.prev
	} else {
		p.next.prev = p.prev
	}
	l.n--
	p.in, p.prev, p.next = nil, nil, nil
}
