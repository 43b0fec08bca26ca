package transport

import (
	"bytes"
	"math"
	"strconv"

	"github.com/podmq/podmq/pkg/core"
)

// publishing is the memory of publish calls.
type publishing struct {
	req     core.PublishRequest
	placed  []core.Placement
	content core.Content
}

// keepMessages is how long a list of messages a connection keeps for later.
const keepMessages = 1 << 10

func (p *publishing) reset() {
	c := &p.content
	c.Payload, c.Key = nil, nil
	c.Headers = c.Headers[:cap(c.Headers)] // headerBefore looks at all of them
	if described(c) > keepDescription {
		*c = core.Content{}
	}
	c.Headers = c.Headers[:0]
	clear(p.req.Messages)
	p.req.Messages = p.req.Messages[:0]
	if cap(p.req.Messages) > keepMessages {
		p.req.Messages, p.placed = nil, nil
	}
}

// keepDescription is how many bytes that describe its last message an idle
// connection may keep, as its client will mostly say the same of the next.
const keepDescription = 1 << 10

func described(c *core.Content) int {
	n := len(c.ContentType) + len(c.Sender) + len(c.ID)
	for i := range c.Headers {
		n += len(c.Headers[i].Name) + len(c.Headers[i].Value)
	}
	return n
}

// publishOne stores the body as one message.
func (k *call) publishOne() (r response, err error) {
	p := &k.publishing
	if p.req.Wait, err = k.query.wait(0); err != nil {
		return r, err
	}
	partition, err := k.query.integer("partition", core.AnyPartition, 0, math.MaxInt32)
	if err != nil {
		return r, err
	}
	p.req.Partition = int(partition)
	if err := k.readBody(k.server.maxMessage, p.req.Wait); err != nil {
		return r, err
	}
	k.describe()
	m, err := core.NewMessage(&p.content, k.server.maxMessage)
	if err != nil {
		return r, err
	}
	k.releaseBody()
	p.req.Messages = append(p.req.Messages[:0], m)
	if err := k.publish(); err != nil {
		return r, err
	}
	return k.json(statusCreated, appendPlace(k.newText(), p.placed[0])), nil
}

// publish hands the messages to the engine.
func (k *call) publish() (err error) {
	p := &k.publishing
	if err := k.beforeWait(p.req.Wait); err != nil {
		return err
	}
	p.placed, err = k.server.engine.Publish(k.conn, k.topic, &p.req, p.placed[:0])
	return err
}

// describe fills the content of a message from the request. What it refers to is
// copied by core.NewMessage.
func (k *call) describe() {
	c := &k.publishing.content
	c.Payload = k.body
	c.Key, c.HasKey = k.query.get("key")
	sender, _ := k.query.get("sender")
	c.Sender = same(c.Sender, sender)
	id, _ := k.query.get("id")
	c.ID = same(c.ID, id)
	c.ContentType = same(c.ContentType, k.header.ContentType())
	c.Headers = c.Headers[:0]
	for name, value := range k.header.All() {
		if name, kept := messageHeader(name); kept {
			c.Headers = addHeader(c.Headers, name, value)
		}
	}
}

var metaPrefix = []byte("Podmq-Meta-")

// messageHeader returns the name under which a header of the request is kept
// with the message, if it is. fasthttp gives names as Podmq-Meta-Name.
func messageHeader(name []byte) (kept []byte, is bool) {
	if bytes.HasPrefix(name, metaPrefix) {
		return name[len(metaPrefix):], true
	}
	return name, bytes.HasPrefix(name, []byte("Ce-")) || string(name) == "Traceparent" || string(name) == "Tracestate"
}

// ownHeader reports whether a message's header travels under its own name, not
// as Podmq-Meta-.
func ownHeader(name []byte) bool {
	return bytes.HasPrefix(name, []byte("ce-")) || string(name) == "traceparent" || string(name) == "tracestate"
}

// addHeader adds a header under its name in lower case. One that comes again is
// joined to the first, as RFC 9110 §5.3 has it.
func addHeader(to []core.Header, name, value []byte) []core.Header {
	before := headerBefore(to)
	lower := lowerASCII(before.Name, name)
	for i := range to {
		if to[i].Name == lower {
			to[i].Value += ", " + string(value)
			return to
		}
	}
	return append(to, core.Header{Name: lower, Value: same(before.Value, value)})
}

// headerBefore is what the message before had in the place of the header that is to
// be appended: most messages of a client have the same there.
func headerBefore(to []core.Header) core.Header {
	if n := len(to); n < cap(to) {
		return to[:n+1][n]
	}
	return core.Header{}
}

// lowerASCII returns name in lower case: old itself if it is that.
func lowerASCII(old string, name []byte) string {
	var small [64]byte
	b := append(small[:0], name...)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return same(old, b)
}

func appendPlace(b []byte, p core.Placement) []byte {
	b = append(b, `{"partition":`...)
	b = strconv.AppendInt(b, int64(p.Partition), 10)
	b = append(b, `,"offset":`...)
	b = strconv.AppendInt(b, p.Offset, 10)
	return append(b, '}')
}
