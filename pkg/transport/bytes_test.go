package transport

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/podmq/podmq/pkg/core"
)

// sample is one message whose bytes must come back.
type sample struct {
	name    string
	key     []byte // nil: none
	payload []byte
	header  string
}

func samples() []sample {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	return []sample{
		{"empty", []byte{}, []byte{}, ""},
		{"NUL", []byte{0}, []byte{0, 0}, "x"},
		{"every byte", all, all, "x"},
		{"invalid UTF-8", []byte("\xff\xfe"), []byte("a\xc3(b"), "x"},
		{"a surrogate in bytes", []byte("\xed\xa0\x80"), []byte("\xed\xa0\x80"), "x"},
		{"text of all kinds", []byte("ключ 😀 +&=%"), []byte("\"\\/\b\f\n\r\t\u2028\u2029\u007f é 😀 </script>"), "wert: é 😀 \"q\" \\ 100% + a,b"},
		{"no key", nil, []byte("x"), "x"},
		{"1 MiB", []byte("k"), bytes.Repeat([]byte{0, 1, 0xff, 'a'}, (1<<20-1000)/4), "x"},
		{"much text", []byte(strings.Repeat("k", core.MaxKeyBytes)), bytes.Repeat([]byte("\x00\n\"é"), 20_000), strings.Repeat("v", 8000)},
	}
}

func asJSON(s *sample) string {
	o := map[string]any{"payload_base64": base64.StdEncoding.EncodeToString(s.payload), "headers": map[string]string{"h": s.header}}
	if utf8.Valid(s.payload) {
		delete(o, "payload_base64")
		o["payload"] = string(s.payload)
	}
	if s.key != nil {
		o["key_base64"] = base64.StdEncoding.EncodeToString(s.key)
	}
	b, _ := json.Marshal(o)
	return string(b)
}

// publishers are all ways in.
var publishers = map[string]func(r *rig, s *sample){
	"single": func(r *rig, s *sample) {
		what := publishT
		if s.key != nil {
			what += "?key=" + url.QueryEscape(string(s.key))
		}
		r.want(201, what, s.payload, "Podmq-Meta-H: "+s.header)
	},
	"JSON": func(r *rig, s *sample) {
		r.want(201, "POST /v1/topics/t/batch", `{"messages":[`+asJSON(s)+`]}`, "Content-Type: application/json")
	},
	"NDJSON": func(r *rig, s *sample) {
		r.want(201, "POST /v1/topics/t/batch", asJSON(s)+"\n", "Content-Type: application/x-ndjson")
	},
	"frames": func(r *rig, s *sample) {
		m, err := core.NewMessage(&core.Content{Key: s.key, HasKey: s.key != nil, Payload: s.payload, Headers: []core.Header{{Name: "h", Value: s.header}}}, 1<<20)
		r.must(err)
		r.want(201, "POST /v1/topics/t/batch", m.Block(), "Content-Type: application/vnd.podmq.frames")
	},
}

// pollers are all ways out. They return the receipt.
var pollers = map[string]func(r *rig) (s sample, receipt string){
	"JSON":   func(r *rig) (sample, string) { return pollJSON(r, "") },
	"base64": func(r *rig) (sample, string) { return pollJSON(r, "?encoding=base64") },
	"frames": func(r *rig) (s sample, receipt string) {
		a := r.want(200, pollG, nil, "Accept: application/vnd.podmq.frames")
		m, rest, err := core.ParseMessage(a.body[deliveryFixed:], 1<<20)
		if err != nil || len(rest) > 0 {
			r.Fatalf("%v, %d bytes left", err, len(rest))
		}
		s.payload = m.Payload()
		if m.HasKey() {
			s.key = m.Key()
		}
		for h := range m.Headers {
			s.header = h.Value
		}
		return s, a.Header.Get("Podmq-Receipt")
	},
	"raw": func(r *rig) (s sample, receipt string) {
		a := r.want(200, pollG+"?format=raw", nil)
		s.payload, s.header = a.body, a.Header.Get("Podmq-Meta-H")
		if key, given := a.Header["Podmq-Key"]; given {
			k, err := url.QueryUnescape(key[0])
			r.must(err)
			s.key = []byte(k)
		}
		return s, a.Header.Get("Podmq-Receipt")
	},
}

func pollJSON(r *rig, query string) (s sample, receipt string) {
	a := r.want(200, pollG+query, nil)
	var got struct {
		Messages []struct {
			Key           *string `json:"key"`
			KeyBase64     *[]byte `json:"key_base64"`
			Payload       *string `json:"payload"`
			PayloadBase64 *[]byte `json:"payload_base64"`
			Headers       map[string]string
		}
		Receipt string
	}
	r.must(json.Unmarshal(a.body, &got))
	m := got.Messages[0]
	if !utf8.Valid(a.body) || query != "" && m.Payload != nil {
		r.Fatalf("%.200s", a.body)
	}
	switch {
	case m.Payload != nil:
		s.payload = []byte(*m.Payload)
	case m.PayloadBase64 != nil:
		s.payload = *m.PayloadBase64
	default:
		r.Fatal("no payload")
	}
	switch {
	case m.Key != nil:
		s.key = []byte(*m.Key)
	case m.KeyBase64 != nil:
		s.key = *m.KeyBase64
	}
	s.header = m.Headers["h"]
	return s, got.Receipt
}

func TestG20EveryByteComesBack(t *testing.T) {
	t.Parallel()
	for in, publish := range publishers {
		for out, poll := range pollers {
			t.Run(fmt.Sprintf("%s in, %s out", in, out), func(t *testing.T) {
				t.Parallel()
				r := start(t)
				r.topic("")
				for _, s := range samples() {
					publish(r, &s)
					got, receipt := poll(r)
					if !bytes.Equal(got.payload, s.payload) {
						t.Errorf("%s: the payload is %.60q, want %.60q", s.name, got.payload, s.payload)
					}
					if !bytes.Equal(got.key, s.key) || (got.key == nil) != (s.key == nil) {
						t.Errorf("%s: the key is %.60q, want %.60q", s.name, got.key, s.key)
					}
					if got.header != s.header {
						t.Errorf("%s: the header is %.60q, want %.60q", s.name, got.header, s.header)
					}
					r.want(200, "POST /v1/topics/t/groups/g/ack?receipt="+receipt, nil)
				}
			})
		}
	}
}
