package loadgen

import (
	"fmt"
	"sync/atomic"
	"time"
)

// A Tally is what all producers and consumers of a run have done so far. It is
// safe for concurrent use.
type Tally struct {
	groups  uint64       // how often each message is to be delivered
	window  uint64       // messages published and not delivered to every group
	endAt   atomic.Int64 // when producers stop, ns since the start
	sources atomic.Int64 // that have not stopped

	published  atomic.Uint64 // sent; once all sources have ended, also stored
	stored     atomic.Uint64 // answered as stored
	sentSum    atomic.Uint64 // of the numbers of the messages
	lastStored atomic.Int64

	delivered     atomic.Uint64
	deliveredSum  atomic.Uint64
	lastDelivered atomic.Int64 // ns since the start
}

// NewTally makes a tally of a run whose producers stop after d and whose
// messages go to so many groups, 0 when nobody consumes. Producers pause while
// more than window messages are on their way; 0: never.
func NewTally(d time.Duration, groups, window int) *Tally {
	t := &Tally{groups: uint64(groups), window: uint64(window)}
	t.endAt.Store(int64(d))
	return t
}

// Stop makes producers stop now.
func (t *Tally) Stop() { t.endAt.Store(0) }

// Stored is how many messages the broker has confirmed.
func (t *Tally) Stored() uint64 { return t.stored.Load() }

// Delivered is how many messages have come, one for each group.
func (t *Tally) Delivered() uint64 { return t.delivered.Load() }

// room reports whether n more messages may be sent.
func (t *Tally) room(n int) bool {
	if t.window == 0 || t.groups == 0 {
		return true
	}
	return t.published.Load()+uint64(n) <= t.window+t.delivered.Load()/t.groups
}

// Over reports whether all has been said and done.
func (t *Tally) Over() bool {
	return t.sources.Load() == 0 && t.delivered.Load() >= t.published.Load()*t.groups
}

// pending reports whether an answer or a delivery is to come.
func (t *Tally) pending() bool {
	sent := t.published.Load()
	return t.stored.Load() < sent || t.delivered.Load() < sent*t.groups
}

// Took is the time from the start to the last delivery, or, when nobody
// consumes, to the last confirmation.
func (t *Tally) Took() time.Duration {
	if t.groups == 0 {
		return time.Duration(t.lastStored.Load())
	}
	return time.Duration(t.lastDelivered.Load())
}

// Check says what is wrong with what was delivered.
func (t *Tally) Check() error {
	sent, stored, got := t.published.Load(), t.stored.Load(), t.delivered.Load()
	switch {
	case stored != sent:
		return fmt.Errorf("cannot trust this run: %d messages were sent and %d confirmed", sent, stored)
	case got != sent*t.groups:
		return fmt.Errorf("cannot trust this run: %d messages were sent to %d groups, and %d delivered", sent, t.groups, got)
	case t.deliveredSum.Load() != t.sentSum.Load()*t.groups:
		return fmt.Errorf("cannot trust this run: the messages delivered are not those that were sent")
	}
	return nil
}
