package loadgen

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// A Consumer is the session of a PodMQ consumer: each poll acknowledges what the
// one before brought, so that there is one request a batch.
type Consumer struct {
	sink    *Sink
	json    bool
	before  []byte // of a request, up to where the receipt stands
	after   []byte
	receipt []byte
	asked   bool
}

// pollWait is how long a poll parks.
const pollWait = "10s"

// NewConsumer makes a member of a group, which takes up to batch messages at
// once.
func NewConsumer(topic, group, member string, sink *Sink, batch int, format Format) *Consumer {
	c := &Consumer{sink: sink, json: format == JSON}
	c.before = fmt.Appendf(nil, "POST /v1/topics/%s/groups/%s/poll?member=%s&max=%d&max-bytes=16MiB&wait=%s", topic, group, member, batch, pollWait)
	accept := ""
	if !c.json {
		accept = "Accept: " + framesType + "\r\n"
	}
	c.after = fmt.Appendf(nil, " HTTP/1.1\r\nHost: podmq\r\n%s\r\n", accept)
	return c
}

// Say implements Session.
func (c *Consumer) Say(_ int64, out []byte) ([]byte, int64) {
	if c.asked {
		return out, Never
	}
	c.asked = true
	out = append(out, c.before...)
	if len(c.receipt) > 0 {
		out = append(out, "&ack="...)
		out = append(out, c.receipt...)
	}
	return append(out, c.after...), Never
}

// Hear implements Session.
func (c *Consumer) Hear(now int64, in []byte) (used int, err error) {
	a, ok, err := readAnswer(in)
	switch {
	case err != nil || !ok:
		return 0, err
	case a.status != 200:
		return 0, a.refusal("a poll")
	}
	c.asked = false
	if c.json {
		err = c.readJSON(now, a.body)
	} else {
		receipt, _ := a.header("Podmq-Receipt")
		c.receipt = append(c.receipt[:0], receipt...)
		err = c.readFrames(now, a.body)
	}
	c.sink.Heard(now)
	return a.size, err
}

// deliveryFixed is what stands before a delivery's receipt: partition u32, offset
// u64, attempt u32, published i64, length of the receipt u16.
const deliveryFixed = 4 + 8 + 4 + 8 + 2

func (c *Consumer) readFrames(now int64, body []byte) error {
	for len(body) > 0 {
		if len(body) < deliveryFixed {
			return fmt.Errorf("cannot read a delivery of %d bytes", len(body))
		}
		block := deliveryFixed + int(binary.BigEndian.Uint16(body[deliveryFixed-2:]))
		if len(body) < block+frameFixed {
			return fmt.Errorf("cannot read a delivery of %d bytes", len(body))
		}
		end := block + 4 + int(binary.BigEndian.Uint32(body[block:]))
		payload := block + frameFixed + int(binary.BigEndian.Uint16(body[block+6:]))
		if key := binary.BigEndian.Uint16(body[block+4:]); key != noKey {
			payload += int(key)
		}
		if len(body) < end || end < payload {
			return fmt.Errorf("cannot read a message that ends at %d of %d bytes", end, len(body))
		}
		if err := c.sink.Got(now, body[payload:end]); err != nil {
			return err
		}
		body = body[end:]
	}
	return nil
}

var (
	payloadMark = []byte(`"payload":"`)
	receiptMark = []byte(`"receipt":"`)
)

// readJSON looks for what it needs, and does not parse the rest: payloads of a
// run have no quotes and no escapes.
func (c *Consumer) readJSON(now int64, body []byte) error {
	c.receipt = c.receipt[:0]
	for {
		at := bytes.Index(body, payloadMark)
		if at < 0 {
			break
		}
		payload, rest, _ := bytes.Cut(body[at+len(payloadMark):], []byte{'"'})
		if err := c.sink.Got(now, payload); err != nil {
			return err
		}
		body = rest
	}
	if at := bytes.LastIndex(body, receiptMark); at >= 0 {
		receipt, _, _ := bytes.Cut(body[at+len(receiptMark):], []byte{'"'})
		c.receipt = append(c.receipt, receipt...)
	}
	return nil
}
