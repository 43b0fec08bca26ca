package transport

import "bytes"

// Clients send the same headers again and again: of a request that publishes,
// hardly more than its target differs from the one before. When the bytes of all
// lines but the first are the same, what was made of them holds for the new
// request as well.

var (
	headEnd = []byte("\r\n\r\n")
	http11  = []byte(" HTTP/1.1\r\n")
)

// readSameHead reads the head of the next request if it stands in the buffer and
// differs from the one before in nothing but its target. Otherwise it reads
// nothing: that is for the parser.
func (k *call) readSameHead() bool {
	h, in := &k.header, k.conn.in
	lines := h.RawHeaders()
	if !bytes.HasSuffix(lines, headEnd) || !h.IsHTTP11() || h.ContentLength() == chunked {
		// There is none before, or it is not so simple: the trailer that follows
		// chunks is kept among the headers.
		return false
	}
	b, _ := in.Peek(in.Buffered())
	first := bytes.IndexByte(b, '\n') + 1
	if !bytes.HasPrefix(b[first:], lines) {
		return false
	}
	target, ok := targetOf(b[:first], h.Method())
	if !ok {
		return false
	}
	h.SetRequestURIBytes(target)
	_, _ = in.Discard(first + len(lines))
	return true
}

// targetOf returns the target of a request line of HTTP/1.1 with this method. It
// takes paths only, and only those that the parser takes too.
func targetOf(line, method []byte) (target []byte, ok bool) {
	line, ok = bytes.CutPrefix(line, method)
	if !ok {
		return nil, false
	}
	line, ok = bytes.CutSuffix(line, http11)
	if !ok || len(line) < 2 || line[0] != ' ' || line[1] != '/' {
		return nil, false
	}
	target = line[1:]
	for _, c := range target {
		if c <= ' ' || c == 0x7f {
			return nil, false
		}
	}
	return target, true
}
