package transport

import (
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/podmq/podmq/pkg/core"
)

const (
	jsonType    = "application/json"
	ndjsonType  = "application/x-ndjson"
	framesType  = "application/vnd.podmq.frames"
	problemType = "application/problem+json"
	yamlType    = "application/yaml"
)

const (
	statusOK        = fasthttp.StatusOK
	statusCreated   = fasthttp.StatusCreated
	statusNoContent = fasthttp.StatusNoContent
)

// A response is what a handler answers.
type response struct {
	status      int
	contentType string // "" for none
	lines       []byte // further lines of the head, each with its CRLF
	body        []byte // valid until the call is reset
	blocks      []block
}

// A block stands in a body before the byte at, but was not copied there: it is
// written from where it lies.
type block struct {
	at    int
	bytes []byte
}

// size is that of the body with its blocks.
func (r *response) size() int {
	n := len(r.body)
	for i := range r.blocks {
		n += len(r.blocks[i].bytes)
	}
	return n
}

// appendBody appends the body's parts in the order in which they are written.
func (r *response) appendBody(parts [][]byte) [][]byte {
	from := 0
	for _, b := range r.blocks {
		parts = append(parts, r.body[from:b.at], b.bytes)
		from = b.at
	}
	return append(parts, r.body[from:])
}

// appendHead appends an answer's head. keep says whether the connection stays.
func (s *Server) appendHead(b []byte, r *response, k *call, keep bool) []byte {
	b = append(b, "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(r.status), 10)
	b = append(b, ' ')
	b = append(b, fasthttp.StatusMessage(r.status)...)
	b = append(b, "\r\n"...)
	b = append(b, *s.clock.date.Load()...)
	b = append(b, s.epochLine...)
	if r.contentType != "" {
		b = append(b, "Content-Type: "...)
		b = append(b, r.contentType...)
		b = append(b, "\r\n"...)
	}
	if r.status != statusNoContent {
		b = append(b, "Content-Length: "...)
		b = strconv.AppendInt(b, int64(r.size()), 10)
		b = append(b, "\r\n"...)
	}
	b = append(b, r.lines...)
	switch {
	case !keep:
		b = append(b, "Connection: close\r\n"...)
	case !k.header.IsHTTP11():
		b = append(b, "Connection: keep-alive\r\n"...)
	}
	return append(b, "\r\n"...)
}

// tooManyConnections is the whole answer to a connection beyond the bound.
func (s *Server) tooManyConnections() []byte {
	e := core.Errorf(core.CodeTooManyConnections, "cannot take another connection: %d are open, which is the most; keep and share them", s.max)
	r := problemResponse(e)
	return append(s.appendHead(nil, &r, &call{}, false), r.body...)
}

// appendLine appends a line of a head. value must hold no control characters.
func appendLine[T string | []byte](b []byte, name string, value T) []byte {
	b = append(b, name...)
	b = append(b, ": "...)
	b = append(b, value...)
	return append(b, "\r\n"...)
}

func appendIntLine(b []byte, name string, n int64) []byte {
	b = append(b, name...)
	b = append(b, ": "...)
	b = strconv.AppendInt(b, n, 10)
	return append(b, "\r\n"...)
}
