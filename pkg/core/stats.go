package core

import "time"

// Stats is one look at an engine: plain values that belong to the caller.
type Stats struct {
	MemoryBytes int64 // held by all topics
	MemoryLimit int64
	LeasesOut   int          // batches of ordered groups and messages of queue groups
	Topics      []TopicStats // by name
}

// TopicStats is one topic, all of it read at one moment.
type TopicStats struct {
	Name       string
	Settings   TopicSettings
	Partitions []PartitionStats // index is the partition
	Groups     []GroupStats     // by name

	Published      uint64 // messages
	PublishedBytes uint64 // payload, key and headers
	WithoutGroup   uint64 // messages dropped because the topic had no group
	Rejected       []Rejection
	Publishing     int // publishers waiting for room
	PublishWait    Histogram
}

// Rejection counts publishes refused for one reason.
type Rejection struct {
	Reason Code
	Count  uint64
}

// PartitionStats is one partition; it holds [Start, End).
type PartitionStats struct {
	Start, End int64
	Backlog    int64 // End - the slowest committed
	Bytes      int64 // payload, key, headers and MessageOverhead of what is held
}

// GroupStats is one group, read together with its topic.
type GroupStats struct {
	Name       string
	Settings   GroupSettings
	Generation int64
	Members    []MemberStats // in the order of joining
	Cursors    []CursorStats // index is the partition

	Delivered       uint64
	Acked           uint64
	Redelivered     Redelivered
	InFlight        int64 // messages
	OldestUnacked   time.Duration
	PollsWaiting    int
	DeliveryLatency Histogram // publish to first hand-out
}

// Redelivered counts messages handed out again, by how their delivery before
// had ended.
type Redelivered struct{ Nack, Lease, Leave uint64 }

// MemberStats is one member and what it is assigned.
type MemberStats struct {
	Member     string
	Partitions []int // ascending; none in a queue group
}

// CursorStats is one cursor.
type CursorStats struct {
	Committed, Next int64
	Lag             int64
	Owner           string        // who holds the partition now, "" for nobody
	Lease           time.Duration // what is left of the lease that is out, 0 for none
	LeaseMember     string        // who has it
}

// LatencyBounds are the upper bounds of a Histogram's buckets; the last bucket
// has none.
var LatencyBounds = [...]time.Duration{
	50 * time.Microsecond, 100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond,
	50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second, 30 * time.Second, 60 * time.Second,
}

// A Histogram counts durations; it is not safe for concurrent use.
type Histogram struct {
	Counts [len(LatencyBounds) + 1]uint64 // not cumulative
	Sum    time.Duration
}

// Observe counts d.
func (h *Histogram) Observe(d time.Duration) { h.ObserveN(d, 1) }

// ObserveN counts d n times.
func (h *Histogram) ObserveN(d time.Duration, n int) {
	h.Sum += d * time.Duration(n)
	lo, hi := 0, len(LatencyBounds)
	for lo < hi {
		if mid := (lo + hi) / 2; d <= LatencyBounds[mid] {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	h.Counts[lo] += uint64(n)
}

// Count is how many were observed.
func (h *Histogram) Count() (n uint64) {
	for _, c := range h.Counts {
		n += c
	}
	return n
}
