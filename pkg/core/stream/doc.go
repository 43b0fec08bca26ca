// Package stream decides what happens in one partition: a log of messages, and
// for each group a cursor that grants batches, judges receipts, counts attempts
// and knows when a lease ends.
//
// It is pure. It has no lock, goroutine, clock or logger: the time is an
// argument, and a partition is used by one goroutine at a time. Deciding and
// changing are apart. Offer, Judge, Nack, Unsent, Expired and Left look and
// answer, and tidy up reminders at most. What a partition is changes by Append,
// AddGroup, RemoveGroup, and Apply of a Change, which is a value: recorded and
// applied again in the same order these lead to the same state, which is what a
// journal needs.
//
// It does not know topics, members' names, memory budgets or who waits: those
// are pkg/core/memory's.
package stream
