package transport

import "github.com/podmq/podmq/pkg/core"

// rawLines appends the lines of a raw answer, which has one message: all of it
// but the payload. contentType is the message's own.
func rawLines(b []byte, d *core.Delivery) (lines []byte, contentType string) {
	b = appendIntLine(b, "Podmq-Partition", int64(d.Partition))
	b = appendIntLine(b, "Podmq-Offset", d.Offset)
	b = appendIntLine(b, "Podmq-Attempt", int64(d.Attempt))
	b = append(b, "Podmq-Published-At: "...)
	b = d.PublishedAt().UTC().AppendFormat(b, "2006-01-02T15:04:05.000Z")
	b = append(b, "\r\n"...)
	if d.HasKey() {
		b = append(b, "Podmq-Key: "...)
		b = appendEscaped(b, d.Key(), unreserved)
		b = append(b, "\r\n"...)
	}
	d.Attr(func(name, value []byte) bool {
		switch string(name) {
		case ":content-type":
			contentType = string(appendEscaped(nil, value, printable))
			return true
		case ":sender":
			b = append(b, "Podmq-Sender"...)
		case ":id":
			b = append(b, "Podmq-Id"...)
		default:
			if !ownHeader(name) {
				b = append(b, "Podmq-Meta-"...)
			}
			b = appendEscaped(b, name, token)
		}
		b = append(b, ": "...)
		b = appendEscaped(b, value, printable)
		b = append(b, "\r\n"...)
		return true
	})
	return b, contentType
}

// appendEscaped appends s with every byte percent-encoded that is not allowed.
// So no message can forge a line of the answer's head.
func appendEscaped(b, s []byte, allowed func(c byte) bool) []byte {
	const hex = "0123456789ABCDEF"
	for _, c := range s {
		if allowed(c) {
			b = append(b, c)
		} else {
			b = append(b, '%', hex[c>>4], hex[c&15])
		}
	}
	return b
}

// unreserved are the bytes that mean themselves in a query as well, so that a
// key can be handed on as it came.
func unreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '.' || c == '_' || c == '~'
}

// printable are the bytes that the value of a header can have.
func printable(c byte) bool { return c >= ' ' && c != 0x7f || c == '\t' }

// token are the bytes that the name of a header can have.
func token(c byte) bool {
	switch c {
	case '!', '#', '$', '&', '\'', '*', '+', '^', '`', '|':
		return true
	}
	return unreserved(c)
}
