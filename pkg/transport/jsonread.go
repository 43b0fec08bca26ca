package transport

import (
	"bytes"
	"encoding/base64"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/podmq/podmq/pkg/core"
)

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

// string reads a string. The result lies in the text or in the arena, and is
// never nil.
func (r *jsonReader) string() ([]byte, error) {
	if !r.take('"') {
		return nil, r.expected("a string")
	}
	from := r.at
	r.at += plainASCII(r.text[r.at:])
	if r.at < len(r.text) && r.text[r.at] == '"' {
		r.at++
		return r.text[from : r.at-1 : r.at-1], nil
	}
	switch c := r.plain(); c {
	case '"':
		s := r.text[from:r.at:r.at]
		r.at++
		return s, r.utf8(s)
	case '\\':
		return r.escaped(from)
	default:
		return nil, r.unended(c)
	}
}

// escaped reads on in a string that began at from, at its first escape.
func (r *jsonReader) escaped(from int) ([]byte, error) {
	begin := len(r.arena)
	for {
		r.arena = append(r.arena, r.text[from:r.at]...)
		if err := r.escape(); err != nil {
			return nil, err
		}
		from = r.at
		switch c := r.plain(); c {
		case '"':
			r.arena = append(r.arena, r.text[from:r.at]...)
			r.at++
			s := r.arena[begin:len(r.arena):len(r.arena)]
			return s, r.utf8(s)
		case '\\':
		default:
			return nil, r.unended(c)
		}
	}
}

// plain skips what stands for itself in a string, and returns what follows: a
// quote, a backslash, a control character, or 0 at the end.
func (r *jsonReader) plain() byte {
	if r.at += plain(r.text[r.at:], '"'); r.at < len(r.text) {
		return r.text[r.at]
	}
	return 0
}

func (r *jsonReader) unended(c byte) error {
	if r.at == len(r.text) {
		return r.fail("a string does not end")
	}
	return r.fail("control character %q in a string: write it as an escape", c)
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

// base64 decodes a value into the arena.
func (r *jsonReader) base64(f field, value []byte) (decoded []byte, err error) {
	begin := len(r.arena)
	if r.arena, err = base64.StdEncoding.AppendDecode(r.arena, value); err != nil {
		return nil, r.fail("%s is no base64 (RFC 4648 §4, padded): %v", fieldNames[f], err)
	}
	return r.arena[begin:len(r.arena):len(r.arena)], nil
}
