package balance

import "slices"

// A strategy fills assigned, whose index is the partition, from the members in
// the order of joining; it finds in it what was assigned before. Its outcome
// depends on nothing else.
type strategy func(members, assigned []MemberID)

// roundRobin gives partition p to member p mod n.
func roundRobin(members, assigned []MemberID) {
	for p := range assigned {
		assigned[p] = 0
		if len(members) > 0 {
			assigned[p] = members[p%len(members)]
		}
	}
}

// sticky gives each member as many partitions as the next, give or take one,
// and moves no more of them than that takes. What it is free to choose, it
// chooses as round robin would:
//
//	c1 joins            c1 [0 1 2]
//	c2 joins            c1 [0 2]    c2 [1]
//	c1 leaves                       c2 [0 1 2]
func sticky(members, assigned []MemberID) {
	if len(members) == 0 {
		clear(assigned)
		return
	}
	has := make(map[MemberID]int, len(members))
	for _, m := range members {
		has[m] = 0
	}
	for p, m := range assigned {
		if _, member := has[m]; member {
			has[m]++
		} else {
			assigned[p] = 0
		}
	}
	quota := quotas(members, has, len(assigned))

	// Those that have too much give away: first what round robin would give to
	// somebody else, from the highest down.
	for _, wanted := range []bool{false, true} {
		for p := len(assigned) - 1; p >= 0; p-- {
			m := assigned[p]
			if m != 0 && has[m] > quota[m] && (members[p%len(members)] == m) == wanted {
				assigned[p] = 0
				has[m]--
			}
		}
	}
	take := func(p int, m MemberID) {
		assigned[p] = m
		has[m]++
	}
	for p, m := range assigned {
		if turn := members[p%len(members)]; m == 0 && has[turn] < quota[turn] {
			take(p, turn)
		}
	}
	next := 0
	for p, m := range assigned {
		if m != 0 {
			continue
		}
		for has[members[next]] >= quota[members[next]] {
			next++
		}
		take(p, members[next])
	}
}

// quotas says how many partitions each member is to have. Those that have most
// keep the odd ones, and of equals those that joined first.
func quotas(members []MemberID, has map[MemberID]int, partitions int) map[MemberID]int {
	byCount := slices.Clone(members)
	slices.SortStableFunc(byCount, func(a, b MemberID) int { return has[b] - has[a] })
	quota := make(map[MemberID]int, len(members))
	for i, m := range byCount {
		quota[m] = partitions / len(members)
		if i < partitions%len(members) {
			quota[m]++
		}
	}
	return quota
}
