package transport

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/podmq/podmq/pkg/core"
	"github.com/podmq/podmq/pkg/transport/units"
)

// A query is what a request's query gives for its route's parameters, decoded:
// bytes, of any kind. Its memory is used again for the next request.
type query struct {
	given []argument
	text  []byte // of all values
	waits memo   // of the last wait: a client mostly gives the same
}

type argument struct {
	name     string
	from, to int // in text
}

type memo struct {
	text  string
	value time.Duration
}

// keepQuery is how large a query's memory may be to be kept by an idle connection.
const keepQuery = 4 << 10

func (q *query) reset() {
	q.given = q.given[:0]
	if cap(q.text) > keepQuery {
		q.text = nil
	}
	q.text = q.text[:0]
}

// parse reads a query string. Unknown parameters are refused, all by name: a
// misspelt one must not pass silently.
func (q *query) parse(raw []byte, r *route) error {
	var unknown []string
	for len(raw) > 0 {
		var pair []byte
		pair, raw, _ = bytes.Cut(raw, []byte{'&'})
		if len(pair) == 0 {
			continue
		}
		name, value, _ := bytes.Cut(pair, []byte{'='})
		p := r.takes(name)
		if p == nil {
			decoded, err := unescape(nil, name, ' ')
			if err != nil {
				return core.Errorf(core.CodeInvalidRequest, "cannot read the query: %v", err)
			}
			if p = r.takes(decoded); p == nil {
				unknown = append(unknown, fmt.Sprintf("%.60s", strings.ToValidUTF8(string(decoded), "\uFFFD")))
				continue
			}
		}
		if err := q.add(p, value); err != nil {
			return err
		}
	}
	if unknown != nil {
		return unknownParameters(unknown, r)
	}
	return nil
}

func (q *query) add(p *param, value []byte) (err error) {
	if _, again := q.get(p.name); again && !p.repeats {
		return core.Invalid(p.name, "cannot use %s twice", p.name)
	}
	from := len(q.text)
	if q.text, err = unescape(q.text, value, ' '); err != nil {
		return core.Invalid(p.name, "cannot read %s: %v", p.name, err)
	}
	q.given = append(q.given, argument{p.name, from, len(q.text)})
	return nil
}

func unknownParameters(unknown []string, r *route) error {
	known := "none"
	if len(r.params) > 0 {
		var names []string
		for _, p := range r.params {
			names = append(names, p.name)
		}
		known = strings.Join(names, ", ")
	}
	return core.Invalid(unknown[0], "cannot use %s: no parameter of %s %s has that name; it takes %s", strings.Join(unknown, ", "), r.method, r.path, known).
		With("parameters", unknown)
}

// unescape appends raw to dst with its percent-encoding undone. A plus stands
// for the byte plus: a space in a query, itself in a path.
func unescape(dst, raw []byte, plus byte) ([]byte, error) {
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; c {
		case '+':
			dst = append(dst, plus)
		case '%':
			if i+2 >= len(raw) {
				return dst, fmt.Errorf("its percent-encoding %q is cut short", raw[i:])
			}
			hi, lo := unhex(raw[i+1]), unhex(raw[i+2])
			if hi < 0 || lo < 0 {
				return dst, fmt.Errorf("%q is no percent-encoding", raw[i:i+3])
			}
			dst = append(dst, byte(hi<<4|lo))
			i += 2
		default:
			dst = append(dst, c)
		}
	}
	return dst, nil
}

func unhex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// get returns a parameter's value, which is valid until the query is reset.
func (q *query) get(name string) (value []byte, given bool) {
	for _, a := range q.given {
		if a.name == name {
			return q.text[a.from:a.to:a.to], true
		}
	}
	return nil, false
}

// all calls yield with every value of a parameter.
func (q *query) all(name string) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for _, a := range q.given {
			if a.name == name && !yield(q.text[a.from:a.to:a.to]) {
				return
			}
		}
	}
}

// integer returns a whole number, def when it is not given. Its bounds are
// [least, most].
func (q *query) integer(name string, def, least, most int64) (int64, error) {
	text, given := q.get(name)
	if !given {
		return def, nil
	}
	n, err := parseInt(text)
	if err != nil {
		return 0, core.Invalid(name, "cannot use %s=%.40q: %v", name, text, err)
	}
	if n < least || n > most {
		return 0, core.Invalid(name, "cannot use %s=%d: it is %d to %d", name, n, least, most)
	}
	return n, nil
}

// optional is a whole number of 0 and more that may be left out.
func optional[T int | int64](q *query, name string) (o core.Opt[T], err error) {
	if _, given := q.get(name); !given {
		return o, nil
	}
	n, err := q.integer(name, 0, 0, 1<<53)
	return core.Some(T(n)), err
}

// parseInt reads a decimal without a sign of at most 18 digits.
func parseInt(text []byte) (n int64, err error) {
	if len(text) == 0 || len(text) > 18 {
		return 0, errors.New("it is a whole number")
	}
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, errors.New("it is a whole number")
		}
		n = n*10 + int64(c-'0')
	}
	return n, nil
}

// wait returns how long the call may wait, def when it does not say.
func (q *query) wait(def time.Duration) (time.Duration, error) {
	text, given := q.get("wait")
	if !given {
		return def, nil
	}
	if string(text) == q.waits.text {
		return q.waits.value, nil
	}
	d, err := units.ParseDuration(string(text))
	if err != nil {
		return 0, core.Invalid("wait", "%v (wait)", err)
	}
	if d > core.MaxWait {
		return 0, core.Invalid("wait", "cannot wait %v: the most is %v", d, core.MaxWait)
	}
	q.waits = memo{string(text), d}
	return d, nil
}

// duration returns a duration that may be left out, of at most most.
func (q *query) duration(name string, most time.Duration) (o core.Opt[time.Duration], err error) {
	text, given := q.get(name)
	if !given {
		return o, nil
	}
	d, err := units.ParseDuration(string(text))
	if err != nil {
		return o, core.Invalid(name, "%v (%s)", err, name)
	}
	if d > most {
		return o, core.Invalid(name, "cannot use %s=%v: the most is %v", name, d, most)
	}
	return core.Some(d), nil
}

// size returns a size in bytes, def when it is not given, of 1 to most.
func (q *query) size(name string, def, most int64) (int64, error) {
	text, given := q.get(name)
	if !given {
		return def, nil
	}
	n, err := units.ParseSize(string(text))
	if err != nil {
		return 0, core.Invalid(name, "%v (%s)", err, name)
	}
	if n < 1 || n > most {
		return 0, core.Invalid(name, "cannot use %s=%s: it is 1B to %s", name, text, units.FormatSize(most))
	}
	return n, nil
}

// oneOf returns one of the words, the first when none is given.
func (q *query) oneOf(name string, words ...string) (string, error) {
	text, given := q.get(name)
	if !given {
		return words[0], nil
	}
	for _, w := range words {
		if string(text) == w {
			return w, nil
		}
	}
	return "", core.Invalid(name, "cannot use %s=%.40q: it is %s", name, text, strings.Join(words, " or "))
}
