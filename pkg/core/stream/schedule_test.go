package stream

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestScheduleGivesTheNextOneFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s schedule
		var twin []Instant // ascending
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				at := Instant(rapid.IntRange(0, 30).Draw(t, "at"))
				s.add(timed{at: at})
				i, _ := slices.BinarySearch(twin, at)
				twin = slices.Insert(twin, i, at)
			},
			"remove": func(t *rapid.T) {
				if len(twin) == 0 {
					t.Skip("nothing is in it")
				}
				s.removeFirst()
				twin = twin[1:]
			},
			"due": func(t *rapid.T) {
				now := Instant(rapid.IntRange(0, 30).Draw(t, "now"))
				var got, want []Instant
				s.due(now, func(e timed) { got = append(got, e.at) })
				for _, at := range twin {
					if at <= now {
						want = append(want, at)
					}
				}
				if slices.Sort(got); !slices.Equal(got, want) {
					t.Fatalf("due at %d: got %v, want %v", now, got, want)
				}
			},
			"keep": func(t *rapid.T) {
				odd := func(at Instant) bool { return at%2 == 1 }
				s.keep(func(e timed) bool { return odd(e.at) })
				twin = slices.DeleteFunc(twin, func(at Instant) bool { return !odd(at) })
			},
			"": func(t *rapid.T) {
				want := Never
				if len(twin) > 0 {
					want = twin[0]
				}
				if s.next() != want || len(s) != len(twin) {
					t.Fatalf("next is %d of %d, want %d of %d", s.next(), len(s), want, len(twin))
				}
				if err := s.check(); err != nil {
					t.Fatal(err)
				}
			},
		})
	})
}
