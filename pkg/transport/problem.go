package transport

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/podmq/podmq/pkg/core"
)

// problems is all that an error can look like from outside.
var problems = map[core.Code]struct {
	status int
	title  string
}{
	core.CodeInvalidRequest:       {fasthttp.StatusBadRequest, "Invalid request"},
	core.CodeAdminDisabled:        {fasthttp.StatusForbidden, "Topics cannot be changed over the socket"},
	core.CodeUnknownTopic:         {fasthttp.StatusNotFound, "Unknown topic"},
	core.CodeUnknownGroup:         {fasthttp.StatusNotFound, "Unknown group"},
	core.CodeUnknownPartition:     {fasthttp.StatusNotFound, "Unknown partition"},
	core.CodeUnknownRoute:         {fasthttp.StatusNotFound, "Unknown path"},
	core.CodeMethodNotAllowed:     {fasthttp.StatusMethodNotAllowed, "Method not allowed"},
	core.CodeTopicExists:          {fasthttp.StatusConflict, "Topic exists with other settings"},
	core.CodeGroupExists:          {fasthttp.StatusConflict, "Group exists with other settings"},
	core.CodeStaleReceipt:         {fasthttp.StatusConflict, "Receipt no longer counts"},
	core.CodeNotInFlight:          {fasthttp.StatusConflict, "Offset not in flight"},
	core.CodeNotOwner:             {fasthttp.StatusConflict, "Partition of another member"},
	core.CodeLeaseLimit:           {fasthttp.StatusConflict, "Lease cannot be extended further"},
	core.CodeTooLarge:             {fasthttp.StatusRequestEntityTooLarge, "Too large"},
	core.CodeBatchExceedsCapacity: {fasthttp.StatusRequestEntityTooLarge, "Batch exceeds capacity"},
	core.CodeUnsupportedMedia:     {fasthttp.StatusUnsupportedMediaType, "Unsupported content type"},
	core.CodePartitionFull:        {fasthttp.StatusTooManyRequests, "Partition full"},
	core.CodeTopicFull:            {fasthttp.StatusTooManyRequests, "Topic full"},
	core.CodeMemoryFull:           {fasthttp.StatusTooManyRequests, "Memory full"},
	core.CodeTooManyConnections:   {fasthttp.StatusServiceUnavailable, "Too many connections"},
	core.CodeDraining:             {fasthttp.StatusServiceUnavailable, "Shutting down"},
	core.CodeStorageFull:          {fasthttp.StatusInsufficientStorage, "Storage full"},
	core.CodeInternal:             {fasthttp.StatusInternalServerError, "Internal error"},
}

// problemURI begins the type of a problem. It identifies and need not lead
// anywhere.
const problemURI = "https://podmq.io/problems/"

// problem is the answer to an error of a call that somebody waits for.
func (k *call) problem(err error) response {
	var e *core.Error
	if !errors.As(err, &e) {
		e = k.unexpected(err)
	} else if _, known := problems[e.Code]; !known {
		e = k.unexpected(e)
	}
	r := problemResponse(e)
	if e.Code == core.CodeMethodNotAllowed {
		r.lines = appendLine(r.lines, "Allow", strings.Join(allowed(k.allow), ", "))
	}
	return r
}

func problemResponse(e *core.Error) response {
	p := problems[e.Code]
	r := response{status: p.status, contentType: problemType}
	after := retryAfter(e)
	b := append([]byte(nil), `{"type":"`...)
	b = append(b, problemURI...)
	b = append(b, e.Code...)
	b = append(b, `","title":"`...)
	b = append(b, p.title...)
	b = append(b, '"')
	b = appendMember(b, "status", p.status)
	b = appendMember(b, "detail", e.Detail)
	b = appendMember(b, "code", string(e.Code))
	b = appendMember(b, "retryable", e.Retryable())
	if after > 0 {
		b = appendMember(b, "retry_after_ms", max(after.Milliseconds(), 1))
		r.lines = appendIntLine(nil, "Retry-After", int64((after+time.Second-1)/time.Second))
	}
	for _, f := range e.Fields {
		b = appendMember(b, f.Name, f.Value)
	}
	r.body = append(b, '}')
	return r
}

// retryAfter is what the error says; an answer of 503 always says something.
func retryAfter(e *core.Error) time.Duration {
	if e.RetryAfter == 0 && problems[e.Code].status == fasthttp.StatusServiceUnavailable {
		return time.Second
	}
	return e.RetryAfter
}

// appendMember appends a member to a JSON object that has one already. Text is
// not for HTML, and stays readable.
func appendMember(b []byte, name string, value any) []byte {
	b = appendString(append(b, ','), []byte(name))
	b = append(b, ':')
	if s, ok := value.(string); ok {
		return appendString(b, []byte(strings.ToValidUTF8(s, "\uFFFD")))
	}
	text, err := json.Marshal(value)
	if err != nil {
		text = []byte("null") // a context that cannot be shown must not hide the error
	}
	return append(b, text...)
}
