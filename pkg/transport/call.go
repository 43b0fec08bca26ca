package transport

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/podmq/podmq/pkg/core"
)

// A call is one request being served, as handlers see it, and the memory for
// it. A connection has one, used again for each of its requests, so that a
// request in the usual course allocates nothing here.
type call struct {
	server *Server
	conn   *conn // also the context of what is called

	header fasthttp.RequestHeader
	route  *route   // nil when there is none
	allow  []*route // of the path, when the method was wrong
	query  query

	// Names of the path. They are kept from one request to the next: a client
	// mostly names the same again.
	topic, group, member string
	last                 *route // found for lastPath, as the names were; nil when there is none
	lastPath             []byte

	body       []byte
	bodyBuffer *buffer
	bodyRead   bool    // nothing of the body is left to read
	held       int64   // of lender
	lender     *budget // bodies or answers: no call has both large

	text  *buffer // for the answer's body
	lines []byte  // for further lines of its head

	publishing publishing
	polling    polling
	settling   settling
	batched    bool // polling.batch has deliveries that are not yet answered
}

// answer finds the route and calls its handler. A panic is an error of ours that
// ends the call and not the process: the engine's locks are released by defer.
func (k *call) answer() (r response, err error) {
	defer func() {
		if v := recover(); v != nil {
			k.server.log.Error("panic while serving a request", "route", k.route.label(), "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			r, err = response{}, errInternal()
		}
	}()
	if err := k.match(); err != nil {
		return r, err
	}
	if !k.route.body {
		if err := k.noBody(); err != nil {
			return r, err
		}
	}
	return k.route.handle(k)
}

// match finds the route of the request and reads its query. A client mostly asks
// for the same as before: then the names of the path are still there.
func (k *call) match() error {
	path, query, _ := bytes.Cut(k.header.RequestURI(), []byte{'?'})
	if last := k.last; last != nil && last.method == string(k.header.Method()) && bytes.Equal(path, k.lastPath) {
		k.route = last
	} else {
		k.last = nil
		if err := k.server.router.find(k, path); err != nil {
			return err
		}
		k.last, k.lastPath = k.route, append(k.lastPath[:0], path...)
	}
	return k.query.parse(query, k.route)
}

// reset gives back all that the call holds.
func (k *call) reset() {
	if k.held > 0 {
		k.lender.give(k.held)
		k.held = 0
	}
	k.releaseBody()
	k.bodyRead = false
	if k.text != nil {
		k.server.buffers.put(k.text)
		k.text = nil
	}
	k.route, k.allow = nil, nil
	k.query.reset()
	k.publishing.reset()
	k.polling.reset()
	k.settling.reset()
	k.batched = false
}

// releaseBody frees the body's memory once it was copied, before the call waits.
func (k *call) releaseBody() {
	k.body = nil
	if k.bodyBuffer != nil {
		k.server.buffers.put(k.bodyBuffer)
		k.bodyBuffer = nil
	}
}

// admit takes n bytes of a budget, waiting as long as the call would, within
// bounds.
func (k *call) admit(b *budget, n int64, wait time.Duration) error {
	taken, ok := b.tryTake(n)
	if !ok {
		if err := k.conn.flush(); err != nil {
			return err
		}
		var err error
		if taken, err = b.take(k.conn, n, admissionWait(wait)); err != nil {
			return err
		}
	}
	k.lender = b
	k.held += taken
	return nil
}

// keepOfBudget gives back what the call holds beyond n bytes.
func (k *call) keepOfBudget(n int64) {
	if k.held > n {
		k.lender.give(k.held - n)
		k.held = n
	}
}

// giveBack returns a batch whose answer will not arrive.
func (k *call) giveBack() {
	if !k.batched {
		return
	}
	k.batched = false
	// The connection's own context may be done: that is why.
	err := k.server.engine.Return(context.WithoutCancel(k.conn), k.topic, k.group, &k.polling.batch.Receipt)
	if err != nil {
		k.server.log.Debug("cannot give back a batch", "topic", k.topic, "group", k.group, "error", err)
	}
}

// beforeWait is for a call that is about to wait in the engine, and has no use
// for the request's body any more: earlier answers of the connection are
// written, and memory is given away.
func (k *call) beforeWait(wait time.Duration) error {
	if wait == 0 {
		return nil
	}
	if err := k.conn.flush(); err != nil {
		return err
	}
	k.conn.park()
	return nil
}

// newText returns memory for the answer's body.
func (k *call) newText() []byte {
	if k.text == nil {
		k.text = k.server.buffers.get()
	}
	return k.text.b[:0]
}

// json is an answer whose body was appended to newText's.
func (k *call) json(status int, body []byte) response {
	k.text.b = body // it may have grown
	return response{status: status, contentType: jsonType, body: body}
}

// same returns b as a string: old itself when it says the same, so that what
// comes again with each request is allocated once.
func same(old string, b []byte) string {
	if string(b) == old {
		return old
	}
	return string(b)
}

func equalFold(b []byte, s string) bool { return len(b) == len(s) && bytes.EqualFold(b, []byte(s)) }

func errInternal() *core.Error {
	return core.Errorf(core.CodeInternal, "cannot answer: something in the broker is wrong; its log says what")
}

// unexpected is for an error that no engine should return.
func (k *call) unexpected(err error) *core.Error {
	k.server.log.Log(k.conn, slog.LevelError, "unexpected error of a call", "route", k.route.label(), "error", err)
	return errInternal()
}
