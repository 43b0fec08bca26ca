// Package balance decides which member of an ordered group gets which
// partition, and when a partition changes hands.
//
// A member is assigned partitions by a strategy; it owns a partition once that
// has been handed over. The two differ while a member that must give a
// partition away still has a batch of it out: drain first, then hand over.
//
// It is pure: no lock, goroutine or clock, and one goroutine at a time. Who is
// still alive, it is told by Join and Leave.
package balance
