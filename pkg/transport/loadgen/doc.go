// Package loadgen makes load and measures what becomes of it: producers and
// consumers on raw connections, driven by event loops that allocate nothing a
// message, so that the client is not what is measured.
//
//	Drive (drive.go) ─► Loop (loop.go): one thread, epoll, any number of connections
//	                  └► Session (a producer or consumer, of one protocol)
//	                       ├► Source: when to send what   ┐ count in a Tally,
//	                       └► Sink:   what has arrived    ┘ shared by all loops
//
// PodMQ's sessions are here (broker.go, producer.go, consumer.go), in frames and in
// JSON. The benchmark of PodMQ beside its peers, hack/bench, adds sessions of
// their protocols, and so drives all with the same code.
//
// Every message carries a number. A run counts what was delivered and adds up
// the numbers: a message lost, doubled or mangled is an error and no result.
//
// With a rate, producers keep a schedule and latencies count from when a message
// was due, not from when it was sent: a broker that stalls does not get fewer
// samples for it (coordinated omission). Without one, each producer sends as
// soon as it was answered, and its latency is only that of the calls made.
//
// A Loop and its sessions belong to the goroutine that runs them; a Tally is
// safe for concurrent use. Linux only, as the broker is.
package loadgen
