package enginetest

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/podmq/podmq/pkg/core"
)

// Options are what a test asks of an engine.
type Options struct {
	Topic    core.TopicSettings // what a topic gets that does not say
	MaxBytes int64              // held by all topics together
}

// Features names what an engine cannot do. The zero value is an engine that
// keeps every promise.
type Features struct {
	RealTime      bool // its time cannot be virtual
	SplitBatches  bool // a batch over several partitions may be stored in part
	OffsetGaps    bool // offsets of a partition leave numbers out
	LooseCapacity bool // a partition may hold a little more than its capacity
}

// lacks names the first of needs that f cannot do, "" if there is none.
func (f Features) lacks(needs Features) string {
	switch {
	case f.RealTime && needs.RealTime:
		return "virtual time"
	case f.SplitBatches && needs.SplitBatches:
		return "whole batches across partitions"
	case f.OffsetGaps && needs.OffsetGaps:
		return "offsets without gaps"
	case f.LooseCapacity && needs.LooseCapacity:
		return "exact capacity"
	}
	return ""
}

// What a test needs of an engine, in the words of Features.
var (
	anyEngine     = Features{}
	virtualTime   = Features{RealTime: true}
	wholeBatches  = Features{SplitBatches: true}
	denseOffsets  = Features{OffsetGaps: true}
	exactCapacity = Features{LooseCapacity: true}
	exactEngine   = Features{RealTime: true, SplitBatches: true, OffsetGaps: true, LooseCapacity: true}
)

// A test is one promise.
type test struct {
	name  string
	needs Features
	run   func(*script)
}

// Run holds the engines that open makes against the contract. Each is empty when
// it comes and closed when its test ends.
func Run(t *testing.T, open func(t testing.TB, o Options) core.Engine, features Features) {
	scripts := slices.Concat(seedTests, adminTests, deliveryTests, orderTests, receiptTests, lateTests, queueTests,
		ownerTests, handoverTests, sessionTests, flowTests, budgetTests, waitTests, fairTests, timeTests, attemptTests,
		pollTests, dataTests, lifeTests)
	for _, tt := range scripts {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if what := features.lacks(tt.needs); what != "" {
				t.Skipf("the engine has no %s", what)
			}
			features.bubble(t, func(t *testing.T) { tt.run(newScript(t, open, features)) })
		})
	}
	t.Run("Random operations beside a twin", func(t *testing.T) { Property(t, open, features) })
	t.Run("Concurrent clients are linearizable", func(t *testing.T) { Linearizability(t, open, features) })
	t.Run("Chaos loses nothing", func(t *testing.T) { Chaos(t, open, features) })
}

// bubble runs f in virtual time where the engine can.
func (f Features) bubble(t *testing.T, run func(*testing.T)) {
	if f.RealTime {
		run(t)
		return
	}
	synctest.Test(t, run)
}
