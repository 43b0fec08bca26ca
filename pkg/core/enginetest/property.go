package enginetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/podmq/podmq/pkg/core"
)

// One check of the property is this many operations on an engine of its own.
const opsPerCheck = 120

// A full run is this many rounds of rapid's hundred checks.
const fullRounds = 40

// leastOps is how many operations a full run tries at least.
const leastOps = 100_000

// Property tries random operations on many members, groups and partitions, and
// holds the engine against a twin after every one of them. The operations of a
// check are drawn first and done in a bubble of their own, so that rapid can
// shrink a list that fails; it is printed, and run again by the flags that are
// printed with it.
func Property(t *testing.T, open func(testing.TB, Options) core.Engine, features Features) {
	if what := features.lacks(exactEngine); what != "" {
		t.Skipf("the engine has no %s", what)
	}
	rounds := fullRounds
	if raceEnabled || testing.Short() {
		rounds = 3
	}
	tried, saw := 0, make(map[string]int)
	for round := range rounds {
		t.Run(fmt.Sprint("round ", round), func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				o := drawOptions(rt)
				ops := rapid.Custom(drawOps).Draw(rt, "operations")
				trial, err := check(t, open, o, ops)
				if err != nil {
					rt.Fatalf("%+v:\n%v", o.Topic, err)
				}
				tried += len(trial.script)
				for what, n := range trial.saw {
					saw[what] += n
				}
			})
		})
		if t.Failed() {
			return
		}
	}
	for _, what := range slices.Sorted(maps.Keys(saw)) {
		t.Logf("%8d %s", saw[what], what)
	}
	t.Logf("%8d operations tried", tried)
	if rounds < fullRounds {
		return
	}
	if tried < leastOps {
		t.Errorf("%d operations were tried, want %d at least", tried, leastOps)
	}
	for _, what := range strings.Split(mustSee, ", ") {
		if saw[what] < 10 {
			t.Errorf("%q was seen %d times in %d operations, so it is not tried", what, saw[what], tried)
		}
	}
}

// mustSee is what a full run of random operations must have led to, or it shows
// less than it says.
const mustSee = "ack by offset, ack done, ack late, ack stale, ack stale in part, delivered, extend, extend at the limit, " +
	"extend stale, given back, handed out alone, lease ended, nack, nack stale, parked, parked poll answered, " +
	"poll with stale ack, poll-id repeated, publish , publish memory_full, publish partition_full, rebalanced, redelivered, session ended"

func drawOptions(rt *rapid.T) Options {
	capacity := rapid.IntRange(1, 9).Draw(rt, "capacity")
	partitions := rapid.IntRange(1, 4).Draw(rt, "partitions")
	o := Options{
		Topic:    core.TopicSettings{Partitions: partitions, Capacity: capacity, AckTimeout: time.Second},
		MaxBytes: 1 << 20,
	}
	if rapid.Bool().Draw(rt, "little memory") {
		o.MaxBytes = 9 * core.MessageOverhead
	}
	return o
}

// check runs the operations on a new engine, in virtual time.
func check(t *testing.T, open func(testing.TB, Options) core.Engine, o Options, ops []op) (tr *trial, err error) {
	synctest.Test(t, func(t *testing.T) {
		engine := open(t, o)
		ctx, cancel := context.WithCancel(t.Context())
		if tr, err = newTrial(ctx, engine, o); err == nil {
			err = tr.run(ops)
		}
		cancel()
		if closed := engine.Close(); err == nil {
			err = closed
		}
	})
	return tr, err
}
