package transport

import (
	"bytes"

	"github.com/podmq/podmq/pkg/core"
)

// readJSON reads {"messages":[…]}.
//
// It does not use encoding/json, which replaces what is no UTF-8 and lone
// surrogates by U+FFFD without a word: a message would come back other than it
// was sent.
func readJSON(body []byte, maxMessage int, to []core.Message) ([]core.Message, error) {
	r := jsonReader{text: body}
	d := messageReader{json: &r, maxMessage: maxMessage}
	found := false
	err := r.object(func(name []byte) error {
		if string(name) != "messages" {
			return r.fail("no member is named %.40q: a batch has \"messages\"", name)
		}
		if found {
			return r.fail("\"messages\" comes twice")
		}
		found = true
		return r.array(func() error {
			m, err := d.read()
			if err == nil {
				to, err = addMessage(to, m)
			}
			if err != nil {
				return inMessage(len(to), err)
			}
			return nil
		})
	})
	switch {
	case err != nil:
	case !found:
		err = r.fail("there is no \"messages\"")
	default:
		err = r.end()
	}
	return to, err
}

// readNDJSON reads one message a line. A newline at the very end is no further
// line; any other empty line is a mistake that must not pass silently.
func readNDJSON(body []byte, maxMessage int, to []core.Message) ([]core.Message, error) {
	d := messageReader{json: &jsonReader{}, maxMessage: maxMessage}
	body = bytes.TrimSuffix(body, []byte{'\n'})
	for line, n, more := []byte(nil), 1, len(body) > 0; more; n++ {
		line, body, more = bytes.Cut(body, []byte{'\n'})
		*d.json = jsonReader{text: line, arena: d.json.arena}
		m, err := d.read()
		if err == nil {
			err = d.json.end()
		}
		if err == nil {
			to, err = addMessage(to, m)
		}
		if err != nil {
			return to, inLine(n, err)
		}
	}
	return to, nil
}

// A field is a member of a message.
type field uint

const (
	fieldKey field = iota
	fieldKeyBase64
	fieldPayload
	fieldPayloadBase64
	fieldHeaders
	fieldContentType
	fieldSender
	fieldID
)

var fieldNames = [...]string{
	fieldKey: "key", fieldKeyBase64: "key_base64", fieldPayload: "payload", fieldPayloadBase64: "payload_base64",
	fieldHeaders: "headers", fieldContentType: "content_type", fieldSender: "sender", fieldID: "id",
}

// A messageReader reads messages as they stand in JSON.
type messageReader struct {
	json       *jsonReader
	maxMessage int
	content    core.Content
	seen       uint // a bit for each field that was given

	contentType, sender string // of the message before: most of a batch say the same
}

func (d *messageReader) read() (core.Message, error) {
	d.contentType, d.sender = d.content.ContentType, d.content.Sender
	d.content = core.Content{Headers: d.content.Headers[:0]}
	d.seen = 0
	d.json.arena = d.json.arena[:0]
	if err := d.json.object(d.member); err != nil {
		return core.Message{}, err
	}
	if err := d.check(); err != nil {
		return core.Message{}, err
	}
	return core.NewMessage(&d.content, d.maxMessage)
}

// member reads one member of a message.
func (d *messageReader) member(name []byte) error {
	f, err := d.field(name)
	if err != nil || d.json.null() { // a null is as good as nothing
		return err
	}
	d.seen |= 1 << f
	if f == fieldHeaders {
		return d.json.object(d.header)
	}
	value, err := d.json.string()
	if err != nil {
		return err
	}
	c := &d.content
	switch f {
	case fieldKey:
		c.Key, c.HasKey = value, true
	case fieldKeyBase64:
		c.HasKey = true
		c.Key, err = d.json.base64(f, value)
	case fieldPayload:
		c.Payload = value
	case fieldPayloadBase64:
		c.Payload, err = d.json.base64(f, value)
	case fieldContentType:
		c.ContentType = same(d.contentType, value)
	case fieldSender:
		c.Sender = same(d.sender, value)
	case fieldID:
		c.ID = string(value)
	}
	return err
}

func (d *messageReader) field(name []byte) (field, error) {
	for f, n := range fieldNames {
		if string(name) != n {
			continue
		}
		if d.seen&(1<<f) != 0 {
			return 0, d.json.fail("%q comes twice", n)
		}
		return field(f), nil
	}
	return 0, d.json.fail("no member of a message is named %.40q", name)
}

func (d *messageReader) check() error {
	given := func(f field) bool { return d.seen&(1<<f) != 0 }
	switch {
	case given(fieldKey) && given(fieldKeyBase64):
		return core.Errorf(core.CodeInvalidRequest, "cannot use both key and key_base64: give one")
	case given(fieldPayload) && given(fieldPayloadBase64):
		return core.Errorf(core.CodeInvalidRequest, "cannot use both payload and payload_base64: give one")
	case !given(fieldPayload) && !given(fieldPayloadBase64):
		return core.Errorf(core.CodeInvalidRequest, "cannot publish a message without payload or payload_base64; an empty one is \"\"")
	}
	return nil
}

// header reads one header of a message.
func (d *messageReader) header(name []byte) error {
	value, err := d.json.string()
	before := headerBefore(d.content.Headers)
	d.content.Headers = append(d.content.Headers, core.Header{Name: same(before.Name, name), Value: same(before.Value, value)})
	return err
}
