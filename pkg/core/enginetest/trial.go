package enginetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

// A trial is one run of random operations on an engine and its twin, held
// against each other after every step.
type trial struct {
	twin
	engine core.Engine
	ctx    context.Context

	expired    int     // leases that ended in this very moment
	known      []known // receipts that were given out
	parked     []*parkedPoll
	replays    map[replayKey]known
	repeats    map[uint64]int  // answers that hold a delivery beside the first
	deliveries map[uint64]bool // numbers that were used
	published  uint64
	sent       int // names the next payload
	unheard    uint64
	saw        map[string]int // what happened, so that a run can tell what it tried
	script     []string
}

// A known receipt is one that a poll gave.
type known struct {
	group   *twinGroup // that it is of: another by that name is another
	member  *twinMember
	receipt core.Receipt
}

type replayKey struct {
	group      *twinGroup
	member, id string
}

// A parkedPoll is a poll that waits beside the operations.
type parkedPoll struct {
	group    *twinGroup
	req      core.PollRequest
	deadline time.Time
	repeated bool // its poll-id came again, which ends it
	done     chan struct{}
	batch    core.Batch
	err      error
}

// A mismatch is what makes a trial fail.
type mismatch string

func (t *trial) fail(format string, args ...any) {
	panic(mismatch(fmt.Sprintf(format, args...)))
}

// trialTopic is the topic of every trial.
const trialTopic = "orders"

// trialGroups are the groups that a trial makes and deletes.
var trialGroups = map[string]core.GroupSettings{
	"ordered": {Type: core.Ordered, Strategy: core.Sticky, SessionTimeout: 20 * time.Second, MaxLease: time.Hour},
	"queue":   {Type: core.Queue, Strategy: core.Sticky, SessionTimeout: 3 * time.Second, MaxLease: 2 * time.Second},
	"turns":   {Type: core.Ordered, Strategy: core.RoundRobin, SessionTimeout: 1200 * time.Millisecond, MaxLease: 1500 * time.Millisecond},
}

var trialGroupNames = slices.Sorted(maps.Keys(trialGroups))

// newTrial makes the topic and begins.
func newTrial(ctx context.Context, engine core.Engine, o Options) (*trial, error) {
	t := &trial{engine: engine, ctx: ctx, saw: make(map[string]int)}
	_, err := engine.CreateTopic(ctx, trialTopic, core.TopicSpec{})
	t.begin(o)
	return t, err
}

func (t *trial) begin(o Options) {
	t.twin = twin{settings: o.Topic, budget: o.MaxBytes, now: time.Now()}
	for range o.Topic.Partitions {
		t.parts = append(t.parts, &twinPart{})
	}
	t.replays = make(map[replayKey]known)
	t.repeats = make(map[uint64]int)
	t.deliveries = make(map[uint64]bool)
	t.published, t.unheard = 0, 0
}

// run does all operations and reports the first that the twin does not agree
// with.
func (t *trial) run(ops []op) (err error) {
	defer func() {
		if broken := recover(); broken != nil {
			err = fmt.Errorf("%v\n  after %s", broken, strings.Join(t.script, "\n        "))
		}
	}()
	for _, name := range trialGroupNames {
		t.createGroup(name, nil, false)
	}
	for _, o := range ops {
		if o.Kind == opNothing {
			continue
		}
		t.script = append(t.script, o.String())
		t.do(o)
		t.atRest()
	}
	return nil
}

// atRest collects what the last step led to and compares everything.
func (t *trial) atRest() {
	synctest.Wait()
	t.sync()
	t.collect()
	t.tidy()
	t.compare()
}

// advance lets time pass, from one moment at which something may happen to the
// next.
func (t *trial) advance(d time.Duration) {
	target := t.now.Add(d)
	for t.now.Before(target) {
		next := t.nextMoment(target)
		<-time.After(next.Sub(t.now))
		t.now = time.Now()
		t.expired = t.expire()
		t.saw["lease ended"] += t.expired
		t.atRest()
		t.expired = 0
	}
}

// nextMoment is the first after now at which a lease, a backoff, a session or
// the wait of a poll can end, target at the latest.
func (t *trial) nextMoment(target time.Time) time.Time {
	next := target
	at := func(moment time.Time) {
		if moment.After(t.now) && moment.Before(next) {
			next = moment
		}
	}
	for _, g := range t.groups {
		for _, m := range g.members {
			for _, seen := range m.seen {
				at(seen.Add(g.settings.SessionTimeout))
			}
		}
		for _, c := range g.cursors {
			at(c.due)
			for i := range c.msgs {
				at(c.msgs[i].due)
				if l := c.msgs[i].lease; l != nil {
					at(l.until)
				}
			}
		}
	}
	for _, p := range t.parked {
		at(p.deadline)
	}
	return next
}

// sync takes over which members the engine has let go, if it may, and how it
// shares the partitions now.
func (t *trial) sync() {
	for _, g := range t.groups {
		gs, err := t.engine.Group(t.ctx, trialTopic, g.name)
		if err != nil {
			t.fail("Group %s: %v", g.name, err)
		}
		t.syncMembers(g, gs)
		t.syncShares(g, gs)
	}
	t.tidy()
}

func (t *trial) syncMembers(g *twinGroup, gs core.GroupStats) {
	there := make(map[string]bool)
	for _, m := range gs.Members {
		there[m.Member] = true
		if g.member(m.Member) == nil {
			t.fail("%s has the member %s, who never joined or left", g.name, m.Member)
		}
	}
	for _, m := range slices.Clone(g.members) {
		busy := g.leased(m.name) || t.hasParked(g, m.name)
		silent := t.now.Sub(m.sure())
		switch {
		case there[m.name] && !busy && t.now.Sub(m.latest()) >= g.settings.SessionTimeout:
			t.fail("%s still has the member %s, silent for %v", g.name, m.name, silent)
		case !there[m.name] && (busy || silent < g.settings.SessionTimeout):
			t.fail("%s let the member %s go, silent for %v, with a lease or poll: %v", g.name, m.name, silent, busy)
		case !there[m.name]:
			t.saw["session ended"]++
			g.remove(m.name)
			if t.expired > 0 { // which came first, and so who was handed the partition, is not seen
				t.forget(g)
			}
		}
	}
}

// forget drops what is known of a group's receipts, where what they are worth is
// open.
func (t *trial) forget(g *twinGroup) {
	t.known = slices.DeleteFunc(t.known, func(k known) bool { return k.group == g })
}

func (t *trial) hasParked(g *twinGroup, member string) bool {
	return slices.ContainsFunc(t.parked, func(p *parkedPoll) bool { return p.group == g && p.req.Member == member })
}

func (t *trial) syncShares(g *twinGroup, gs core.GroupStats) {
	now := make([]string, len(t.parts))
	var names []string
	for _, m := range gs.Members {
		names = append(names, m.Member)
		for _, p := range m.Partitions {
			if now[p] != "" || !slices.IsSorted(m.Partitions) {
				t.fail("%s is shared as %q", g.name, assigned(gs))
			}
			now[p] = m.Member
		}
	}
	if g.changes == 0 {
		if !slices.Equal(now, g.assigned) || gs.Generation != g.generation {
			t.fail("%s was shared as %v in generation %d and is as %v in %d, though no member came or went",
				g.name, g.assigned, g.generation, now, gs.Generation)
		}
		return
	}
	if gs.Generation <= g.generation {
		t.fail("members of %s came or went, but the generation went from %d to %d", g.name, g.generation, gs.Generation)
	}
	if !g.queue() {
		if why := unfair(g, names, now); why != "" {
			t.fail("%s was shared as %v and is now as %v among %v: %s", g.name, g.assigned, now, names, why)
		}
		if !slices.Equal(now, g.assigned) && len(g.members) > 1 {
			t.saw["rebalanced"]++
		}
		if g.changes > 1 { // through whose hands a partition went in between is not seen
			t.forget(g)
			g.shuffled = t.now
		}
		g.assigned = now
	}
	g.generation, g.changes = gs.Generation, 0
}

// unfair says what is wrong with an assignment.
func unfair(g *twinGroup, names, now []string) string {
	if len(names) == 0 {
		return ""
	}
	share, rest := len(now)/len(names), len(now)%len(names)
	had, kept := make(map[string]int), 0
	for p, name := range now {
		switch {
		case name == "":
			return "a partition is nobody's"
		case g.settings.Strategy == core.RoundRobin && name != names[p%len(names)]:
			return "it is not round robin"
		case name == g.assigned[p]:
			kept++
		}
		had[g.assigned[p]]++
	}
	before := make([]int, len(names))
	for i, name := range names {
		before[i] = had[name]
		n := 0
		for _, owner := range now {
			if owner == name {
				n++
			}
		}
		if n < share || n > share+1 {
			return "it is uneven"
		}
	}
	slices.SortFunc(before, func(a, b int) int { return b - a })
	most := 0
	for i, n := range before {
		if i < rest {
			most += min(n, share+1)
		} else {
			most += min(n, share)
		}
	}
	if g.settings.Strategy == core.Sticky && g.changes == 1 && kept < most {
		return fmt.Sprintf("%d partitions stayed, %d could have", kept, most)
	}
	return ""
}
