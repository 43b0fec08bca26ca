package stream

import (
	"math"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

// A Cursor is the place of one group in one partition.
//
// Invariant: Committed() <= Next(); everything below Committed is done.
type Cursor interface {
	Committed() int64
	Next() int64
	// Unacked is how many messages of [start, end) are not done: the lag.
	Unacked(end int64) int64
	// InFlight is how many messages are handed out and not settled.
	InFlight() int64
	// Fresh is the first offset that was never handed out.
	Fresh() int64
	// History tells of an offset how often it has failed, whether it was handed
	// out before, and how that ended.
	History(offset int64) (failures int, seen bool, ended Cause)

	// Available reports whether Offer would find something.
	Available(end int64, now Instant) bool
	// Offer appends to dst what could be granted now, in runs, and takes it off
	// what is wanted.
	Offer(dst []Run, log *Log, want *Want, now Instant) []Run
	// Judge appends to dst what a receipt for run is still worth: nothing for an
	// empty one. An ordered cursor leaves out what is below committed.
	Judge(dst []Part, delivery uint64, run Run) []Part
	// Nack appends the changes that end the delivery of part, a Current one,
	// because failed could not be handled. It can be handed out again after
	// delay, or where none is given after the back-off.
	Nack(dst []Change, part Part, failed int64, delay core.Opt[time.Duration], now Instant) []Change
	// Unsent appends the changes that undo the delivery of part, a Current one.
	Unsent(dst []Change, part Part, now Instant) []Change
	// Expired appends the changes that time has brought.
	Expired(dst []Change, now Instant) []Change
	// Left appends the changes that end all deliveries to member.
	Left(dst []Change, member uint64, now Instant) []Change
	// Due is when time changes something next.
	Due(now Instant) Instant
	// Lease tells who has [committed, next) of an ordered group and until when;
	// 0 for nobody.
	Lease() (member uint64, until Instant)

	// apply carries a change out and returns how many leases it ended: batches
	// of an ordered cursor, messages of a queue's.
	apply(c Change) (ended int)
}

// A Want is what a poll still wants.
type Want struct {
	Messages int
	Bytes    int
	Runs     int  // how many more a receipt can hold
	Started  bool // the batch has messages
	// Closed says that nothing more goes into the batch: it has a message that
	// must stay alone, or came upon one that must, or that did not fit. Going on
	// to smaller ones would let them overtake it for ever; as it is, the next poll
	// begins with it.
	Closed bool
}

// Full reports whether nothing more can be taken.
func (w *Want) Full() bool { return w.Messages <= 0 || w.Runs <= 0 || w.Closed }

// take reports whether the message of that size, with that many failures, still
// fits, and counts it.
func (w *Want) take(size, failures int) bool {
	if w.Full() {
		return false
	}
	suspect := failures >= suspectAfter
	if w.Started && (suspect || size > w.Bytes) {
		w.Closed = true
		return false
	}
	w.Messages--
	w.Bytes -= size
	w.Started = true
	w.Closed = suspect
	return true
}

// offer appends to dst as much of run, from its start on, as is still wanted.
func (w *Want) offer(dst []Run, log *Log, run Run, failures func(offset int64) int) []Run {
	to := run.From
	for to < run.To && !w.Full() {
		span := log.Span(to, run.To)
		for i := range span {
			if !w.take(span[i].Size(), failures(to)) {
				return w.offered(dst, Run{run.From, to})
			}
			to++
		}
	}
	return w.offered(dst, Run{run.From, to})
}

func (w *Want) offered(dst []Run, run Run) []Run {
	if run.Len() == 0 {
		return dst
	}
	w.Runs--
	return append(dst, run)
}

// A Verdict says what a receipt is worth.
type Verdict uint8

// The verdicts.
const (
	Done    Verdict = iota + 1 // acked already: fine, and nothing changes
	Current                    // the latest delivery, and its lease is out
	Late                       // the latest delivery; it has ended, but nobody got the messages since
	Stale                      // handed out again since
)

// A Part is a piece of a receipt's run with one verdict.
type Part struct {
	Run
	Verdict Verdict
	Member  uint64  // of a Current part: who has it
	Granted Instant // of a Current part: since when
	Until   Instant // of a Current part: how long
}

// failures counts the failed attempts of the offsets from base on.
type failures struct {
	base   int64
	counts ring[uint16]
}

func (f *failures) of(offset int64) int {
	i := offset - f.base
	if i < 0 || i >= int64(f.counts.len()) {
		return 0
	}
	return int(*f.counts.at(int(i)))
}

// add counts one for offset; nothing below floor is ever counted again.
func (f *failures) add(offset, floor int64) {
	if f.counts.len() == 0 {
		f.base = floor
	}
	for f.base+int64(f.counts.len()) <= offset {
		f.counts.push(0)
	}
	if n := f.counts.at(int(offset - f.base)); *n < math.MaxUint16 {
		*n++
	}
}

// forget drops what lies below offset.
func (f *failures) forget(offset int64) {
	if k := min(offset-f.base, int64(f.counts.len())); k > 0 {
		f.counts.drop(int(k))
		f.base += k
	}
}
