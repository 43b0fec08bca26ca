package memory

import (
	"sync/atomic"
	"time"

	"github.com/podmq/podmq/pkg/core/stream"
)

// A clock tells the time since the engine began, by the monotonic clock that
// leases and delays run on, and the wall clock's time that belongs to it, which
// published_at shows.
//
// Reading the wall clock as well would double what reading the time costs, so
// the distance between the two is measured once in a while: a step of the wall
// clock shows after wallEvery.
type clock struct {
	origin   time.Time
	distance atomic.Int64 // wall clock minus monotonic clock, ns
	measured atomic.Int64 // when, on the monotonic clock
}

const wallEvery = 100 * time.Millisecond

func (c *clock) start() {
	c.origin = time.Now()
	c.measure(c.origin)
}

func (c *clock) measure(t time.Time) {
	now := t.Sub(c.origin)
	c.distance.Store(t.UnixNano() - int64(now))
	c.measured.Store(int64(now))
}

func (c *clock) now() stream.Instant { return stream.Instant(time.Since(c.origin)) }

// unixNano is what the wall clock shows at now, which is the present.
func (c *clock) unixNano(now stream.Instant) int64 {
	if now.Sub(stream.Instant(c.measured.Load())) > wallEvery {
		c.measure(time.Now())
	}
	return int64(now) + c.distance.Load()
}
