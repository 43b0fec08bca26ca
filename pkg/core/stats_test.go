package core_test

import (
	"testing"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

func TestHistogramCountsADurationInTheFirstBucketThatHoldsIt(t *testing.T) {
	last := len(core.LatencyBounds)
	for i, bound := range core.LatencyBounds {
		for d, want := range map[time.Duration]int{bound - 1: i, bound: i, bound + 1: i + 1} {
			var h core.Histogram
			h.Observe(d)
			if h.Counts[want] != 1 {
				t.Errorf("%v is not in bucket %d of %d: %v", d, want, last, h.Counts)
			}
		}
	}
	var h core.Histogram
	for _, d := range []time.Duration{0, time.Second, time.Hour} {
		h.Observe(d)
	}
	if h.Count() != 3 || h.Sum != time.Hour+time.Second || h.Counts[0] != 1 || h.Counts[last] != 1 {
		t.Errorf("0, 1s and 1h: count %d, sum %v, %v", h.Count(), h.Sum, h.Counts)
	}
}
