package balance

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/podmq/podmq/pkg/core"
)

// check holds a group against what its struct promises.
func (g *Group) check(tb rapid.TB) {
	for p, m := range g.assigned {
		if member := slices.Contains(g.members, m); member != (len(g.members) > 0) || !member && m != 0 {
			tb.Fatalf("partition %d is assigned to %d, the members are %v", p, m, g.members)
		}
	}
	counts := map[MemberID]int{}
	for _, m := range g.members {
		counts[m] = 0
	}
	if len(counts) != len(g.members) {
		tb.Fatalf("a member is there twice: %v", g.members)
	}
	for p, m := range g.assigned {
		if m != 0 {
			counts[m]++
		}
		if g.Holds(m, p) != (g.owner[p] == m) {
			tb.Fatalf("partition %d, assigned to %d and owned by %d: held %v", p, m, g.owner[p], g.Holds(m, p))
		}
	}
	if len(counts) == 0 {
		return
	}
	each := slices.Collect(maps.Values(counts))
	if least, most := slices.Min(each), slices.Max(each); most-least > 1 {
		tb.Fatalf("members have %v partitions: %v", counts, g.assigned)
	}
}

// A life is a group and what is busy in it.
type life struct {
	*Group
	last       MemberID
	busy       map[int]bool
	generation int64
}

func (l *life) isBusy(p int) bool { return l.busy[p] }

// change does what may move partitions, and checks that they moved as promised.
func (l *life) change(t *rapid.T, grows bool, do func(moved []int) []int) {
	owners := slices.Clone(l.owner)
	moved := do(nil)
	for p, was := range owners {
		if now := l.Owner(p); (now != was) != slices.Contains(moved, p) {
			t.Fatalf("partition %d went from %d to %d, moved are %v", p, was, now, moved)
		} else if now != was && l.busy[p] {
			t.Fatalf("partition %d went from %d to %d while it was busy", p, was, now)
		}
		if !l.busy[p] && l.Owner(p) != l.Assigned(p) {
			t.Fatalf("partition %d is %d's and assigned to %d, and nothing is busy", p, l.Owner(p), l.Assigned(p))
		}
	}
	if grows {
		l.generation++
	}
	if l.Generation() != l.generation {
		t.Fatalf("the generation is %d, want %d", l.Generation(), l.generation)
	}
}

func (l *life) join(t *rapid.T) {
	if len(l.members) == 12 {
		t.Skip("enough members")
	}
	l.last++
	l.change(t, true, func(moved []int) []int { return l.Join(l.last, l.isBusy, moved) })
}

func (l *life) leave(t *rapid.T) {
	if len(l.members) == 0 {
		t.Skip("no member")
	}
	m := rapid.SampledFrom(l.members).Draw(t, "member")
	for p := range l.owner {
		if l.Owner(p) == m {
			delete(l.busy, p)
		}
	}
	for p := range l.owner { // as an engine does when what the member had out came back
		if !l.busy[p] {
			l.Release(p)
		}
	}
	l.change(t, true, func(moved []int) []int { return l.Leave(m, l.isBusy, moved) })
}

func newLife(t *rapid.T) *life {
	s := rapid.SampledFrom([]core.Strategy{core.Sticky, core.RoundRobin}).Draw(t, "strategy")
	return &life{Group: New(rapid.IntRange(0, 20).Draw(t, "partitions"), s), busy: map[int]bool{}}
}

// G11
func TestPartitionsMoveOnlyWhenTheyAreDrained(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLife(t)
		partition := func(t *rapid.T) int {
			if len(l.owner) == 0 {
				t.Skip("no partition")
			}
			return rapid.IntRange(0, len(l.owner)-1).Draw(t, "partition")
		}
		t.Repeat(map[string]func(*rapid.T){
			"join":  l.join,
			"leave": l.leave,
			"leave twice": func(t *rapid.T) {
				l.change(t, false, func(moved []int) []int { return l.Leave(l.last+1, l.isBusy, moved) })
			},
			"hand out": func(t *rapid.T) {
				if p := partition(t); l.Owner(p) != 0 && l.Holds(l.Owner(p), p) {
					l.busy[p] = true
				}
			},
			"drain": func(t *rapid.T) {
				p := partition(t)
				was := l.Owner(p)
				delete(l.busy, p)
				if moved := l.Release(p); moved != (was != l.Owner(p)) || l.Owner(p) != l.Assigned(p) {
					t.Fatalf("partition %d went from %d to %d, is assigned to %d: moved %v", p, was, l.Owner(p), l.Assigned(p), moved)
				}
			},
			"": func(t *rapid.T) {
				l.check(t)
				seen := 0
				for _, m := range l.Members() {
					mine := l.Partitions(nil, m)
					if !slices.IsSorted(mine) {
						t.Fatalf("the partitions of %d are %v", m, mine)
					}
					seen += len(mine)
					for _, p := range mine {
						if l.Assigned(p) != m {
							t.Fatalf("%d has partition %d, which is assigned to %d", m, p, l.Assigned(p))
						}
					}
				}
				if len(l.members) > 0 && seen != len(l.owner) {
					t.Fatalf("%d of %d partitions are assigned", seen, len(l.owner))
				}
			},
		})
	})
}

func TestTheSameLifeEndsInTheSameAssignment(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		partitions := rapid.IntRange(1, 30).Draw(t, "partitions")
		steps := rapid.SliceOfN(rapid.IntRange(-8, 8), 1, 30).Draw(t, "steps")
		for _, s := range []core.Strategy{core.Sticky, core.RoundRobin} {
			a, b := New(partitions, s), New(partitions, s)
			for _, g := range []*Group{a, b} {
				last := MemberID(0)
				for _, step := range steps {
					if i := -step; i > 0 && i <= len(g.members) {
						g.Leave(g.members[i-1], idle, nil)
					} else if step >= 0 {
						last++
						g.Join(last, idle, nil)
					}
				}
			}
			if !slices.Equal(a.assigned, b.assigned) {
				t.Fatalf("%s: %v and %v", s, a.assigned, b.assigned)
			}
		}
	})
}

func idle(int) bool { return false }
