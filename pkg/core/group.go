package core

import "time"

// GroupType says how the members of a group share its messages.
type GroupType string

// The types of groups.
const (
	// Ordered: members share the partitions, one owner each, in order, with
	// cumulative acks.
	Ordered GroupType = "ordered"
	// Queue: members share the messages, each with a lease and an ack of its
	// own, in no order.
	Queue GroupType = "queue"
)

// Start says where a new group begins.
type Start string

// The places where a group can begin.
const (
	Latest   Start = "latest"   // with what is appended from now on
	Earliest Start = "earliest" // with what is still held
)

// Strategy says how an ordered group shares its partitions.
type Strategy string

// The strategies.
const (
	Sticky     Strategy = "sticky"      // starts as round robin, then moves as few as it can
	RoundRobin Strategy = "round-robin" // partition p to member p mod n, in the order of joining
)

// GroupSettings is what a group is like.
type GroupSettings struct {
	Type           GroupType
	Strategy       Strategy
	SessionTimeout time.Duration // how long a silent member without a poll or a lease stays one
	MaxLease       time.Duration // how long a batch can be kept by extending its lease
	Expires        time.Duration // the group is deleted when it had no members this long; 0: never
}

// GroupSpec is what a caller asks a group to be like.
type GroupSpec struct {
	Type           Opt[GroupType]
	Start          Opt[Start]
	Strategy       Opt[Strategy]
	SessionTimeout Opt[time.Duration]
	MaxLease       Opt[time.Duration]
	Expires        Opt[time.Duration]
}

// Settings fills what s leaves out and checks all of it.
func (s GroupSpec) Settings() (GroupSettings, error) {
	g := GroupSettings{
		Type:           s.Type.Or(Ordered),
		Strategy:       s.Strategy.Or(Sticky),
		SessionTimeout: s.SessionTimeout.Or(DefaultSessionTimeout),
		MaxLease:       s.MaxLease.Or(DefaultMaxLease),
		Expires:        s.Expires.Or(0),
	}
	if g.Type != Ordered && g.Type != Queue {
		return g, Invalid("type", "cannot make a group of type %.40q: it is %s or %s", g.Type, Ordered, Queue)
	}
	if g.Strategy != Sticky && g.Strategy != RoundRobin {
		return g, Invalid("strategy", "cannot use strategy %.40q: it is %s or %s", g.Strategy, Sticky, RoundRobin)
	}
	if start := s.Start.Or(Latest); start != Latest && start != Earliest {
		return g, Invalid("start", "cannot start at %.40q: it is %s or %s", start, Latest, Earliest)
	}
	if err := checkDuration("session-timeout", g.SessionTimeout); err != nil {
		return g, err
	}
	if err := checkDuration("max-lease", g.MaxLease); err != nil {
		return g, err
	}
	if g.Expires != 0 {
		return g, checkDuration("expires", g.Expires)
	}
	return g, nil
}

// Differs names the first setting that was given and is not g's, "" if there is
// none. Where a group started is no setting of it.
func (s GroupSpec) Differs(g GroupSettings) string {
	switch {
	case s.Type.differs(g.Type):
		return "type"
	case s.Strategy.differs(g.Strategy):
		return "strategy"
	case s.SessionTimeout.differs(g.SessionTimeout):
		return "session-timeout"
	case s.MaxLease.differs(g.MaxLease):
		return "max-lease"
	case s.Expires.differs(g.Expires):
		return "expires"
	}
	return ""
}

// Membership is what a member is told of its place in a group.
type Membership struct {
	Member     string
	Generation int64
	Partitions []int // ascending; none in a queue group, whose members share the messages
}
