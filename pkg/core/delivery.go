package core

import "time"

// AnyPartition stands where a caller names no partition.
const AnyPartition = -1

// PublishRequest is one publish: all of its messages are stored, or none.
type PublishRequest struct {
	// Messages are kept by the engine. One at least.
	Messages []Message
	// Partition overrides the choice by key, or AnyPartition.
	Partition int
	// Wait is how long to wait for room, 0 to MaxWait.
	Wait time.Duration
}

// Placement is where a message was stored.
type Placement struct {
	Partition int
	Offset    int64
}

// PollRequest is one poll.
type PollRequest struct {
	Member    string
	Max       int           // messages, 1 to MaxPollMessages
	MaxBytes  int           // payload, key and headers, 1 to MaxPollBytes; one message always fits
	Wait      time.Duration // how long to wait when there is nothing, 0 to MaxWait
	Partition int           // only this one, or AnyPartition
	Acks      []Receipt     // settled first
	PollID    string        // the same member repeating it gets the same batch while that is unsettled
}

// A Delivery is one message as a poll hands it out.
type Delivery struct {
	Message
	Partition int
	Offset    int64
	Attempt   int // 1 the first time
}

// A Batch is what one poll hands out. An engine fills it and reuses its slices.
type Batch struct {
	Deliveries []Delivery
	Queue      bool          // of a queue group: each delivery can be settled by a receipt of its own, Receipt.Message
	Receipt    Receipt       // of the whole batch; counts only when there are deliveries
	Lease      time.Duration // what is left of it
	Generation int64
	Stale      []StaleRange // of the acks that came with the poll
	Blocked    []Blocked    // of an empty batch: what was passed over because a batch is out
	Skipped    []Skipped    // what retention took from the group since its last poll
}

// Reset empties b and keeps its memory, but no message.
func (b *Batch) Reset() {
	clear(b.Deliveries)
	*b = Batch{
		Deliveries: b.Deliveries[:0],
		Receipt:    Receipt{Ranges: b.Receipt.Ranges[:0]},
		Stale:      b.Stale[:0],
		Blocked:    b.Blocked[:0],
		Skipped:    b.Skipped[:0],
	}
}

// Blocked is a partition that a poll passed over because a batch is out.
type Blocked struct {
	Partition int
	Member    string
	Lease     time.Duration
}

// Skipped is what a group lost to retention in one partition: [From, To).
type Skipped struct {
	Partition int
	From, To  int64
}

// Range is [From, To) of one partition.
type Range struct {
	Partition int
	From, To  int64
}

// StaleRange is a part of a receipt that no longer counts: the messages were
// handed out again since, or belong to another run of the broker.
type StaleRange struct {
	Partition int   `json:"partition"`
	From      int64 `json:"from"` // [From, To)
	To        int64 `json:"to"`
}

// AckRequest settles deliveries as done. Either Receipts are given, and then
// Partition and Upto narrow the one receipt to [.., Upto] of an ordered batch;
// or there are none, and Partition and Upto are what is in flight for Member.
type AckRequest struct {
	Receipts  []Receipt
	Partition Opt[int]
	Upto      Opt[int64]
	Member    string
	Buffer    []CursorPlace // memory for the answer's cursors, may be nil
}

// NackRequest hands a delivery out again.
type NackRequest struct {
	Receipt   Receipt
	Partition Opt[int]           // with Offset: only this partition's range ends
	Offset    Opt[int64]         // the one that failed
	Delay     Opt[time.Duration] // instead of the backoff
}

// ExtendRequest asks for a new lease from now.
type ExtendRequest struct {
	Receipt Receipt
	By      Opt[time.Duration] // the topic's ack timeout where it is not given
}

// Settled is what an ack, nack or extend touched.
type Settled struct {
	Cursors []CursorPlace
	Late    bool // an ack was applied after its lease had ended
	Stale   []StaleRange
	Lease   time.Duration // what is left for the part that is still out, 0 where nothing is
}

// CursorPlace is where a cursor stands after a settlement.
type CursorPlace struct {
	Partition int
	Committed int64
	Next      int64
}
