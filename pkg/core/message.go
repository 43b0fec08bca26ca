package core

import (
	"encoding/binary"
	"math"
	"time"
	"unicode/utf8"
)

// A Message is one immutable message. All its bytes lie in one block, which is
// also how a message travels in the binary frames, so that a message is copied
// once on its way in and written as it lies on its way out:
//
//	 0      4         6          8      8+k           8+k+a           4+size
//	┌──────┬─────────┬──────────┬──────┬─────────────┬────────────────┐
//	│ size │ key len │ attr len │ key  │ attributes  │ payload        │
//	│ u32  │ u16     │ u16      │ k B  │ a B         │ what is left   │
//	└──────┴─────────┴──────────┴──────┴─────────────┴────────────────┘
//
// Integers are big-endian; size counts the bytes that follow it; a key length of
// 0xFFFF says that there is no key. An attribute is a u8 name length, a u16
// value length, the name and the value. The names ":content-type", ":sender"
// and ":id" are PodMQ's own; all others are the message's headers.
//
// The zero Message is not a message; make one with NewMessage or ParseMessage.
type Message struct {
	block       []byte
	publishedAt int64 // ns since the Unix epoch; 0 until appended
	size, cost  uint32
}

const (
	blockFixed = 8
	noKey      = math.MaxUint16

	// slotBytes is what a message takes beside its block, as far as it counts
	// where MessageOverhead does not cover it.
	slotBytes = 16

	attrContentType = ":content-type"
	attrSender      = ":sender"
	attrID          = ":id"
)

// A Header is one name and value of a message. Names are in lower case, and none
// comes twice; values are UTF-8.
type Header struct{ Name, Value string }

// Content is what a message is made from.
type Content struct {
	Payload     []byte
	Key         []byte // counts only with HasKey; an empty key is a key
	HasKey      bool
	Headers     []Header
	ContentType string
	Sender      string
	ID          string
}

// NewMessage makes a message; it copies all of c. The errors are
// CodeInvalidRequest (a header name that is empty, too long, starts with a colon
// or comes twice, text that is not UTF-8) and CodeTooLarge (key, headers, or all of it
// beyond maxBytes).
func NewMessage(c *Content, maxBytes int) (Message, error) {
	key, attrs, headers := 0, 0, 0
	if c.HasKey {
		key = len(c.Key)
	}
	if key > MaxKeyBytes {
		return Message{}, tooLarge("key", key, MaxKeyBytes)
	}
	add := func(name, value string) { attrs += 3 + len(name) + len(value) }
	for _, h := range c.Headers {
		if err := checkHeader(h.Name, h.Value); err != nil {
			return Message{}, err
		}
		add(h.Name, h.Value)
		headers += len(h.Name) + len(h.Value)
	}
	own := c.own()
	for i := range own {
		own := &own[i]
		if own.Value == "" {
			continue
		}
		if !utf8.ValidString(own.Value) {
			return Message{}, Errorf(CodeInvalidRequest, "cannot keep %s: it is not UTF-8", own.Name[1:])
		}
		add(own.Name, own.Value)
	}
	if attrs > MaxHeaderBytes {
		return Message{}, tooLarge("headers", attrs, MaxHeaderBytes)
	}
	if n := key + headers + len(c.Payload); n > maxBytes {
		return Message{}, tooLarge("message", n, maxBytes)
	}

	b := make([]byte, 0, blockFixed+key+attrs+len(c.Payload))
	b = binary.BigEndian.AppendUint32(b, uint32(blockFixed-4+key+attrs+len(c.Payload)))
	if c.HasKey {
		b = binary.BigEndian.AppendUint16(b, uint16(key))
	} else {
		b = binary.BigEndian.AppendUint16(b, noKey)
	}
	b = binary.BigEndian.AppendUint16(b, uint16(attrs))
	b = append(b, c.Key[:key]...)
	for _, h := range c.Headers {
		b = appendAttr(b, h.Name, h.Value)
	}
	for i := range own {
		if own[i].Value != "" {
			b = appendAttr(b, own[i].Name, own[i].Value)
		}
	}
	b = append(b, c.Payload...)
	return newMessage(b)
}

// newMessage takes over a block that is in order: it brings the headers' names
// to lower case, and measures it. CodeInvalidRequest when a name comes twice.
func newMessage(block []byte) (Message, error) {
	m := Message{block: block}
	headers := 0
	if m.attrLen() > 0 {
		if err := m.lowerNames(); err != nil {
			return Message{}, err
		}
		m.attrs(func(name, value []byte) bool {
			if name[0] != ':' {
				headers += len(name) + len(value)
			}
			return true
		})
	}
	m.size = uint32(len(m.Payload()) + m.keyLen() + headers)
	m.cost = max(m.size+MessageOverhead, uint32(len(block))+slotBytes)
	return m, nil
}

// lowerNames brings the attributes' names to lower case, in the block itself.
func (m Message) lowerNames() (err error) {
	var few [8][]byte // names seen so far, while they are few
	var many map[string]bool
	n := 0
	m.attrs(func(name, _ []byte) bool {
		for i, c := range name {
			if 'A' <= c && c <= 'Z' {
				name[i] = c + 'a' - 'A'
			}
		}
		again := many[string(name)]
		for _, seen := range few[:min(n, len(few))] {
			again = again || string(seen) == string(name)
		}
		if again {
			err = Errorf(CodeInvalidRequest, "cannot keep header %.40q twice: join its values", name)
			return false
		}
		switch {
		case n < len(few):
			few[n] = name
		case many == nil:
			many = map[string]bool{string(name): true}
		default:
			many[string(name)] = true
		}
		n++
		return true
	})
	return err
}

func (c *Content) own() [3]Header {
	return [3]Header{{attrContentType, c.ContentType}, {attrSender, c.Sender}, {attrID, c.ID}}
}

func appendAttr(b []byte, name, value string) []byte {
	b = append(b, byte(len(name)))
	b = binary.BigEndian.AppendUint16(b, uint16(len(value)))
	b = append(b, name...)
	return append(b, value...)
}

func checkHeader[text string | []byte](name, value text) error {
	switch {
	case len(name) == 0 || len(name) > 255:
		return Errorf(CodeInvalidRequest, "cannot keep header %.40q: a name has 1 to 255 bytes, not %d", name, len(name))
	case name[0] == ':':
		return Errorf(CodeInvalidRequest, "cannot keep header %.40q: a name must not start with a colon", name)
	case !utf8.Valid([]byte(name)) || !utf8.Valid([]byte(value)):
		return Errorf(CodeInvalidRequest, "cannot keep header %.40q: name and value must be UTF-8", name)
	case len(value) > MaxHeaderBytes:
		return tooLarge("headers", len(value), MaxHeaderBytes)
	}
	return nil
}

func tooLarge(what string, n, most int) *Error {
	return Errorf(CodeTooLarge, "cannot take %s of %d bytes: the most is %d", what, n, most).
		With("bytes", n).With("max_bytes", most)
}

// ParseMessage reads the block at the start of b and returns what follows it.
// It copies the block. Errors are those of NewMessage, and CodeInvalidRequest
// for a block that is cut short or contradicts itself.
func ParseMessage(b []byte, maxBytes int) (m Message, rest []byte, err error) {
	if len(b) < blockFixed {
		return m, nil, Errorf(CodeInvalidRequest, "cannot read frame: %d bytes are left, a frame has at least %d", len(b), blockFixed)
	}
	size := int64(binary.BigEndian.Uint32(b))
	if size < blockFixed-4 {
		return m, nil, Errorf(CodeInvalidRequest, "cannot read frame: its size is %d, the least is %d", size, blockFixed-4)
	}
	if n := size - (blockFixed - 4); n > int64(maxBytes)+MaxHeaderBytes {
		return m, nil, tooLarge("message", int(n), maxBytes)
	}
	if int64(len(b)) < 4+size {
		return m, nil, Errorf(CodeInvalidRequest, "cannot read frame: it says %d bytes, %d are left", 4+size, len(b))
	}
	block := b[:4+size]
	key, attrs := int(binary.BigEndian.Uint16(b[4:])), int(binary.BigEndian.Uint16(b[6:]))
	if key == noKey {
		key = 0
	}
	switch {
	case key > MaxKeyBytes:
		return m, nil, tooLarge("key", key, MaxKeyBytes)
	case attrs > MaxHeaderBytes:
		return m, nil, tooLarge("headers", attrs, MaxHeaderBytes)
	case blockFixed+key+attrs > len(block):
		return m, nil, Errorf(CodeInvalidRequest, "cannot read frame: key and attributes of %d bytes do not fit into %d", key+attrs, size-4)
	}
	if err := checkAttrs(block[blockFixed+key : blockFixed+key+attrs]); err != nil {
		return m, nil, err
	}
	if m, err = newMessage(append(make([]byte, 0, len(block)), block...)); err != nil {
		return Message{}, nil, err
	}
	if m.Size() > maxBytes {
		return Message{}, nil, tooLarge("message", m.Size(), maxBytes)
	}
	return m, b[4+size:], nil
}

func checkAttrs(a []byte) error {
	for len(a) > 0 {
		if len(a) < 3 {
			return Errorf(CodeInvalidRequest, "cannot read frame: an attribute is cut short")
		}
		size := 3 + int(a[0]) + int(binary.BigEndian.Uint16(a[1:]))
		if size > len(a) {
			return Errorf(CodeInvalidRequest, "cannot read frame: an attribute of %d bytes does not fit into %d", size, len(a))
		}
		name, value := a[3:3+int(a[0])], a[3+int(a[0]):size]
		switch string(name) {
		case attrContentType, attrSender, attrID:
			if !utf8.Valid(value) {
				return Errorf(CodeInvalidRequest, "cannot keep %s: it is not UTF-8", name[1:])
			}
		default:
			if err := checkHeader(name, value); err != nil {
				return err
			}
		}
		a = a[size:]
	}
	return nil
}

// IsZero reports whether m is no message at all.
func (m Message) IsZero() bool { return m.block == nil }

// Block returns the message as it lies in memory and in a frame. It must not be
// changed.
func (m Message) Block() []byte { return m.block }

func (m Message) keyLen() int {
	if n := int(binary.BigEndian.Uint16(m.block[4:])); n != noKey {
		return n
	}
	return 0
}

func (m Message) attrLen() int { return int(binary.BigEndian.Uint16(m.block[6:])) }

// HasKey reports whether the message has a key; an empty key is one.
func (m Message) HasKey() bool { return binary.BigEndian.Uint16(m.block[4:]) != noKey }

// Key returns the key's bytes, which must not be changed.
func (m Message) Key() []byte {
	return m.block[blockFixed : blockFixed+m.keyLen() : blockFixed+m.keyLen()]
}

// Payload returns the payload's bytes, which must not be changed.
func (m Message) Payload() []byte { return m.block[blockFixed+m.keyLen()+m.attrLen():] }

// Size is payload plus key plus headers, in bytes; content type, sender and id
// do not count.
func (m Message) Size() int { return int(m.size) }

// Cost is what the message counts against the memory budget while it is held:
// Size plus MessageOverhead, which covers a content type, sender and id of the
// usual length, or what it really takes where they are longer.
func (m Message) Cost() int64 { return int64(m.cost) }

// PublishedAt is when the message was appended, by the wall clock.
func (m Message) PublishedAt() time.Time { return time.Unix(0, m.publishedAt) }

// Published returns the message with the time of its append.
func (m Message) Published(unixNano int64) Message {
	m.publishedAt = unixNano
	return m
}

// Headers calls yield for each header in the order given at publish, without
// PodMQ's own attributes. The strings are copies.
func (m Message) Headers(yield func(Header) bool) {
	m.attrs(func(name, value []byte) bool {
		return name[0] == ':' || yield(Header{string(name), string(value)})
	})
}

// ContentType returns the content type given at publish, "" for none.
func (m Message) ContentType() string { return string(m.own(attrContentType)) }

// Sender returns who published, as the publisher named itself.
func (m Message) Sender() string { return string(m.own(attrSender)) }

// ID returns the id that the publisher gave.
func (m Message) ID() string { return string(m.own(attrID)) }

// Attr calls yield with each attribute's raw bytes, PodMQ's own (whose names
// start with a colon) included, and without a copy.
func (m Message) Attr(yield func(name, value []byte) bool) { m.attrs(yield) }

func (m Message) own(name string) (value []byte) {
	m.attrs(func(n, v []byte) bool {
		if string(n) == name {
			value = v
		}
		return true
	})
	return value
}

func (m Message) attrs(yield func(name, value []byte) bool) {
	from := blockFixed + m.keyLen()
	for a := m.block[from : from+m.attrLen()]; len(a) > 0; {
		name, value := int(a[0]), int(binary.BigEndian.Uint16(a[1:]))
		if !yield(a[3:3+name], a[3+name:3+name+value]) {
			return
		}
		a = a[3+name+value:]
	}
}
