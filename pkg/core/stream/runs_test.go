package stream

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// offsets is the same set as runs, kept the obvious way.
type offsets map[int64]bool

func (o offsets) runs() (all runs) {
	for _, offset := range slices.Sorted(maps.Keys(o)) {
		if last := len(all) - 1; last >= 0 && all[last].To == offset {
			all[last].To++
			continue
		}
		all = append(all, Run{offset, offset + 1})
	}
	return all
}

// both does the same to runs and to its twin, and compares.
func both(tb rapid.TB, s *runs, twin offsets, add bool, r Run) {
	for offset := r.From; offset < r.To; offset++ {
		if add {
			twin[offset] = true
		} else {
			delete(twin, offset)
		}
	}
	was := slices.Clone(*s)
	if add {
		s.add(r)
	} else {
		s.remove(r)
	}
	if err := s.check(); err != nil {
		tb.Fatalf("%v, add(%v) %v: %v", was, r, add, err)
	}
	if want := twin.runs(); !slices.Equal(*s, want) {
		tb.Fatalf("%v, add(%v) %v: got %v, want %v", was, r, add, *s, want)
	}
}

func TestRunsAreTheSetOfTheirOffsets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s runs
		twin := offsets{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			from := rapid.Int64Range(0, 40).Draw(t, "from")
			both(t, &s, twin, rapid.Bool().Draw(t, "add"), Run{from, from + rapid.Int64Range(1, 12).Draw(t, "len")})
		}
	})
}

// FuzzRuns reads two bytes a step: the first bit says add or remove, the rest
// where and how long.
func FuzzRuns(f *testing.F) {
	f.Add([]byte("\x80\x05\x8a\x05\x85\x05\x03\x09"))
	f.Add([]byte("\x80\x10\x04\x02\x08\x02\x00\x10"))
	f.Fuzz(func(t *testing.T, steps []byte) {
		var s runs
		twin := offsets{}
		for ; len(steps) >= 2; steps = steps[2:] {
			from := int64(steps[0] & 0x7f)
			both(t, &s, twin, steps[0]&0x80 != 0, Run{from, from + 1 + int64(steps[1]&0x1f)})
		}
	})
}
