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
				for range rapid.IntRange(1, 50).Draw(t, "n") {
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

func TestRingGivesBackMemoryWhenItIsEmpty(t *testing.T) {
	var r ring[int]
	for i := range 10_000 {
		r.push(i)
	}
	r.drop(10_000)
	if len(r.buf) > ringKept {
		t.Errorf("an empty ring has room for %d", len(r.buf))
	}
}
