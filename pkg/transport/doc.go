// Package transport serves PodMQ's socket API: HTTP/1.1 with keep-alive and
// pipelining, over a Unix socket and, where it is asked for, over TCP on the
// loopback. It carries bytes and time from outside to a core.Engine and its
// answers back; it decides nothing about messages and keeps nothing of them.
// Health and metrics have a port of their own, in pkg/transport/ops; the Go
// client is pkg/transport/client.
//
// The way of a request, and the file to look for it:
//
//	accept (server.go) ─► connection (conn.go, ready.go, input.go, head.go)
//	  ─► route (routes.go) ─► query (query.go)
//	  ─► handler (topics.go, publish.go, poll.go, …) ─► engine
//	  ─► answer (response.go, problem.go, json.go, frames.go, raw.go) ─► flush (output.go)
//
// A batch on its way in is read by messagejson.go (with jsonread.go) or frames.go.
//
// # Why the connection loop is our own
//
// The heads of requests are parsed by fasthttp, but its Server is not used,
// because it cannot keep these promises:
//
//   - An answer never waits behind a later request of its connection. Answers
//     are collected and written together, which saves system calls; they are
//     written before the connection would block: before it reads, before a call
//     that may wait, before a wait for memory.
//   - A batch whose answer could not be written is given back to the engine at
//     once. So whoever writes must know what it writes, and must see the error.
//   - A client that hangs up while its poll is parked gets nothing leased. One
//     goroutine waits for hang-ups of all connections (hangup.go).
//   - A large body is admitted before it is read, and a large answer before it is
//     made (budget.go).
//   - A request that comes whole costs two system calls: one read, and one write,
//     which it shares with those that came with it (ready.go).
//   - An idle connection costs a goroutine, a parked poll not much more, and a
//     request no deadline: time limits are kept by one goroutine for all
//     connections (clock.go).
//
// # Concurrency
//
// Server and its methods are safe for concurrent use. A connection belongs to
// the goroutine that serves it; others touch only the fields that its type says
// are shared. All memory of a request belongs to its connection and is used
// again for the next: what outlives a handler is copied, by core.NewMessage and
// core.ParseMessage, and nowhere else.
package transport
