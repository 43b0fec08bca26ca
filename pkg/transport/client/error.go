package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

// Unknown reports whether it is not known what became of the call that returned
// err: there was no answer, and the request may have reached the broker. After a
// publish it means that the messages may or may not be stored. It is false for
// nil, for whatever the broker refused (nothing was changed), and for a dial that
// failed (nothing was sent).
func Unknown(err error) bool {
	var refused *core.Error
	return err != nil && !errors.As(err, &refused) && !dialFailed(err)
}

// refusal is the error of an answer beyond 299.
func refusal(resp *http.Response, body []byte) error {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if kind == problemType {
		if e, ok := problem(body); ok {
			if e.RetryAfter == 0 {
				e.RetryAfter = retryAfter(resp.Header)
			}
			return e
		}
	}
	return core.Errorf(core.CodeInternal, "cannot understand the answer %s with %.100q: it is no problem document, perhaps something else than PodMQ answers here", resp.Status, body)
}

// problem reads a problem document. Members that RFC 9457 and the contract do
// not name are the error's fields, in their order.
func problem(body []byte) (*core.Error, bool) {
	e := &core.Error{}
	d := json.NewDecoder(bytes.NewReader(body))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, false
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil, false
		}
		switch name {
		case "code":
			err = json.Unmarshal(raw, &e.Code)
		case "detail":
			err = json.Unmarshal(raw, &e.Detail)
		case "retry_after_ms":
			var ms int64
			err = json.Unmarshal(raw, &ms)
			e.RetryAfter = time.Duration(ms) * time.Millisecond
		case "type", "title", "status", "retryable":
		default:
			e.Fields = append(e.Fields, core.Field{Name: name.(string), Value: fieldValue(raw)})
		}
		if err != nil {
			return nil, false
		}
	}
	return e, e.Code != ""
}

// fieldValue is a string, a bool, an int64 where the number is one, or what
// encoding/json makes of the rest.
func fieldValue(raw json.RawMessage) any {
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return n
	}
	var v any
	_ = json.Unmarshal(raw, &v) // raw came out of a decoder: it is JSON
	return v
}

// retryAfter reads Retry-After in seconds, the only form that the broker sends.
func retryAfter(h http.Header) time.Duration {
	s, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || s < 0 {
		return 0
	}
	return time.Duration(s) * time.Second
}
