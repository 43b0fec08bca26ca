package stream

import "time"

// The back-off after a nack.
const (
	backoffFirst = 100 * time.Millisecond
	backoffMost  = 30 * time.Second
)

// suspectAfter failures a message is handed out alone, so that its neighbours
// do not pay for it.
const suspectAfter = 2

// Backoff is how long a message waits after its n-th failure by a nack: not at
// all after the first, then 100 ms doubling to 30 s.
func Backoff(failures int) time.Duration {
	switch {
	case failures <= 1:
		return 0
	case failures >= 11: // 100 ms << 9 is beyond 30 s
		return backoffMost
	}
	return min(backoffFirst<<(failures-2), backoffMost)
}
