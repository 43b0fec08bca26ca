package balance

import (
	"slices"

	"github.com/podmq/podmq/pkg/core"
)

// A MemberID names a member of a group; it is never used again. 0 is nobody.
type MemberID uint64

// A Group is the members of a group and who has which partition.
//
// Invariants: an assigned partition belongs to a member; with members every
// partition is assigned, without none is; generation grows with every Join and
// Leave.
type Group struct {
	assign     strategy
	generation int64
	members    []MemberID // in the order of joining
	assigned   []MemberID // index is the partition
	owner      []MemberID // index is the partition
}

// New makes a group without members.
func New(partitions int, s core.Strategy) *Group {
	g := &Group{assign: sticky, assigned: make([]MemberID, partitions), owner: make([]MemberID, partitions)}
	if s == core.RoundRobin {
		g.assign = roundRobin
	}
	return g
}

// Generation counts the changes of membership.
func (g *Group) Generation() int64 { return g.generation }

// Members are the members in the order of joining; not to be changed.
func (g *Group) Members() []MemberID { return g.members }

// Owner is who holds a partition now.
func (g *Group) Owner(partition int) MemberID { return g.owner[partition] }

// Assigned is who holds a partition now or will when it is drained.
func (g *Group) Assigned(partition int) MemberID { return g.assigned[partition] }

// Holds reports whether the member may be handed messages of a partition.
func (g *Group) Holds(m MemberID, partition int) bool {
	return g.owner[partition] == m && g.assigned[partition] == m
}

// Partitions appends to dst what the member is assigned, ascending.
func (g *Group) Partitions(dst []int, m MemberID) []int {
	for p, a := range g.assigned {
		if a == m {
			dst = append(dst, p)
		}
	}
	return dst
}

// Join adds a member. It appends to moved the partitions that changed hands at
// once; those for which busy is true do when Release is called.
func (g *Group) Join(m MemberID, busy func(partition int) bool, moved []int) []int {
	g.members = append(g.members, m)
	return g.rebalance(busy, moved)
}

// Leave takes a member out; nothing that it owned may be busy.
func (g *Group) Leave(m MemberID, busy func(partition int) bool, moved []int) []int {
	i := slices.Index(g.members, m)
	if i < 0 {
		return moved
	}
	g.members = slices.Delete(g.members, i, i+1)
	return g.rebalance(busy, moved)
}

// Release hands over a partition that is no longer busy, and reports whether it
// changed hands.
func (g *Group) Release(partition int) bool {
	if g.owner[partition] == g.assigned[partition] {
		return false
	}
	g.owner[partition] = g.assigned[partition]
	return true
}

func (g *Group) rebalance(busy func(int) bool, moved []int) []int {
	g.generation++
	g.assign(g.members, g.assigned)
	for p := range g.owner {
		if g.owner[p] != g.assigned[p] && !busy(p) && g.Release(p) {
			moved = append(moved, p)
		}
	}
	return moved
}
