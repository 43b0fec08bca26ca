package transport

import (
	"encoding/base64"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/podmq/podmq/pkg/core"
)

// appendString appends s as a JSON string. s must be UTF-8. It escapes what JSON
// asks for, and the two line separators that JavaScript once did not allow in a
// string.
func appendString(b []byte, s []byte) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	from := 0
	for i := plain(s, 0xe2); i < len(s); i += 1 + plain(s[i+1:], 0xe2) {
		c := s[i]
		switch {
		case c == '"' || c == '\\':
			b = append(append(b, s[from:i]...), '\\', c)
		case c == '\n':
			b = append(append(b, s[from:i]...), '\\', 'n')
		case c == '\r':
			b = append(append(b, s[from:i]...), '\\', 'r')
		case c == '\t':
			b = append(append(b, s[from:i]...), '\\', 't')
		case c < ' ':
			b = append(append(b, s[from:i]...), '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		case i+2 < len(s) && s[i+1] == 0x80 && s[i+2]&^1 == 0xa8:
			b = append(append(b, s[from:i]...), '\\', 'u', '2', '0', '2', hex[s[i+2]&15])
			i += 2
		default:
			continue
		}
		from = i + 1
	}
	return append(append(b, s[from:]...), '"')
}

// stringCost is at most how many bytes appendString makes of s without the quotes.
func stringCost(s []byte) int64 {
	n := len(s)
	for i := plain(s, 0xe2); i < len(s); i += 1 + plain(s[i+1:], 0xe2) {
		if s[i] == 0xe2 {
			n += 3
		} else {
			n += 5
		}
	}
	return int64(n)
}

// appendBytes appends a member for bytes of any kind: name with a string where
// they are UTF-8, else name_base64.
func appendBytes(b []byte, name string, value []byte, asBase64 bool) []byte {
	b = append(b, `,"`...)
	b = append(b, name...)
	switch {
	case asBase64:
	case plainASCII(value) == len(value):
		b = append(b, `":"`...)
		return append(append(b, value...), '"')
	case utf8.Valid(value):
		b = append(b, `":`...)
		return appendString(b, value)
	}
	b = append(b, `_base64":"`...)
	b = base64.StdEncoding.AppendEncode(b, value)
	return append(b, '"')
}

// A batchEncoder writes the messages of a poll's answer.
type batchEncoder struct {
	batch    *core.Batch
	asBase64 bool
	second   int64    // of the last message's time, and
	text     [20]byte // its text up to the fraction: neighbours share it
	one      core.Receipt
	oneRange [1]core.Range
	blocks   []block // of frames
}

// append appends the members of the answer that every poll has. It calls admit,
// once, before the messages become more than freeOfBudget, with a bound of what
// they will become: most answers stay far below, and need none.
func (e *batchEncoder) append(b []byte, admit func(n int64) error) ([]byte, error) {
	var err error
	b = append(b, `{"messages":[`...)
	admitted := false
	for i := range e.batch.Deliveries {
		d := &e.batch.Deliveries[i]
		if !admitted && int64(len(b))+e.most(d) > freeOfBudget {
			admitted = true
			if err := admit(int64(len(b)) + e.bound(i)); err != nil {
				return b, err
			}
		}
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = e.message(b, d); err != nil {
			return b, err
		}
	}
	b = append(b, ']')
	if len(e.batch.Deliveries) > 0 {
		b = append(b, `,"receipt":"`...)
		if b, err = e.batch.Receipt.AppendText(b); err != nil {
			return b, err
		}
		b = append(b, `","lease_ms":`...)
		b = strconv.AppendInt(b, e.batch.Lease.Milliseconds(), 10)
	}
	b = append(b, `,"generation":`...)
	b = strconv.AppendInt(b, e.batch.Generation, 10)
	b = append(b, `,"skipped":`...)
	return appendSkipped(b, e.batch.Skipped), nil
}

const (
	// jsonFixed is at most what stands in a message beside its strings.
	jsonFixed = 256
	// jsonEscape is at most what becomes of one byte: \u00XX.
	jsonEscape = 6
)

// most is at most how large a message becomes in JSON, whatever is in it.
func (e *batchEncoder) most(d *core.Delivery) int64 {
	return jsonFixed + e.receiptBound() + jsonEscape*int64(len(d.Block()))
}

// bound is at most how large the messages from the one at from on become. It
// looks at their payloads, as most would be far too much.
func (e *batchEncoder) bound(from int) (n int64) {
	for i := range e.batch.Deliveries[from:] {
		d := &e.batch.Deliveries[from+i]
		size := int64(len(d.Payload()))
		n += e.most(d) - jsonEscape*size + max(stringCost(d.Payload()), base64Size(size))
	}
	return n
}

func base64Size(n int64) int64 { return (n + 2) / 3 * 4 }

// receiptBound is at most how long the receipt of one message is.
func (e *batchEncoder) receiptBound() int64 {
	if e.batch.Queue {
		return core.MaxReceiptLen / 4
	}
	return 0
}

func (e *batchEncoder) message(b []byte, d *core.Delivery) ([]byte, error) {
	b = append(b, `{"partition":`...)
	b = strconv.AppendInt(b, int64(d.Partition), 10)
	b = append(b, `,"offset":`...)
	b = strconv.AppendInt(b, d.Offset, 10)
	if d.HasKey() {
		b = appendBytes(b, "key", d.Key(), e.asBase64)
	}
	b = appendBytes(b, "payload", d.Payload(), e.asBase64)
	b = e.attributes(b, &d.Message)
	b = append(b, `,"published_at":"`...)
	b = e.time(b, d.PublishedAt())
	b = append(b, `","attempt":`...)
	b = strconv.AppendInt(b, int64(d.Attempt), 10)
	if e.batch.Queue {
		var err error
		b = append(b, `,"receipt":"`...)
		if b, err = e.receipt(b, d); err != nil {
			return b, err
		}
		b = append(b, '"')
	}
	return append(b, '}'), nil
}

// attributes appends the headers and what else was given at publish.
func (e *batchEncoder) attributes(b []byte, m *core.Message) []byte {
	var contentType, sender, id []byte
	b = append(b, `,"headers":{`...)
	first := true
	m.Attr(func(name, value []byte) bool {
		switch string(name) {
		case ":content-type":
			contentType = value
		case ":sender":
			sender = value
		case ":id":
			id = value
		default:
			if !first {
				b = append(b, ',')
			}
			first = false
			b = append(appendString(b, name), ':')
			b = appendString(b, value)
		}
		return true
	})
	b = append(b, `},"content_type":`...)
	b = appendString(b, contentType)
	b = append(b, `,"sender":`...)
	b = appendString(b, sender)
	b = append(b, `,"id":`...)
	return appendString(b, id)
}

// receipt appends the receipt of one message of a queue group.
func (e *batchEncoder) receipt(b []byte, d *core.Delivery) ([]byte, error) {
	if e.one.Ranges == nil {
		e.one = e.batch.Receipt
		e.one.Ranges = e.oneRange[:]
	}
	e.oneRange[0] = core.Range{Partition: d.Partition, From: d.Offset, To: d.Offset + 1}
	return e.one.AppendText(b)
}

func (e *batchEncoder) time(b []byte, t time.Time) []byte {
	if s := t.Unix(); s != e.second || e.text[0] == 0 {
		e.second = s
		t.UTC().AppendFormat(e.text[:0], "2006-01-02T15:04:05.")
	}
	b = append(b, e.text[:]...)
	ms := t.Nanosecond() / int(time.Millisecond)
	return append(b, byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10), 'Z')
}

func appendSkipped(b []byte, skipped []core.Skipped) []byte {
	b = append(b, '[')
	for i, s := range skipped {
		b = appendRange(b, i, s.Partition, s.From, s.To)
	}
	return append(b, ']')
}

func appendStale(b []byte, stale []core.StaleRange) []byte {
	b = append(b, '[')
	for i, s := range stale {
		b = appendRange(b, i, s.Partition, s.From, s.To)
	}
	return append(b, ']')
}

func appendRange(b []byte, i, partition int, from, to int64) []byte {
	if i > 0 {
		b = append(b, ',')
	}
	b = append(b, `{"partition":`...)
	b = strconv.AppendInt(b, int64(partition), 10)
	b = append(b, `,"from":`...)
	b = strconv.AppendInt(b, from, 10)
	b = append(b, `,"to":`...)
	b = strconv.AppendInt(b, to, 10)
	return append(b, '}')
}

func appendBlocked(b []byte, blocked []core.Blocked) []byte {
	b = append(b, '[')
	for i, p := range blocked {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"partition":`...)
		b = strconv.AppendInt(b, int64(p.Partition), 10)
		b = append(b, `,"member":`...)
		b = appendString(b, []byte(p.Member))
		b = append(b, `,"lease_ms":`...)
		b = strconv.AppendInt(b, p.Lease.Milliseconds(), 10)
		b = append(b, '}')
	}
	return append(b, ']')
}
