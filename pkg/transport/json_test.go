package transport

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/podmq/podmq/pkg/core"
)

func TestStringsAreEscapedAsJSONAsks(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"": `""`, "a": `"a"`, "\"\\": `"\"\\"`, "\n\r\t": `"\n\r\t"`, "\x00\x1f\x7f": "\"\\u0000\\u001f\x7f\"", "/<>&": `"/</>&"`,
		"é\u2027\u2028\u2029\u202a": "\"é\u2027\\u2028\\u2029\u202a\"", "\u2028": `"\u2028"`, "€😀": `"€😀"`,
	} {
		if in == "/<>&" {
			want = `"/<>&"`
		}
		if got := string(appendString(nil, []byte(in))); got != want {
			t.Errorf("%q is %s, want %s", in, got, want)
		}
	}
	for r := rune(0); r <= utf8.MaxRune; r += 7 {
		s := "a" + string(r) + "b"
		b := appendString(nil, []byte(s))
		var back string
		if err := json.Unmarshal(b, &back); err != nil || back != string([]rune(s)) || int64(len(b)) > stringCost([]byte(s))+2 {
			t.Fatalf("%U is %s, and back %q: %v", r, b, back, err)
		}
	}
}

func FuzzString(f *testing.F) {
	for _, seed := range []string{"", "\x00\"\\", "\u2028\u2029", "\xe2\x80", "\xff", strings.Repeat("é", 100)} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, s []byte) {
		if !utf8.Valid(s) {
			return
		}
		b := appendString(nil, s)
		var back string
		if err := json.Unmarshal(b, &back); err != nil || back != string(s) {
			t.Errorf("%q is %s, and back %q: %v", s, b, back, err)
		}
		r := jsonReader{text: b}
		if own, err := r.string(); err != nil || !bytes.Equal(own, s) || r.end() != nil {
			t.Errorf("%q is %s, and back %q: %v", s, b, own, err)
		}
	})
}

// sameAsStandard reads a batch with encoding/json, whose result a batch that we
// can read must have.
func sameAsStandard(t *testing.T, body []byte, got []core.Message) {
	t.Helper()
	var want struct {
		Messages []struct {
			Key           *string           `json:"key"`
			KeyBase64     *[]byte           `json:"key_base64"`
			Payload       *string           `json:"payload"`
			PayloadBase64 *[]byte           `json:"payload_base64"`
			Headers       map[string]string `json:"headers"`
			ContentType   string            `json:"content_type"`
			Sender        string            `json:"sender"`
			ID            string            `json:"id"`
		} `json:"messages"`
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&want); err != nil {
		t.Fatalf("%q was read, and is no JSON: %v", body, err)
	}
	if len(got) != len(want.Messages) {
		t.Fatalf("%q: %d messages, want %d", body, len(got), len(want.Messages))
	}
	for i, w := range want.Messages {
		m := got[i]
		payload, key := w.PayloadBase64, w.KeyBase64
		if w.Payload != nil {
			b := []byte(*w.Payload)
			payload = &b
		}
		if w.Key != nil {
			b := []byte(*w.Key)
			key = &b
		}
		if payload == nil || !bytes.Equal(m.Payload(), *payload) || m.HasKey() != (key != nil) || key != nil && !bytes.Equal(m.Key(), *key) ||
			m.ContentType() != w.ContentType || m.Sender() != w.Sender || m.ID() != w.ID {
			t.Fatalf("%q: message %d differs", body, i)
		}
		n := 0
		for h := range m.Headers {
			n++
			found := false
			for name, value := range w.Headers {
				found = found || lowerASCII("", []byte(name)) == h.Name && value == h.Value
			}
			if !found {
				t.Fatalf("%q: message %d has header %q: %q", body, i, h.Name, h.Value)
			}
		}
		if n != len(w.Headers) {
			t.Fatalf("%q: message %d has %d headers, want %d", body, i, n, len(w.Headers))
		}
	}
}

func FuzzBatchJSON(f *testing.F) {
	for _, seed := range []string{
		`{"messages":[{"payload":"a"}]}`,
		`{"messages":[{"key":"k","payload":"\ud83d\ude00\n"},{"payload_base64":"AAE=","key_base64":"/w==","headers":{"A":"b","c":""},"content_type":"x","sender":"s","id":"i"}]}`,
		`{"messages":[{"payload":"\ud800"}]}`, `{"messages":[]}`, `{"messages":[{"payload":null,"headers":null}]}`, `{"messages":[{"payload":"a","x":1}]}`, "{\"messages\":[{\"payload\":\"\xff\"}]}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := readJSON(body, 1<<20, nil)
		if err != nil {
			if code := core.CodeOf(err); code != core.CodeInvalidRequest && code != core.CodeTooLarge {
				t.Fatalf("%q: %v", body, err)
			}
			return
		}
		sameAsStandard(t, body, got)
	})
}

func FuzzNDJSON(f *testing.F) {
	for _, seed := range []string{"{\"payload\":\"a\"}\n", "{\"payload\":\"a\"}\r\n{\"payload\":\"\"}", "\n", "{\"payload\":\"a\"}\n\n", "{}\n", "{\"payload\":\"a\"} {\"payload\":\"b\"}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := readNDJSON(body, 1<<20, nil)
		if err != nil {
			if code := core.CodeOf(err); code != core.CodeInvalidRequest && code != core.CodeTooLarge {
				t.Fatalf("%q: %v", body, err)
			}
			return
		}
		lines := strings.Split(strings.TrimSuffix(string(body), "\n"), "\n")
		if len(body) == 0 || string(body) == "\n" {
			lines = nil
		}
		sameAsStandard(t, fmt.Appendf(nil, `{"messages":[%s]}`, strings.Join(lines, ",")), got)
	})
}

func FuzzFrames(f *testing.F) {
	for _, c := range []core.Content{{}, {Payload: []byte("p"), Key: []byte("k"), HasKey: true}, {Headers: []core.Header{{Name: "a", Value: "b"}}, ContentType: "x", Sender: "s", ID: "i"}} {
		m, err := core.NewMessage(&c, 1000)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(m.Block())
		f.Add(append(bytes.Clone(m.Block()), m.Block()...))
		f.Add(m.Block()[:len(m.Block())-1])
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := readFrames(body, 1<<20, nil)
		if err != nil {
			if code := core.CodeOf(err); code != core.CodeInvalidRequest && code != core.CodeTooLarge {
				t.Fatalf("%q: %v", body, err)
			}
			return
		}
		var back []byte
		batch := core.Batch{}
		for _, m := range got {
			back = append(back, m.Block()...)
			batch.Deliveries = append(batch.Deliveries, core.Delivery{Message: m})
		}
		// Only names come back in another case, and once they are in that, not even they.
		if len(back) != len(body) {
			t.Errorf("%q came back as %q", body, back)
		}
		again, err := readFrames(back, 1<<20, nil)
		if err != nil || !slices.EqualFunc(again, got, func(a, b core.Message) bool { return bytes.Equal(a.Block(), b.Block()) }) {
			t.Errorf("%q came back as %q, and that as %v: %v", body, back, again, err)
		}
		// Whatever is stored, no answer fails for it.
		e := batchEncoder{batch: &batch}
		b, err := e.append(nil, func(int64) error { return nil })
		if err != nil || len(batch.Deliveries) > 0 && !json.Valid(append(b, '}')) {
			t.Errorf("%q becomes %s: %v", body, b, err)
		}
		for i := range batch.Deliveries {
			lines, _ := rawLines(nil, &batch.Deliveries[i])
			if n := bytes.Count(lines, []byte("\n")); n != bytes.Count(lines, []byte("\r\n")) || bytes.Count(lines, []byte("\r")) != n || bytes.Contains(lines, []byte("\r\n\r\n")) {
				t.Errorf("%q becomes %q", body, lines)
			}
		}
	})
}
