package memory

import "github.com/podmq/podmq/pkg/core/stream"

// An alarm is a moment at which its target has to look at the time. It may ring
// too early, never too late: a target that finds nothing to do sets it anew.
// That makes the common case free, a lease that is granted and acked long
// before it ends.
type alarm struct {
	at     stream.Instant
	index  int // in alarms, plus one; 0: not set
	target interface{ ring() }
}

// alarms is a heap of alarms, the next one first.
type alarms []*alarm

func (h alarms) next() stream.Instant {
	if len(h) == 0 {
		return stream.Never
	}
	return h[0].at
}

// set makes a ring at the latest at at.
func (h *alarms) set(a *alarm, at stream.Instant) {
	switch {
	case at == stream.Never || a.index != 0 && a.at <= at:
		return
	case a.index == 0:
		*h = append(*h, a)
		a.index = len(*h)
	}
	a.at = at
	h.up(a.index - 1)
}

func (h *alarms) remove(a *alarm) {
	if a.index == 0 {
		return
	}
	i, last := a.index-1, len(*h)-1
	h.swap(i, last)
	(*h)[last] = nil
	*h = (*h)[:last]
	a.index = 0
	if i < last {
		h.up(i)
		h.down(i)
	}
}

func (h alarms) swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i+1, j+1
}

func (h alarms) up(i int) {
	for i > 0 && h[i].at < h[(i-1)/2].at {
		h.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
}

func (h alarms) down(i int) {
	for {
		least := i
		for _, child := range [2]int{2*i + 1, 2*i + 2} {
			if child < len(h) && h[child].at < h[least].at {
				least = child
			}
		}
		if least == i {
			return
		}
		h.swap(i, least)
		i = least
	}
}
