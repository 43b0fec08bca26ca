package balance

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// assignments draws members and what was assigned before: to them, to members
// that are gone, to nobody; balanced or not.
func assignments(t *rapid.T, mostMembers, mostPartitions int) (members, before []MemberID) {
	n := rapid.IntRange(1, mostMembers).Draw(t, "members")
	for i := range n {
		members = append(members, MemberID(i+1))
	}
	members = rapid.Permutation(members).Draw(t, "joined in this order")
	owner := rapid.Uint64Range(0, uint64(n)+2) // nobody, a member, or one that is gone
	for range rapid.IntRange(0, mostPartitions).Draw(t, "partitions") {
		before = append(before, MemberID(owner.Draw(t, "assigned")))
	}
	return members, before
}

func moves(before, after []MemberID) (n int) {
	for p := range before {
		if before[p] != after[p] {
			n++
		}
	}
	return n
}

// fewestMoves tries every balanced assignment.
func fewestMoves(members, before []MemberID) int {
	low := len(before) / len(members)
	odd := len(before) % len(members)
	counts, fewest := make(map[MemberID]int), len(before)
	var try func(p, moved, odd int)
	try = func(p, moved, odd int) {
		if moved >= fewest {
			return
		}
		if p == len(before) {
			fewest = moved
			return
		}
		for _, m := range members {
			extra := 0
			if counts[m] >= low {
				extra = 1
			}
			if counts[m] > low || extra > odd {
				continue
			}
			counts[m]++
			cost := 1
			if before[p] == m {
				cost = 0
			}
			try(p+1, moved+cost, odd-extra)
			counts[m]--
		}
	}
	try(0, 0, odd)
	return fewest
}

// G11: no balanced assignment is nearer to the one before.
func TestStickyMovesNoMoreThanItMust(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members, before := assignments(t, 4, 8)
		after := slices.Clone(before)
		sticky(members, after)
		if got, want := moves(before, after), fewestMoves(members, before); got != want {
			t.Fatalf("%v went to %v among %v: %d moves, %d would do", before, after, members, got, want)
		}
	})
}

// The same for many, by a formula: a member keeps what it has up to its even
// share, and as many as there are odd partitions keep one more.
func TestStickyMovesNoMoreThanItMustAmongMany(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members, before := assignments(t, 40, 200)
		after := slices.Clone(before)
		sticky(members, after)
		low, odd, kept := len(before)/len(members), len(before)%len(members), 0
		for _, m := range members {
			has := 0
			for _, b := range before {
				if b == m {
					has++
				}
			}
			kept += min(has, low)
			if has > low && odd > 0 {
				kept++
				odd--
			}
		}
		if got, want := moves(before, after), len(before)-kept; got != want {
			t.Fatalf("%d moves, %d would do:\n%v\n%v", got, want, before, after)
		}
		g := Group{members: members, assigned: after, owner: slices.Clone(after)}
		g.check(t)
	})
}

func TestStickyMovesNothingWhenItIsAskedAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members, assigned := assignments(t, 20, 60)
		sticky(members, assigned)
		before := slices.Clone(assigned)
		if sticky(members, assigned); !slices.Equal(assigned, before) {
			t.Fatalf("%v became %v", before, assigned)
		}
	})
}

func TestStickyStartsAsRoundRobin(t *testing.T) {
	for partitions := range 20 {
		for n := range 12 {
			var members []MemberID
			for m := range n {
				members = append(members, MemberID(100-m))
			}
			a, b := make([]MemberID, partitions), make([]MemberID, partitions)
			sticky(members, a)
			roundRobin(members, b)
			if !slices.Equal(a, b) {
				t.Errorf("%d partitions, members %v: sticky gives %v, round robin %v", partitions, members, a, b)
			}
		}
	}
}

func TestRoundRobinGivesPartitionPToMemberPModN(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members, assigned := assignments(t, 10, 30)
		roundRobin(members, assigned)
		for p, m := range assigned {
			if want := members[p%len(members)]; m != want {
				t.Fatalf("partition %d is %d's, want %d's: %v of %v", p, m, want, assigned, members)
			}
		}
	})
}

func TestNobodyIsAssignedWhatNobodyCanTake(t *testing.T) {
	for name, assign := range map[string]strategy{"sticky": sticky, "round-robin": roundRobin} {
		assigned := []MemberID{1, 2, 1}
		if assign(nil, assigned); !slices.Equal(assigned, make([]MemberID, 3)) {
			t.Errorf("%s without members: %v", name, assigned)
		}
	}
}

func BenchmarkSticky(b *testing.B) {
	var members []MemberID
	for m := range MemberID(100) {
		members = append(members, m+1)
	}
	full := make([]MemberID, 1024)
	sticky(members, full)
	assigned := make([]MemberID, len(full))
	b.ReportAllocs()
	for b.Loop() {
		copy(assigned, full)
		sticky(members[1:], assigned)
	}
}
