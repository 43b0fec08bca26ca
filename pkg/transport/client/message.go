package client

import (
	"math"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

// A Header is one name and value of a message. Names are in lower case by
// custom; values are UTF-8.
type Header = core.Header

// A Message is what is published and what comes back, byte for byte.
type Message struct {
	// Key chooses the partition: messages of one key stay in order. nil is no
	// key; an empty key that is not nil is a key.
	Key     []byte
	Payload []byte
	Headers []Header

	ContentType string
	Sender      string // who publishes, as it names itself
	ID          string
}

// Header returns the value of the first header of that name, "" for none.
func (m *Message) Header(name string) string {
	for _, h := range m.Headers {
		if h.Name == name {
			return h.Value
		}
	}
	return ""
}

// A Delivery is one message as a poll hands it out. Its slices belong to the
// caller.
type Delivery struct {
	Message
	Partition   int
	Offset      int64
	Attempt     int // 1 the first time
	PublishedAt time.Time
	// Receipt settles this message alone. Only queue groups give one; in an
	// ordered group the batch has the receipt.
	Receipt string
}

// encode makes m as it travels in a frame. The broker's own limit on a message
// may be lower than what fits into a frame: it refuses with core.CodeTooLarge.
func (m *Message) encode() (core.Message, error) {
	return core.NewMessage(&core.Content{
		Payload: m.Payload, Key: m.Key, HasKey: m.Key != nil, Headers: m.Headers,
		ContentType: m.ContentType, Sender: m.Sender, ID: m.ID,
	}, math.MaxInt32)
}

// decode reads the message at the start of b.
func decode(b []byte) (m Message, rest []byte, err error) {
	w, rest, err := core.ParseMessage(b, math.MaxInt32)
	if err != nil {
		return m, nil, err
	}
	m = Message{Payload: w.Payload(), ContentType: w.ContentType(), Sender: w.Sender(), ID: w.ID()}
	if w.HasKey() {
		m.Key = w.Key()
	}
	for h := range w.Headers {
		m.Headers = append(m.Headers, h)
	}
	return m, rest, nil
}
