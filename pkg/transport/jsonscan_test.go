package transport

import "testing"

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
