package core

import "context"

// An Engine keeps topics and groups and serves publish, poll and settle. The
// in-memory one is pkg/core/memory; pkg/core/enginetest is the suite that each
// must pass.
//
// All methods may be called concurrently. Names are checked by the engine and
// not kept: a caller may pass strings that it will overwrite. A method whose
// context ends first returns the context's error, and then has changed nothing;
// every other error is an *Error, and every refusal leaves things as they were.
// A call on a topic, and every poll, ends with CodeUnknownTopic or
// CodeUnknownGroup when these are deleted under it.
type Engine interface {
	// Epoch names this run of the engine.
	Epoch() string

	// CreateTopic makes a topic, or reports that it exists and is as spec says.
	// CodeInvalidRequest, CodeTopicExists, CodeMemoryFull (a reservation that
	// does not fit).
	CreateTopic(ctx context.Context, topic string, spec TopicSpec) (created bool, err error)
	// DeleteTopic ends every call that waits on the topic. CodeUnknownTopic.
	DeleteTopic(ctx context.Context, topic string) error
	// Topic looks at one topic. CodeUnknownTopic.
	Topic(ctx context.Context, topic string) (TopicStats, error)

	// Publish stores all messages or none, and appends to placed where each
	// went. It keeps the messages, not the slice. CodeUnknownTopic,
	// CodeUnknownPartition, CodeTooLarge, CodeBatchExceedsCapacity,
	// CodePartitionFull, CodeTopicFull, CodeMemoryFull, CodeDraining (only for
	// one that would wait).
	Publish(ctx context.Context, topic string, req *PublishRequest, placed []Placement) ([]Placement, error)

	// CreateGroup makes a group at one instant across all partitions, or reports
	// that it exists and is as spec says. CodeGroupExists.
	CreateGroup(ctx context.Context, topic, group string, spec GroupSpec) (created bool, err error)
	// DeleteGroup releases the group's backlog. CodeUnknownGroup.
	DeleteGroup(ctx context.Context, topic, group string) error
	// Group looks at one group. CodeUnknownGroup.
	Group(ctx context.Context, topic, group string) (GroupStats, error)

	// Join makes a member, or reports that it is one.
	Join(ctx context.Context, topic, group, member string) (m Membership, joined bool, err error)
	// Leave ends a membership: what the member has unsettled comes back at once,
	// uncounted. No error when it was no member.
	Leave(ctx context.Context, topic, group, member string) error

	// Poll fills batch; an empty one is no error. It joins the member.
	// CodeStaleReceipt (req.Acks wholly stale: nothing was polled), CodeNotOwner,
	// CodeUnknownPartition, CodeDraining (nothing is there, and it must not wait).
	Poll(ctx context.Context, topic, group string, req *PollRequest, batch *Batch) error
	// Return gives back a batch whose answer could not be written: as if it had
	// never been handed out. What no longer counts of it is passed over. A batch
	// that stands in other answers too, because its poll-id was repeated, comes
	// back with the last of them.
	Return(ctx context.Context, topic, group string, receipt *Receipt) error

	// Ack settles as done. CodeStaleReceipt, CodeNotInFlight,
	// CodeInvalidRequest (Upto in a queue group).
	Ack(ctx context.Context, topic, group string, req *AckRequest) (Settled, error)
	// Nack hands out again. CodeStaleReceipt, CodeNotInFlight.
	Nack(ctx context.Context, topic, group string, req *NackRequest) (Settled, error)
	// Extend renews leases. CodeStaleReceipt, CodeLeaseLimit.
	Extend(ctx context.Context, topic, group string, req *ExtendRequest) (Settled, error)

	// Stats looks at everything, topic by topic.
	Stats() Stats

	// Drain ends everything that waits with CodeDraining, and lets nothing wait
	// from now on. It may be called more than once.
	Drain()
	// Close drains, and frees what the engine runs on. No call may follow.
	Close() error
}
