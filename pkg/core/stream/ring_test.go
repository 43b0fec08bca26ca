package stream

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func (r *ring[T]) all() (all []T) {
	for i := range r.len() {
		all = append(all, *r.at(i))
	}
	return all
}

func TestRingIsAQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r ring[int]
		var twin []int
		next := 0
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				for range rapid.IntRange(1, 2*ringKept).Draw(t, "n") {
					next++
					r.push(next)
					twin = append(twin, next)
				}
			},
			"drop": func(t *rapid.T) {
				k := rapid.IntRange(0, len(twin)).Draw(t, "k")
				r.drop(k)
				twin = twin[k:]
			},
			"": func(t *rapid.T) {
				if got := r.all(); !slices.Equal(got, twin) {
					t.Fatalf("got %v, want %v", got, twin)
				}
				if err := r.check(); err != nil {
					t.Fatal(err)
				}
			},
		})
	})
}

func TestRingForgetsWhatWasDropped(t *testing.T) {
	var r ring[*int]
	for i := range 20 {
		r.push(&i)
	}
	r.drop(13)
	left := 0
	for _, p := range r.buf {
		if p != nil {
			left++
		}
	}
	if left != 7 {
		t.Errorf("the ring still points to %d of 20 elements, 7 are in it", left)
	}
}

func TestRingGivesBackMemoryThatItNoLongerNeeds(t *testing.T) {
	var r ring[int]
	for i := range 10_000 {
		r.push(i)
	}
	for _, left := range []int{5000, 700, 90, 3, 0} {
		r.drop(r.len() - left)
		if most := max(ringKept, 8*left); len(r.buf) > most {
			t.Errorf("a ring of %d elements has room for %d, want %d at most", left, len(r.buf), most)
		}
	}
}
