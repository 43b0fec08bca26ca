package core_test

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/podmq/podmq/pkg/core"
)

var receipts = map[string]core.Receipt{
	"small": {Epoch: 1, Topic: 2, Group: 3, Generation: 4, Member: 5, Delivery: 6, Ranges: []core.Range{{Partition: 0, From: 0, To: 1}}},
	"zero ids": {Ranges: []core.Range{
		{Partition: core.MaxPartitions - 1, From: 7, To: 107}, {Partition: 3, From: math.MaxInt64 - 1, To: math.MaxInt64},
	}},
	"the largest": {
		Epoch: math.MaxUint64, Topic: math.MaxUint64, Group: math.MaxUint64, Generation: math.MaxInt64,
		Member: math.MaxUint64, Delivery: math.MaxUint64, Ranges: largestRanges(),
	},
}

func largestRanges() (all []core.Range) {
	for i := range core.MaxReceiptRanges {
		all = append(all, core.Range{Partition: core.MaxPartitions - 1 - i, From: math.MaxInt64 - core.MaxPollMessages, To: math.MaxInt64})
	}
	return all
}

func TestReceiptComesBackFromItsText(t *testing.T) {
	for name, r := range receipts {
		t.Run(name, func(t *testing.T) {
			text := r.String()
			if len(text) > core.MaxReceiptLen {
				t.Errorf("the text has %d bytes, the most is %d", len(text), core.MaxReceiptLen)
			}
			if strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
				t.Errorf("%q is not URL-safe", text)
			}
			var got core.Receipt
			if err := got.UnmarshalText([]byte(text)); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, r) {
				t.Errorf("read %+v, want %+v", got, r)
			}
			appended, err := r.AppendText([]byte("receipt="))
			if err != nil || string(appended) != "receipt="+text {
				t.Errorf("AppendText gave %q, %v", appended, err)
			}
		})
	}
}

func TestReceiptReadsOverAnOlderOne(t *testing.T) {
	r := core.Receipt{Epoch: 9, Generation: 9, Ranges: make([]core.Range, 5, 8)}
	small := receipts["small"]
	if err := r.UnmarshalText([]byte(small.String())); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(r, small) || cap(r.Ranges) != 8 {
		t.Errorf("read %+v with room for %d ranges, want %+v in the slice that was there", r, cap(r.Ranges), small)
	}
}

func TestReceiptOfOneMessageIsThatOfItsBatch(t *testing.T) {
	batch := core.Receipt{Epoch: 1, Topic: 2, Group: 3, Generation: 4, Member: 5, Delivery: 6, Ranges: []core.Range{{0, 0, 5}, {2, 7, 9}}}
	one := batch.Message(2, 8)
	want := batch
	want.Ranges = []core.Range{{Partition: 2, From: 8, To: 9}}
	if !reflect.DeepEqual(one, want) {
		t.Errorf("the message's receipt is %+v, want %+v", one, want)
	}
	if len(batch.Ranges) != 2 {
		t.Errorf("it changed the batch's, %+v", batch)
	}
}

func TestReceiptThatWasMistypedIsRefused(t *testing.T) {
	small := receipts["small"]
	text := small.String()
	var r core.Receipt
	for i := range text {
		for _, c := range []byte("A_z0") {
			if text[i] == c {
				continue
			}
			wrong := text[:i] + string(c) + text[i+1:]
			if err := r.UnmarshalText([]byte(wrong)); err == nil {
				t.Errorf("%q is taken though %q was given", wrong, text)
			}
		}
		if err := r.UnmarshalText([]byte(text[:i])); err == nil {
			t.Errorf("the first %d of %d characters are taken", i, len(text))
		} else {
			wantRefused(t, err, core.CodeInvalidRequest, "receipt")
		}
	}
	for _, wrong := range []string{text + "A", text + "=", " " + text, text + text, strings.Repeat("A", core.MaxReceiptLen+1)} {
		if err := r.UnmarshalText([]byte(wrong)); err == nil {
			t.Errorf("%q is taken though %q was given", wrong, text)
		}
	}
}

// sealed is a receipt's text with a checksum that fits, whatever it says.
func sealed(body []byte) string {
	sum := crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli))
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint32(body, sum))
}

func TestReceiptThatSaysNonsenseIsRefusedThoughItsSumFits(t *testing.T) {
	body := func(version byte, numbers ...uint64) []byte {
		b := binary.BigEndian.AppendUint64([]byte{version}, 1)
		for _, n := range numbers {
			b = binary.AppendUvarint(b, n)
		}
		return b
	}
	if err := new(core.Receipt).UnmarshalText([]byte(sealed(body(1, 1, 1, 1, 1, 1, 0, 0, 1)))); err != nil {
		t.Fatalf("one that makes sense is refused: %v", err)
	}
	for name, b := range map[string][]byte{
		"no range":                     body(1, 1, 1, 1, 1, 1),
		"a later version":              body(2, 1, 1, 1, 1, 1, 0, 0, 1),
		"half a range":                 body(1, 1, 1, 1, 1, 1, 0, 0),
		"an empty range":               body(1, 1, 1, 1, 1, 1, 0, 0, 0),
		"a partition beyond the bound": body(1, 1, 1, 1, 1, 1, core.MaxPartitions, 0, 1),
		"a partition of 64 bits":       body(1, 1, 1, 1, 1, 1, math.MaxUint64, 0, 1),
		"a negative offset":            body(1, 1, 1, 1, 1, 1, 0, 1<<63, 1),
		"a range that runs over":       body(1, 1, 1, 1, 1, 1, 0, math.MaxInt64, 1),
		"a range that runs backwards":  body(1, 1, 1, 1, 1, 1, 0, 5, math.MaxUint64),
		"a number that never ends":     append(body(1, 1, 1, 1, 1, 1, 0, 0), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff),
	} {
		r := core.Receipt{Epoch: 77}
		if err := r.UnmarshalText([]byte(sealed(b))); err == nil {
			t.Errorf("%s is taken: %+v", name, r)
		}
		if r.Epoch != 77 {
			t.Errorf("%s: a refused text changed the receipt to %+v", name, r)
		}
	}
}

// FuzzReceipt reads anything as a receipt, as it comes and with a checksum that
// fits. What is taken must make sense and come back from its own text.
func FuzzReceipt(f *testing.F) {
	for _, r := range receipts {
		raw, err := base64.RawURLEncoding.DecodeString(r.String())
		if err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(r.String()))
		f.Add(raw[:len(raw)-4])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, text := range []string{string(b), sealed(b)} {
			var r, again core.Receipt
			if err := r.UnmarshalText([]byte(text)); err != nil {
				if core.CodeOf(err) != core.CodeInvalidRequest {
					t.Fatalf("%q: %v", text, err)
				}
				continue
			}
			if len(r.Ranges) == 0 {
				t.Fatalf("%q covers nothing: %+v", text, r)
			}
			for _, g := range r.Ranges {
				if g.Partition < 0 || g.Partition >= core.MaxPartitions || g.From < 0 || g.To <= g.From {
					t.Fatalf("%q covers %+v", text, g)
				}
			}
			if err := again.UnmarshalText([]byte(r.String())); err != nil || !reflect.DeepEqual(again, r) {
				t.Fatalf("%+v comes back as %+v, %v", r, again, err)
			}
		}
	})
}
