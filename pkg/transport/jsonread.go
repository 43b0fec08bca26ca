package transport

import (
	"bytes"
	"encoding/base64"
	"unicode/utf16"
	"unicode/utf8"

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

// A messageReader reads messages as they stand in JSON.
type messageReader struct {
	json       *jsonReader
	maxMessage int
	content    core.Content
	seen       map[string]bool
}

func (d *messageReader) read() (core.Message, error) {
	d.content = core.Content{Headers: d.content.Headers[:0], ContentType: d.content.ContentType, Sender: d.content.Sender}
	if d.seen == nil {
		d.seen = make(map[string]bool, 8)
	}
	clear(d.seen)
	r := d.json
	r.arena = r.arena[:0]
	contentType, sender := d.content.ContentType, d.content.Sender // most messages of a batch say the same
	d.content.ContentType, d.content.Sender = "", ""
	err := r.object(func(name []byte) error {
		field, err := d.field(name)
		if err != nil {
			return err
		}
		if field == "headers" {
			return d.headers()
		}
		value, given, err := r.stringOrNull()
		if err != nil || !given {
			return err
		}
		d.seen[field] = true
		switch field {
		case "key", "key_base64":
			d.content.HasKey = true
			d.content.Key, err = r.bytes(field, value)
		case "payload", "payload_base64":
			d.content.Payload, err = r.bytes(field, value)
		case "content_type":
			d.content.ContentType = same(contentType, value)
		case "sender":
			d.content.Sender = same(sender, value)
		case "id":
			d.content.ID = string(value)
		}
		return err
	})
	if err != nil {
		return core.Message{}, err
	}
	if err := d.check(); err != nil {
		return core.Message{}, err
	}
	return core.NewMessage(&d.content, d.maxMessage)
}

// fields are the members of a message.
var fields = [...]string{"key", "key_base64", "payload", "payload_base64", "headers", "content_type", "sender", "id"}

func (d *messageReader) field(name []byte) (string, error) {
	for _, f := range fields {
		if string(name) != f {
			continue
		}
		if d.seen[f] {
			return "", d.json.fail("%q comes twice", f)
		}
		return f, nil
	}
	return "", d.json.fail("no member of a message is named %.40q", name)
}

func (d *messageReader) check() error {
	switch {
	case d.seen["key"] && d.seen["key_base64"]:
		return core.Errorf(core.CodeInvalidRequest, "cannot use both key and key_base64: give one")
	case d.seen["payload"] && d.seen["payload_base64"]:
		return core.Errorf(core.CodeInvalidRequest, "cannot use both payload and payload_base64: give one")
	case !d.seen["payload"] && !d.seen["payload_base64"]:
		return core.Errorf(core.CodeInvalidRequest, "cannot publish a message without payload or payload_base64; an empty one is \"\"")
	}
	return nil
}

func (d *messageReader) headers() error {
	r := d.json
	if r.null() {
		return nil
	}
	d.seen["headers"] = true
	return r.object(func(name []byte) error {
		h := core.Header{Name: lowerASCII(name)}
		for i := range d.content.Headers {
			if d.content.Headers[i].Name == h.Name {
				return r.fail("header %.40q comes twice", h.Name)
			}
		}
		value, err := r.string()
		h.Value = string(value)
		d.content.Headers = append(d.content.Headers, h)
		return err
	})
}

// A jsonReader reads JSON text (RFC 8259) as far as a batch has any: objects,
// arrays and strings.
type jsonReader struct {
	text  []byte
	at    int    // what is read
	arena []byte // strings that do not stand in text as they are
}

func (r *jsonReader) fail(format string, args ...any) error {
	e := core.Errorf(core.CodeInvalidRequest, format, args...)
	e.Detail = "cannot read JSON: " + e.Detail
	return e.With("byte", r.at)
}

// next skips white space and returns the byte that follows, 0 at the end.
func (r *jsonReader) next() byte {
	for ; r.at < len(r.text); r.at++ {
		switch c := r.text[r.at]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

func (r *jsonReader) take(c byte) bool {
	if r.next() != c || r.at == len(r.text) {
		return false
	}
	r.at++
	return true
}

func (r *jsonReader) expected(what string) error {
	if r.next(); r.at == len(r.text) {
		return r.fail("%s was expected, but the text ends", what)
	}
	return r.fail("%s was expected, not %.20q", what, r.text[r.at:min(r.at+20, len(r.text))])
}

// end makes sure that nothing follows.
func (r *jsonReader) end() error {
	if r.next(); r.at < len(r.text) {
		return r.expected("the end")
	}
	return nil
}

// object calls member for each name, with the reader before the value.
func (r *jsonReader) object(member func(name []byte) error) error {
	if !r.take('{') {
		return r.expected("an object")
	}
	if r.take('}') {
		return nil
	}
	for {
		name, err := r.string()
		if err != nil {
			return err
		}
		if !r.take(':') {
			return r.expected("a colon")
		}
		if err := member(name); err != nil {
			return err
		}
		if r.take('}') {
			return nil
		}
		if !r.take(',') {
			return r.expected("a comma or the end of the object")
		}
	}
}

// array calls item with the reader before each item.
func (r *jsonReader) array(item func() error) error {
	if !r.take('[') {
		return r.expected("an array")
	}
	if r.take(']') {
		return nil
	}
	for {
		if err := item(); err != nil {
			return err
		}
		if r.take(']') {
			return nil
		}
		if !r.take(',') {
			return r.expected("a comma or the end of the array")
		}
	}
}

func (r *jsonReader) null() bool {
	if r.next() != 'n' || !bytes.HasPrefix(r.text[r.at:], []byte("null")) {
		return false
	}
	r.at += len("null")
	return true
}

// stringOrNull reads a string; a null is none given.
func (r *jsonReader) stringOrNull() (s []byte, given bool, err error) {
	if r.null() {
		return nil, false, nil
	}
	s, err = r.string()
	return s, true, err
}

// string reads a string. The result lies in the text or in the arena, and is
// never nil.
func (r *jsonReader) string() ([]byte, error) {
	if !r.take('"') {
		return nil, r.expected("a string")
	}
	from := r.at
	for ; r.at < len(r.text); r.at++ {
		switch c := r.text[r.at]; {
		case c == '"':
			s := r.text[from:r.at:r.at]
			r.at++
			return s, r.utf8(s)
		case c == '\\':
			return r.escaped(from)
		case c < ' ':
			return nil, r.fail("control character %q in a string: write it as an escape", c)
		}
	}
	return nil, r.fail("a string does not end")
}

// escaped reads on in a string that began at from, at its first escape.
func (r *jsonReader) escaped(from int) ([]byte, error) {
	begin := len(r.arena)
	r.arena = append(r.arena, r.text[from:r.at]...)
	for r.at < len(r.text) {
		switch c := r.text[r.at]; {
		case c == '"':
			r.at++
			s := r.arena[begin:len(r.arena):len(r.arena)]
			return s, r.utf8(s)
		case c == '\\':
			if err := r.escape(); err != nil {
				return nil, err
			}
		case c < ' ':
			return nil, r.fail("control character %q in a string: write it as an escape", c)
		default:
			r.arena = append(r.arena, c)
			r.at++
		}
	}
	return nil, r.fail("a string does not end")
}

// escape reads one escape into the arena.
func (r *jsonReader) escape() error {
	if r.at+1 == len(r.text) {
		return r.fail("a string does not end")
	}
	c := r.text[r.at+1]
	if i := bytes.IndexByte([]byte(`"\/bfnrt`), c); i >= 0 {
		r.arena = append(r.arena, "\"\\/\b\f\n\r\t"[i])
		r.at += 2
		return nil
	}
	unit, ok := r.unit()
	if !ok {
		return r.fail("%.6q is no escape", r.text[r.at:min(r.at+6, len(r.text))])
	}
	r.at += 6
	if utf16.IsSurrogate(unit) {
		low, ok := r.unit()
		pair := utf16.DecodeRune(unit, low)
		if !ok || pair == utf8.RuneError {
			return r.fail("\\u%04x is one half of a surrogate pair alone, which is no text; send other bytes as base64", unit)
		}
		r.at += 6
		unit = pair
	}
	r.arena = utf8.AppendRune(r.arena, unit)
	return nil
}

// unit looks at the \uXXXX that comes next.
func (r *jsonReader) unit() (unit rune, ok bool) {
	if len(r.text)-r.at < 6 || r.text[r.at] != '\\' || r.text[r.at+1] != 'u' {
		return 0, false
	}
	for _, c := range r.text[r.at+2 : r.at+6] {
		h := unhex(c)
		if h < 0 {
			return 0, false
		}
		unit = unit<<4 | rune(h)
	}
	return unit, true
}

func (r *jsonReader) utf8(s []byte) error {
	if !utf8.Valid(s) {
		return r.fail("a string is not UTF-8; send other bytes as base64")
	}
	return nil
}

// bytes returns what value stands for, which in a field named _base64 is what it
// encodes.
func (r *jsonReader) bytes(field string, value []byte) ([]byte, error) {
	if !bytes.HasSuffix([]byte(field), []byte("_base64")) {
		return value, nil
	}
	begin := len(r.arena)
	var err error
	if r.arena, err = base64.StdEncoding.AppendDecode(r.arena, value); err != nil {
		return nil, r.fail("%s is no base64 (RFC 4648 §4, padded): %v", field, err)
	}
	return r.arena[begin:len(r.arena):len(r.arena)], nil
}
