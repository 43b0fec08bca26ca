package stream

// A Kind says what a Change does.
type Kind uint8

// The kinds of changes.
const (
	// Granted hands [From, To) out to Member as Delivery, until Until.
	Granted Kind = iota + 1
	// Acked marks [From, To) as done.
	Acked
	// Returned ends the delivery of [From, To) without an ack: it can be handed
	// out again at Until. [FailedFrom, FailedTo) failed.
	Returned
	// Extended moves the lease of [From, To) to Until.
	Extended
	// Fenced makes the receipts of the latest delivery stale for ever, because
	// the partition went to another member.
	Fenced
)

// A Cause says why messages came back.
type Cause uint8

// The causes.
const (
	None    Cause = iota
	Nacked        // the member said that it failed
	Expired       // the lease ended
	Left          // the member left
	Unsent        // the answer could not be written: as if never handed out
)

// A Change is one step of a cursor. It says all that Apply needs, so that it
// can be recorded, and applied again to a cursor in the same state.
type Change struct {
	Kind                 Kind
	Cause                Cause  // of Returned
	Group                uint64 // whose cursor
	Delivery             uint64 // of Granted
	Member               uint64 // who gets it, or had it
	From, To             int64  // [From, To)
	FailedFrom, FailedTo int64  // of Returned: an attempt is counted for each
	At                   Instant
	Until                Instant
}
