package stream

import (
	"math"
	"time"
)

// An Instant is a moment on the engine's monotonic clock, in nanoseconds since
// an origin that the engine chooses.
type Instant int64

// Never is later than every moment.
const Never Instant = math.MaxInt64

// Add returns the instant d after i.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d) }

// Sub returns the time from j to i.
func (i Instant) Sub(j Instant) time.Duration { return time.Duration(i - j) }
