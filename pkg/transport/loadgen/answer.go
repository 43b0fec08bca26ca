package loadgen

import (
	"bytes"
	"fmt"
)

// An answer is one HTTP answer of PodMQ, as it lies in the read buffer.
type answer struct {
	status int
	head   []byte
	body   []byte
	size   int // of all of it
}

// readAnswer reads the answer at the start of in. ok is false while it is not
// complete. It understands what PodMQ sends, which is less than HTTP.
func readAnswer(in []byte) (a answer, ok bool, err error) {
	end := bytes.Index(in, []byte("\r\n\r\n"))
	if end < 0 {
		return a, false, nil
	}
	a.head = in[:end+2]
	if len(a.head) < 12 || !bytes.HasPrefix(a.head, []byte("HTTP/1.1 ")) {
		return a, false, fmt.Errorf("cannot understand the broker: it said %.100q", in)
	}
	a.status = decimal(a.head[9:12])
	length := 0
	if text, given := a.header("Content-Length"); given {
		length = decimal(text)
	} else if a.status != 204 {
		return a, false, fmt.Errorf("cannot understand the broker: no length in %q", a.head)
	}
	a.size = end + 4 + length
	if len(in) < a.size {
		return a, false, nil
	}
	a.body = in[end+4 : a.size]
	return a, true, nil
}

// header returns the value of a line of the head, whose name must be written as
// PodMQ writes it.
func (a *answer) header(name string) (value []byte, given bool) {
	for rest := a.head; ; {
		at := bytes.Index(rest, []byte(name))
		if at < 0 {
			return nil, false
		}
		line := rest[at+len(name):]
		if at >= 2 && rest[at-1] == '\n' && bytes.HasPrefix(line, []byte(": ")) {
			value, _, _ = bytes.Cut(line[2:], []byte("\r\n"))
			return value, true
		}
		rest = line
	}
}

// refusal is an answer that ends the run.
func (a *answer) refusal(call string) error {
	return fmt.Errorf("cannot go on: %s was answered with %d: %.400s", call, a.status, a.body)
}

func decimal(text []byte) (n int) {
	for _, c := range text {
		n = n*10 + int(c-'0')
	}
	return n
}
