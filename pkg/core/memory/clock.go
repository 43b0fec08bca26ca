package memory

import (
	"time"

	"github.com/podmq/podmq/pkg/core/stream"
)

// A clock reads both clocks at once: the monotonic one that leases and delays
// run on, and the wall clock that published_at shows.
type clock struct{ origin time.Time }

func (c clock) now() (now stream.Instant, unixNano int64) {
	t := time.Now()
	return stream.Instant(t.Sub(c.origin)), t.UnixNano()
}
