// Package core holds the words of PodMQ and the contract of its engines.
//
// A message is published to a topic and appended to one of the topic's
// partitions, where it gets the next offset. Every consumer group has a cursor
// in every partition: what lies below committed is done, what lies in
// [committed, next) is handed out, what lies in [next, end) is still to come. A
// poll hands a batch to a member of the group, with a lease and a receipt; an
// ack moves committed, a nack or the end of the lease brings the messages back.
//
//	Message ─► topic ─► partition ─► cursor of a group ─► lease ─► ack
//
// The package decides nothing and owns nothing: it validates, and it names.
// pkg/core/stream decides what happens in one partition, pkg/core/balance who
// owns which partition, and an engine such as pkg/core/memory owns the state
// that they decide about. An engine knows nothing of HTTP, metrics or settings.
//
// Values of this package are plain data. A Message is immutable and may be
// shared between goroutines; everything else belongs to one goroutine at a time
// unless its comment says otherwise.
package core
