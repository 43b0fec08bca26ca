package core_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

func message(t testing.TB, c core.Content) core.Message {
	t.Helper()
	m, err := core.NewMessage(&c, core.MaxPollBytes)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// wantContent checks that m says what c said.
func wantContent(t *testing.T, m core.Message, c core.Content) {
	t.Helper()
	if m.IsZero() {
		t.Fatal("the message is none")
	}
	if !bytes.Equal(m.Payload(), c.Payload) {
		t.Errorf("payload %.80q, want %.80q", m.Payload(), c.Payload)
	}
	if m.HasKey() != c.HasKey || c.HasKey && !bytes.Equal(m.Key(), c.Key) {
		t.Errorf("key %q (there: %v), want %q (there: %v)", m.Key(), m.HasKey(), c.Key, c.HasKey)
	}
	if !m.HasKey() && len(m.Key()) != 0 {
		t.Errorf("no key has the bytes %q", m.Key())
	}
	if got := slices.Collect(m.Headers); !slices.Equal(got, c.Headers) {
		t.Errorf("headers %v, want %v", got, c.Headers)
	}
	if m.ContentType() != c.ContentType || m.Sender() != c.Sender || m.ID() != c.ID {
		t.Errorf("content type %q, sender %q, id %q; want %q, %q, %q", m.ContentType(), m.Sender(), m.ID(), c.ContentType, c.Sender, c.ID)
	}
}

var everyByte = func() (b []byte) {
	for i := range 256 {
		b = append(b, byte(i))
	}
	return b
}()

var contents = map[string]core.Content{
	"nothing at all":        {},
	"payload only":          {Payload: []byte("o-1")},
	"empty key":             {Key: []byte{}, HasKey: true},
	"key that is not given": {Key: []byte("ignored?"), HasKey: false},
	"NUL":                   {Payload: []byte("\x00a\x00"), Key: []byte("\x00"), HasKey: true},
	"invalid UTF-8":         {Payload: []byte("\xff\xfe\xc3"), Key: []byte("\xc3\x28"), HasKey: true},
	"every byte":            {Payload: everyByte, Key: everyByte, HasKey: true},
	"headers": {Headers: []core.Header{
		{Name: "traceparent", Value: "00-4bf92f3577b34da6"}, {Name: "a", Value: ""}, {Name: "b", Value: "not empty"}, {Name: "é", Value: "grün"},
	}},
	"own attributes": {ContentType: "text/plain", Sender: "web-1", ID: "42"},
	"all of it": {
		Payload: []byte("p"), Key: []byte("k"), HasKey: true, Headers: []core.Header{{Name: "content-type", Value: "not ours"}},
		ContentType: "application/json", Sender: "s", ID: "i",
	},
	"the largest key": {Key: make([]byte, core.MaxKeyBytes), HasKey: true},
	"1 MiB":           {Payload: bytes.Repeat([]byte{0xa5}, 1<<20)},
}

func TestG20MessageComesBackByteForByte(t *testing.T) {
	for name, c := range contents {
		t.Run(name, func(t *testing.T) {
			m := message(t, c)
			if !c.HasKey {
				c.Key = nil
			}
			wantContent(t, m, c)

			frame := append(bytes.Clone(m.Block()), "next"...)
			parsed, rest, err := core.ParseMessage(frame, core.MaxPollBytes)
			if err != nil {
				t.Fatal(err)
			}
			if string(rest) != "next" {
				t.Errorf("%.20q follows the message, want %q", rest, "next")
			}
			wantContent(t, parsed, c)
		})
	}
}

func TestMessageBlockIsLaidOutAsDocumented(t *testing.T) {
	m := message(t, core.Content{
		Payload: []byte("PAY"), Key: []byte("k1"), HasKey: true,
		Headers: []core.Header{{Name: "h", Value: "vv"}}, ContentType: "t",
	})
	want := "00000020" + // 32 bytes follow
		"0002" + "0017" + // 2 of key, 23 of attributes
		"6b31" + // k1
		"01" + "0002" + "68" + "7676" + // h: vv
		"0d" + "0001" + "3a636f6e74656e742d74797065" + "74" + // :content-type: t
		"504159" // PAY
	if got := hex.EncodeToString(m.Block()); got != want {
		t.Errorf("the block is\n%s, want\n%s", got, want)
	}

	none := message(t, core.Content{})
	if got := hex.EncodeToString(none.Block()); got != "00000004ffff0000" {
		t.Errorf("no key, no attributes, no payload: %s, want 00000004ffff0000", got)
	}
}

func TestMessageCopiesWhatItIsMadeFrom(t *testing.T) {
	payload, key := []byte("payload"), []byte("key")
	m := message(t, core.Content{Payload: payload, Key: key, HasKey: true})
	clear(payload)
	clear(key)
	if string(m.Payload()) != "payload" || string(m.Key()) != "key" {
		t.Errorf("NewMessage kept the caller's bytes: %q, %q", m.Payload(), m.Key())
	}
	frame := bytes.Clone(m.Block())
	parsed, _, err := core.ParseMessage(frame, 100)
	if err != nil {
		t.Fatal(err)
	}
	clear(frame)
	if string(parsed.Payload()) != "payload" || string(parsed.Key()) != "key" {
		t.Errorf("ParseMessage kept the caller's bytes: %q, %q", parsed.Payload(), parsed.Key())
	}
	// Appending to what a message hands out must not reach what lies behind it.
	_ = append(m.Key(), "XXXX"...)
	if string(m.Payload()) != "payload" {
		t.Errorf("appending to the key wrote into the payload: %q", m.Payload())
	}
}

func TestMessageSizeAndCost(t *testing.T) {
	m := message(t, core.Content{Payload: make([]byte, 100), Key: make([]byte, 10), HasKey: true})
	if m.Size() != 110 {
		t.Errorf("payload of 100 and key of 10 have size %d, want 110", m.Size())
	}
	if m.Cost() != 110+core.MessageOverhead {
		t.Errorf("it costs %d, want %d", m.Cost(), 110+core.MessageOverhead)
	}
	withHeader := message(t, core.Content{Headers: []core.Header{{Name: "name", Value: "value"}}})
	if withHeader.Size() < len("name")+len("value") {
		t.Errorf("a header of 9 bytes has size %d", withHeader.Size())
	}
}

func TestMessageKnowsWhenItWasPublished(t *testing.T) {
	at := time.Date(2026, 11, 30, 12, 0, 0, 123456789, time.UTC)
	m := message(t, core.Content{Payload: []byte("p")})
	if got := m.Published(at.UnixNano()).PublishedAt(); !got.Equal(at) {
		t.Errorf("published at %v, want %v", got, at)
	}
}

func TestG20WhatIsTooLargeIsRefused(t *testing.T) {
	header := func(bytes int) []core.Header { return []core.Header{{Name: "h", Value: strings.Repeat("v", bytes)}} }
	tests := map[string]struct {
		c        core.Content
		maxBytes int
		ok       bool
	}{
		"key at its bound":         {core.Content{Key: make([]byte, core.MaxKeyBytes), HasKey: true}, 1 << 20, true},
		"key beyond it":            {core.Content{Key: make([]byte, core.MaxKeyBytes+1), HasKey: true}, 1 << 20, false},
		"headers within":           {core.Content{Headers: header(core.MaxHeaderBytes - 16)}, 1 << 20, true},
		"headers beyond":           {core.Content{Headers: header(core.MaxHeaderBytes + 1)}, 1 << 20, false},
		"headers beyond together":  {core.Content{Headers: append(header(core.MaxHeaderBytes/2), header(core.MaxHeaderBytes/2)...)}, 1 << 20, false},
		"content type counts too":  {core.Content{Headers: header(core.MaxHeaderBytes - 100), ContentType: strings.Repeat("t", 200)}, 1 << 20, false},
		"payload at the bound":     {core.Content{Payload: make([]byte, 100)}, 100, true},
		"payload beyond it":        {core.Content{Payload: make([]byte, 101)}, 100, false},
		"payload and key together": {core.Content{Payload: make([]byte, 99), Key: []byte("kk"), HasKey: true}, 100, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := core.NewMessage(&tt.c, tt.maxBytes)
			if tt.ok != (err == nil) {
				t.Fatalf("NewMessage says %v, want it taken: %v", err, tt.ok)
			}
			if err != nil {
				wantRefused(t, err, core.CodeTooLarge, "")
			}
			if len(tt.c.Key) > core.MaxKeyBytes {
				return // has no block to read
			}
			unbounded, err := core.NewMessage(&tt.c, core.MaxPollBytes)
			if err != nil {
				return
			}
			if _, _, err = core.ParseMessage(unbounded.Block(), tt.maxBytes); tt.ok != (err == nil) {
				t.Errorf("ParseMessage says %v, want it taken: %v", err, tt.ok)
			}
		})
	}
}

func TestG20HeadersThatAreNoneAreRefused(t *testing.T) {
	for name, h := range map[string]core.Header{
		"no name":               {Value: "v"},
		"a name too long":       {Name: strings.Repeat("n", 256), Value: "v"},
		"a name of ours":        {Name: ":id", Value: "v"},
		"a name with a colon":   {Name: ":x", Value: "v"},
		"a name not in UTF-8":   {Name: "n\xff", Value: "v"},
		"a value not in UTF-8":  {Name: "n", Value: "\xc3\x28"},
		"a value cut in a rune": {Name: "n", Value: "gr\xc3"},
	} {
		if _, err := core.NewMessage(&core.Content{Headers: []core.Header{h}}, 1<<20); err == nil {
			t.Errorf("a header with %s is taken", name)
		} else {
			wantRefused(t, err, core.CodeInvalidRequest, "")
		}
	}
	for name, c := range map[string]core.Content{
		"content type": {ContentType: "\xff"}, "sender": {Sender: "\xff"}, "id": {ID: "\xff"},
	} {
		if _, err := core.NewMessage(&c, 1<<20); err == nil {
			t.Errorf("a %s that is not UTF-8 is taken", name)
		}
	}
}

func TestParseMessageRefusesEveryBlockThatIsCutShort(t *testing.T) {
	m := message(t, contents["all of it"])
	for n := range m.Block() {
		if _, _, err := core.ParseMessage(m.Block()[:n], 1<<20); err == nil {
			t.Errorf("the first %d of %d bytes are taken for a message", n, len(m.Block()))
		} else {
			wantRefused(t, err, core.CodeInvalidRequest, "")
		}
	}
}

func TestParseMessageRefusesBlocksThatContradictThemselves(t *testing.T) {
	tests := map[string]struct {
		block string
		code  core.Code
	}{
		"size less than its own fields":    {"00000003ffff0000", core.CodeInvalidRequest},
		"size 0":                           {"00000000ffff0000", core.CodeInvalidRequest},
		"size of 4 GiB":                    {"ffffffffffff0000", core.CodeTooLarge},
		"key longer than the block":        {"0000000500020000" + "6b", core.CodeInvalidRequest},
		"attributes longer than it":        {"00000005ffff0002" + "00", core.CodeInvalidRequest},
		"key and attributes overlap":       {"0000000a00040004" + "6b6b6b6b0000", core.CodeInvalidRequest},
		"attribute cut in its lengths":     {"00000006ffff0002" + "0100", core.CodeInvalidRequest},
		"attribute longer than they are":   {"00000008ffff0004" + "01000268", core.CodeInvalidRequest},
		"attribute without a name":         {"00000007ffff0003" + "000000", core.CodeInvalidRequest},
		"attribute of a name not ours":     {"00000009ffff0005" + "0200003a78", core.CodeInvalidRequest},
		"attribute whose value is no text": {"00000009ffff0005" + "01000168ff", core.CodeInvalidRequest},
		"content type that is no text":     {"00000015ffff0011" + "0d0001" + "3a636f6e74656e742d74797065" + "ff", core.CodeInvalidRequest},
		"key beyond its bound":             {"0000040504010000" + strings.Repeat("6b", 0x401), core.CodeTooLarge},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b, err := hex.DecodeString(tt.block)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err = core.ParseMessage(b, 1<<20); err == nil {
				t.Fatal("it is taken for a message")
			}
			wantRefused(t, err, tt.code, "")
		})
	}
}

func TestHeaderNamesAreInLowerCaseAndComeOnce(t *testing.T) {
	m, err := core.NewMessage(&core.Content{Headers: []core.Header{{Name: "Trace-É", Value: "A"}, {Name: "b", Value: "B"}}}, 100)
	if err != nil {
		t.Fatal(err)
	}
	want := []core.Header{{Name: "trace-É", Value: "A"}, {Name: "b", Value: "B"}}
	if got := slices.Collect(m.Headers); !slices.Equal(got, want) {
		t.Errorf("headers %v, want %v", got, want)
	}
	var many []core.Header
	for i := range 20 {
		many = append(many, core.Header{Name: fmt.Sprint("name-", i), Value: "v"})
	}
	if _, err := core.NewMessage(&core.Content{Headers: many}, 1000); err != nil {
		t.Error(err)
	}
	for _, twice := range [][]core.Header{
		{{Name: "a", Value: "1"}, {Name: "A", Value: "2"}},
		append(slices.Clone(many), core.Header{Name: "Name-0", Value: "early"}),
		append(slices.Clone(many), core.Header{Name: "Name-19", Value: "late"}),
	} {
		_, err := core.NewMessage(&core.Content{Headers: twice}, 1000)
		wantRefused(t, err, core.CodeInvalidRequest, "")
	}
	// The same in a frame, where a name of PodMQ's own could come twice as well.
	b, err := hex.DecodeString("00000011" + "ffff" + "000d" + "030000" + "3a6964" + "030001" + "3a6964" + "78") // ":id" is empty, and "x"
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = core.ParseMessage(b, 100)
	wantRefused(t, err, core.CodeInvalidRequest, "")
}

// FuzzMessage reads anything as frames. What is taken must be exactly the bytes
// that were given, stay within them, and say the same again when it is made anew
// from what it said.
func FuzzMessage(f *testing.F) {
	for _, c := range contents {
		if len(c.Payload) <= 1<<10 {
			f.Add(message(f, c).Block())
		}
	}
	f.Add(append(message(f, contents["headers"]).Block(), message(f, contents["empty key"]).Block()...))
	f.Fuzz(func(t *testing.T, b []byte) {
		given := bytes.Clone(b)
		for len(b) > 0 {
			m, rest, err := core.ParseMessage(b, core.DefaultMessageBytes)
			if err != nil {
				if code := core.CodeOf(err); code != core.CodeInvalidRequest && code != core.CodeTooLarge {
					t.Fatalf("%v has code %s", err, code)
				}
				break
			}
			if block := b[:len(b)-len(rest)]; !sameButForCase(m.Block(), block) {
				t.Fatalf("block %x is not what was given, %x", m.Block(), block)
			}
			again(t, m)
			b = rest
		}
		if !bytes.Equal(b, given[len(given)-len(b):]) {
			t.Fatal("reading changed what was given")
		}
	})
}

// sameButForCase compares blocks, of which the headers' names may be in another
// case.
func sameButForCase(a, b []byte) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] && (a[i]|0x20 != b[i]|0x20 || a[i] < 'a' || a[i] > 'z') {
			return false
		}
	}
	return true
}

// again makes m anew from what it says. Attributes of ours that are empty are
// left out, so the block need not be the same.
func again(t *testing.T, m core.Message) {
	c := core.Content{
		Payload: m.Payload(), Key: m.Key(), HasKey: m.HasKey(), Headers: slices.Collect(m.Headers),
		ContentType: m.ContentType(), Sender: m.Sender(), ID: m.ID(),
	}
	n, err := core.NewMessage(&c, core.DefaultMessageBytes)
	if err != nil {
		t.Fatalf("what was read, %+v, cannot be made: %v", c, err)
	}
	wantContent(t, n, c)
	if m.Size() < len(c.Payload)+len(c.Key) || m.Cost() < int64(m.Size()+core.MessageOverhead) {
		t.Fatalf("size %d and cost %d of a payload of %d and a key of %d", m.Size(), m.Cost(), len(c.Payload), len(c.Key))
	}
}
