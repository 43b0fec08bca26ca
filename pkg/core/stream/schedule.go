package stream

// A timed is a run of a queue group and the instant at which something happens
// to it: the lease of a delivery ends or, without a delivery, a back-off does.
type timed struct {
	at       Instant
	delivery uint64
	Run
}

// holds reports whether that still happens to m then.
func (t timed) holds(m *handed) bool {
	switch {
	case m.until != t.at:
		return false
	case t.delivery == 0:
		return m.state == waiting
	}
	return m.state == leased && m.delivery == t.delivery
}

// A schedule is a heap of timed runs, the next one first. An entry is a
// reminder, not a fact: what it says is checked against the messages
// themselves, and an entry that no longer holds is dropped when it comes first.
type schedule []timed

func (s schedule) next() Instant {
	if len(s) == 0 {
		return Never
	}
	return s[0].at
}

func (s *schedule) add(t timed) {
	*s = append(*s, t)
	h := *s
	for i := len(h) - 1; i > 0; {
		parent := (i - 1) / 2
		if h[parent].at <= h[i].at {
			return
		}
		h[parent], h[i] = h[i], h[parent]
		i = parent
	}
}

// removeFirst drops the first entry.
func (s *schedule) removeFirst() {
	h := *s
	last := len(h) - 1
	h[0] = h[last]
	h = h[:last]
	*s = h
	for i := 0; ; {
		least := i
		for _, child := range [2]int{2*i + 1, 2*i + 2} {
			if child < last && h[child].at < h[least].at {
				least = child
			}
		}
		if least == i {
			return
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}

// keep drops the entries for which holds is not true.
func (s *schedule) keep(holds func(timed) bool) {
	all := *s
	*s = all[:0]
	for _, t := range all {
		if holds(t) {
			s.add(t)
		}
	}
}

// due calls yield for each entry at or before now, in no order.
func (s schedule) due(now Instant, yield func(timed)) {
	var visit func(i int)
	visit = func(i int) {
		if i < len(s) && s[i].at <= now {
			yield(s[i])
			visit(2*i + 1)
			visit(2*i + 2)
		}
	}
	visit(0)
}
