package stream

import "slices"

// A Run is the offsets [From, To).
type Run struct{ From, To int64 }

// Len is how many offsets the run has.
func (r Run) Len() int64 { return r.To - r.From }

// runs is a set of offsets.
//
// Invariant: ascending, none empty, and none touches the next.
type runs []Run

// search returns the index of the first run that ends at or after offset.
func (s runs) search(offset int64) int {
	i, _ := slices.BinarySearchFunc(s, offset, func(r Run, o int64) int {
		if r.To < o {
			return -1
		}
		return 1
	})
	return i
}

// add puts a run into the set.
func (s *runs) add(r Run) {
	i := s.search(r.From)
	j := i
	for j < len(*s) && (*s)[j].From <= r.To {
		r.From, r.To = min(r.From, (*s)[j].From), max(r.To, (*s)[j].To)
		j++
	}
	*s = slices.Replace(*s, i, j, r)
}

// remove takes a run out of the set, as far as it is in it.
func (s *runs) remove(r Run) {
	i := s.search(r.From)
	var left [2]Run
	n, j := 0, i
	for ; j < len(*s) && (*s)[j].From < r.To; j++ {
		if was := (*s)[j]; was.From < r.From {
			left[n] = Run{was.From, min(was.To, r.From)}
			n++
		}
		if was := (*s)[j]; was.To > r.To {
			left[n] = Run{max(was.From, r.To), was.To}
			n++
		}
	}
	*s = slices.Replace(*s, i, j, left[:n]...)
}
