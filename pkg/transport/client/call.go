package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

const (
	framesType  = "application/vnd.podmq.frames"
	problemType = "application/problem+json"

	// maxAnswer is more than the largest poll can be: MaxPollBytes of messages,
	// and MaxPollMessages times a receipt and what stands before it.
	maxAnswer = 64 << 20
)

// A call is one request, before it is sent.
type call struct {
	method string
	path   string
	query  url.Values
	header http.Header
	body   []byte
}

// An answer is what came back of a call that did not fail.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// json reads the answer's body into v.
func (a *answer) json(v any) error {
	if err := json.Unmarshal(a.body, v); err != nil {
		return fmt.Errorf("cannot read the broker's answer: %w", err)
	}
	return nil
}

// topicPath is the path of a topic and of what stands below it, which needs no
// escaping where below holds checked names.
func topicPath(topic string, below ...string) (string, error) {
	if err := core.CheckName("topic", topic); err != nil {
		return "", err
	}
	return "/v1/topics/" + topic + strings.Join(below, ""), nil
}

// groupPath is the path of a group, and of below, such as "/poll".
func groupPath(topic, group string, below ...string) (string, error) {
	if err := core.CheckName("group", group); err != nil {
		return "", err
	}
	return topicPath(topic, append([]string{"/groups/", group}, below...)...)
}

// memberPath is the path of a member.
func memberPath(topic, group, member string) (string, error) {
	if err := core.CheckMember(member); err != nil {
		return "", err
	}
	return groupPath(topic, group, "/members/", member)
}

// do makes the call, and dials again for a while when nobody listens.
func (c *Client) do(ctx context.Context, r *call) (*answer, error) {
	start, wait := time.Now(), backoff{}
	for {
		a, err := c.once(ctx, r)
		if err == nil || !nobodyListens(err) || time.Since(start) >= c.dialRetry {
			return a, err
		}
		if cause := wait.sleep(ctx, 0); cause != nil {
			return nil, fmt.Errorf("%w: %w", cause, err)
		}
	}
}

// once makes the call and dials at most once.
func (c *Client) once(ctx context.Context, r *call) (*answer, error) {
	target := c.base + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target, bytes.NewReader(r.body))
	if err != nil {
		return nil, core.Errorf(core.CodeInvalidRequest, "cannot make a request of %s %.200q: %v", r.method, r.path, err)
	}
	if r.header != nil {
		req.Header = r.header
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreached(ctx, r, err)
	}
	defer resp.Body.Close()
	c.seen(resp.Header.Get("Podmq-Epoch"))
	body, err := readBody(resp)
	if err != nil {
		return nil, c.unreached(ctx, r, err)
	}
	if resp.StatusCode >= 300 {
		return nil, refusal(resp, body)
	}
	return &answer{status: resp.StatusCode, header: resp.Header, body: body}, nil
}

func readBody(resp *http.Response) ([]byte, error) {
	if n := resp.ContentLength; n >= 0 {
		if n > maxAnswer {
			return nil, fmt.Errorf("cannot read an answer of %d bytes: the most is %d", n, maxAnswer)
		}
		body := make([]byte, n)
		_, err := io.ReadFull(resp.Body, body)
		return body, err
	}
	return io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
}

// unreached wraps the error of a call that got no answer.
func (c *Client) unreached(ctx context.Context, r *call, err error) error {
	switch {
	case ctx.Err() == nil:
	case dialFailed(err): // which Unknown must see
		return fmt.Errorf("cannot finish %s %s: %w: %w", r.method, r.path, context.Cause(ctx), err)
	default:
		return fmt.Errorf("cannot finish %s %s: %w", r.method, r.path, context.Cause(ctx))
	}
	var u *url.Error // repeats the method and the whole query, receipts and all
	if errors.As(err, &u) {
		err = u.Err
	}
	return fmt.Errorf("cannot call the broker at %s: %s %s: %w", c.address, r.method, r.path, err)
}

func (c *Client) seen(epoch string) {
	if epoch != "" && epoch != c.Epoch() {
		c.epoch.Store(&epoch)
	}
}

// dialFailed reports whether err came before anything was sent.
func dialFailed(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// nobodyListens reports whether err is that of dialling where no broker is yet,
// or where too many dial at once (EAGAIN, which only Unix sockets say).
func nobodyListens(err error) bool {
	return dialFailed(err) && (errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.EAGAIN))
}

// query is url.Values with the contract's ways to write values.
type query struct{ url.Values }

func newQuery() query { return query{url.Values{}} }

func (q query) int(name string, v int64)              { q.Set(name, strconv.FormatInt(v, 10)) }
func (q query) size(name string, bytes int64)         { q.Set(name, strconv.FormatInt(bytes, 10)+"B") }
func (q query) duration(name string, d time.Duration) { q.Set(name, d.String()) }

// optInt sets name where a value was given; so do the others.
func optInt[T int | int64](q query, name string, o core.Opt[T]) {
	if o.Given {
		q.int(name, int64(o.Value))
	}
}

func optDuration(q query, name string, o core.Opt[time.Duration]) {
	if o.Given {
		q.duration(name, o.Value)
	}
}

func optText[T ~string](q query, name string, o core.Opt[T]) {
	if o.Given {
		q.Set(name, string(o.Value))
	}
}
