package core

import (
	"errors"
	"fmt"
	"time"
)

// A Code says what went wrong in a word that never changes. Callers switch on
// it, never on an error's text.
type Code string

// The codes of the contract.
const (
	CodeInvalidRequest       Code = "invalid_request"
	CodeAdminDisabled        Code = "admin_disabled"
	CodeUnknownTopic         Code = "unknown_topic"
	CodeUnknownGroup         Code = "unknown_group"
	CodeUnknownPartition     Code = "unknown_partition"
	CodeUnknownRoute         Code = "unknown_route"
	CodeMethodNotAllowed     Code = "method_not_allowed"
	CodeTopicExists          Code = "topic_exists"
	CodeGroupExists          Code = "group_exists"
	CodeStaleReceipt         Code = "stale_receipt"
	CodeNotInFlight          Code = "not_in_flight"
	CodeNotOwner             Code = "not_owner"
	CodeLeaseLimit           Code = "lease_limit"
	CodeTooLarge             Code = "too_large"
	CodeBatchExceedsCapacity Code = "batch_exceeds_capacity"
	CodeUnsupportedMedia     Code = "unsupported_media"
	CodePartitionFull        Code = "partition_full"
	CodeTopicFull            Code = "topic_full"
	CodeMemoryFull           Code = "memory_full"
	CodeDraining             Code = "draining"
	CodeTooManyConnections   Code = "too_many_connections"
	CodeStorageFull          Code = "storage_full"
	CodeInternal             Code = "internal"
)

// An Error is a caller's mistake or a refusal. Our own broken invariants panic
// instead, with the numbers in the text.
type Error struct {
	Code Code
	// Detail is one sentence for a person: what cannot be done, with the value
	// that was wrong, and what to do next.
	Detail string
	// RetryAfter is when trying again makes sense, 0 where the code does not
	// say so.
	RetryAfter time.Duration
	// Fields is the context, in the order in which it is shown.
	Fields []Field
}

// A Field is one named piece of an error's context.
type Field struct {
	Name  string
	Value any // a string, an integer, a bool, or a slice of structs with JSON tags
}

func (e *Error) Error() string { return string(e.Code) + ": " + e.Detail }

// Retryable reports whether the same call may succeed later without a change.
func (e *Error) Retryable() bool {
	switch e.Code {
	case CodePartitionFull, CodeTopicFull, CodeMemoryFull, CodeDraining, CodeTooManyConnections, CodeStorageFull, CodeInternal:
		return true
	}
	return false
}

// With returns the error with one more piece of context.
func (e *Error) With(name string, value any) *Error {
	e.Fields = append(e.Fields, Field{name, value})
	return e
}

// Errorf makes an error of a code; format and args are its Detail.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Detail: fmt.Sprintf(format, args...)}
}

// CodeOf returns the code of err, CodeInternal where it has none, and "" for
// nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return CodeInternal
}
