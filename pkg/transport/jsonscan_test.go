package transport

import (
	"bytes"
	"testing"
)

// Each byte, at each place of what is passed over in one step.
func TestPlainASCIIEndsAtAnyOtherByte(t *testing.T) {
	t.Parallel()
	for c := range 256 {
		for at := range 80 {
			s := bytes.Repeat([]byte{'x'}, 80)
			s[at] = byte(c)
			want := len(s)
			if c < ' ' || c == '"' || c == '\\' || c >= 0x80 {
				want = at
				copy(s[at+1:], "\"\x1f\\\x80") // what follows does not count
			}
			if got := plainASCII(s); got != want {
				t.Fatalf("plainASCII(%q) is %d, want %d", s, got, want)
			}
		}
	}
}

func FuzzPlain(f *testing.F) {
	f.Add([]byte("the quick brown fox"), byte(0xe2))
	f.Add([]byte("12345678\x1f\""), byte('\\'))
	f.Add([]byte("\x80\x81\xff~ !#[]\x7f"), byte('"'))
	f.Fuzz(func(t *testing.T, s []byte, also byte) {
		if also >= ' ' && also < 0x80 && also != '\\' {
			also = '"'
		}
		want := len(s)
		for i, c := range s {
			if c < ' ' || c == '"' || c == '\\' || c == also {
				want = i
				break
			}
		}
		if got := plain(s, also); got != want {
			t.Errorf("plain(%q, %#x) is %d, want %d", s, also, got, want)
		}
		want = len(s)
		for i, c := range s {
			if c < ' ' || c == '"' || c == '\\' || c >= 0x80 {
				want = i
				break
			}
		}
		if got := plainASCII(s); got != want {
			t.Errorf("plainASCII(%q) is %d, want %d", s, got, want)
		}
	})
}
