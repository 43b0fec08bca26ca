package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/podmq/podmq/pkg/transport/client"
)

// format is how messages are printed. It is a pflag.Value.
type format string

const (
	formatText format = "text" // for people
	formatJSON format = "json" // one object a line, as in the API's poll
	formatRaw  format = "raw"  // payloads alone, a line each

	formatUsage = "text, json (an object a line) or raw (payloads alone, a line each)"
)

func (f *format) String() string { return string(*f) }

// Set implements pflag.Value.
func (f *format) Set(text string) error {
	switch v := format(text); v {
	case formatText, formatJSON, formatRaw:
		*f = v
		return nil
	}
	return fmt.Errorf("cannot print as %.40q: it is text, json or raw", text)
}

// Type implements pflag.Value.
func (f *format) Type() string { return "format" }

// write prints the messages, all of them before it returns.
func (f *format) write(to io.Writer, messages []client.Delivery) error {
	w := bufio.NewWriter(to)
	for i := range messages {
		d := &messages[i]
		switch *f {
		case formatJSON:
			if err := json.NewEncoder(w).Encode(newMessageJSON(d)); err != nil {
				return err
			}
		case formatRaw:
			_, _ = w.Write(d.Payload) // bufio keeps the error for Flush
			_ = w.WriteByte('\n')
		default:
			writeText(w, d)
		}
	}
	return w.Flush()
}

// writeText prints a message on one line, whatever its bytes are: place, what is
// known of it, payload.
func writeText(w io.Writer, d *client.Delivery) {
	fmt.Fprintf(w, "%d:%d", d.Partition, d.Offset)
	if d.Key != nil {
		fmt.Fprintf(w, " key=%s", printable(string(d.Key)))
	}
	if d.Attempt > 1 {
		fmt.Fprintf(w, " attempt=%d", d.Attempt)
	}
	for _, h := range d.Headers {
		fmt.Fprintf(w, " %s=%s", printable(h.Name), printable(h.Value))
	}
	fmt.Fprintf(w, "  %s\n", printable(string(d.Payload)))
}

// printable is text itself, or quoted where it would break the line or the
// terminal.
func printable(text string) string {
	unprintable := func(r rune) bool { return !strconv.IsPrint(r) || r == utf8.RuneError }
	if text == "" || strings.ContainsFunc(text, unprintable) {
		return strconv.Quote(text)
	}
	return text
}

// messageJSON has the names of the API's own JSON. What is not UTF-8 stands in
// the member with _base64, which encoding/json fills from bytes.
type messageJSON struct {
	Partition     int               `json:"partition"`
	Offset        int64             `json:"offset"`
	Key           *string           `json:"key,omitempty"`
	KeyBase64     []byte            `json:"key_base64,omitempty"`
	Payload       *string           `json:"payload,omitempty"`
	PayloadBase64 []byte            `json:"payload_base64,omitempty"`
	Headers       map[string]string `json:"headers"`
	ContentType   string            `json:"content_type"`
	Sender        string            `json:"sender"`
	ID            string            `json:"id"`
	PublishedAt   string            `json:"published_at"`
	Attempt       int               `json:"attempt"`
}

func newMessageJSON(d *client.Delivery) *messageJSON {
	m := &messageJSON{
		Partition: d.Partition, Offset: d.Offset, Headers: map[string]string{},
		ContentType: d.ContentType, Sender: d.Sender, ID: d.ID, PublishedAt: d.PublishedAt.UTC().Format("2006-01-02T15:04:05.000Z"), Attempt: d.Attempt,
	}
	for _, h := range d.Headers {
		m.Headers[h.Name] = h.Value
	}
	if d.Key != nil {
		m.Key, m.KeyBase64 = textOrBytes(d.Key)
	}
	m.Payload, m.PayloadBase64 = textOrBytes(d.Payload)
	return m
}

func textOrBytes(b []byte) (*string, []byte) {
	if utf8.Valid(b) {
		s := string(b)
		return &s, nil
	}
	return nil, b
}
