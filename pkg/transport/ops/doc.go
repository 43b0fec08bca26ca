// Package ops is what operators and their tools ask a broker: health and
// metrics, over plain HTTP on a port of its own.
//
// Everything is computed when it is asked for, from one snapshot of the engine
// and one of the server; nothing here runs beside a publish or a poll. The
// package keeps no history and decides nothing: Health says what run.go told it.
// All types are safe for concurrent use.
package ops
