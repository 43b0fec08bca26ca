package core

import "time"

// The bounds of the contract. They are refused, never cut.
const (
	MaxNameLen          = 200
	MaxTopics           = 1_000
	MaxPartitions       = 1_024  // of one topic
	MaxPartitionsInAll  = 10_000 // of all topics together
	MaxCapacity         = 10_000_000
	MaxGroups           = 1_000 // of one topic
	MaxMembers          = 1_000 // of one group
	MaxKeyBytes         = 1 << 10
	MaxHeaderBytes      = 16 << 10 // names and values of one message, content type, sender and id included
	MaxBatchMessages    = 10_000
	MaxBatchBytes       = 16 << 20
	MaxPollMessages     = 10_000
	MaxPollBytes        = 16 << 20
	MaxPollPartitions   = 16 // what one batch may draw from
	MaxReceiptLen       = 512
	MaxWait             = 60 * time.Second
	MaxNackDelay        = time.Hour
	MaxDuration         = 7 * 24 * time.Hour // of a lease, a session or an expiry
	MinDuration         = time.Millisecond
	MessageOverhead     = 128 // what a held message costs beside its bytes
	DefaultMessageBytes = 1 << 20
)

// What a caller gets who does not say.
const (
	DefaultMember         = "default"
	DefaultPollMax        = 10
	DefaultPollBytes      = 1 << 20
	DefaultPollWait       = 5 * time.Second
	DefaultSessionTimeout = 10 * time.Second
	DefaultMaxLease       = time.Hour
	DefaultAckTimeout     = 30 * time.Second
	DefaultCapacity       = 1024
)
