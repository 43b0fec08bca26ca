package transport

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// What stands for itself in a JSON string is most of it, so it is passed over
// eight bytes at a time, by arithmetic on a word (Hacker's Delight, chapter 6).
const (
	ones  = 0x0101010101010101
	highs = 0x80 * ones
)

// zeros has the high bit of each byte of w set that is 0. Beyond the first of
// them it may be wrong.
func zeros(w uint64) uint64 { return (w - ones) &^ w & highs }

// below has it set for each byte of w that is less than n, which is at most
// 0x80. Beyond the first of them it may be wrong.
func below(w uint64, n uint64) uint64 { return (w - n*ones) &^ w & highs }

// odd is not 0 when a byte of w is no ASCII, a control character, a quote or a
// backslash: when it has its high bit set, or gets it by what is taken away.
func odd(w uint64) uint64 {
	return (w | (w - ' '*ones) | (w ^ '"'*ones - ones) | (w ^ '\\'*ones - ones)) & highs
}

// plainASCII returns how many bytes of s, from its start on, are ASCII but neither
// a control character, nor a quote, nor a backslash. Most text is nothing else.
func plainASCII(s []byte) int {
	i := 0
	for ; i+16 <= len(s) && odd(binary.LittleEndian.Uint64(s[i:]))|odd(binary.LittleEndian.Uint64(s[i+8:])) == 0; i += 16 {
	}
	for ; i < len(s) && ' ' <= s[i] && s[i] < utf8.RuneSelf && s[i] != '"' && s[i] != '\\'; i++ {
	}
	return i
}

// plain returns how many bytes of s, from its start on, are neither a control
// character, nor a quote, nor a backslash, nor also, which is one of these or
// no ASCII.
func plain(s []byte, also byte) int {
	i := plainASCII(s)
	for ; i+8 <= len(s); i += 8 {
		w := binary.LittleEndian.Uint64(s[i:])
		if m := below(w, ' ') | zeros(w^'"'*ones) | zeros(w^'\\'*ones) | zeros(w^uint64(also)*ones); m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
	}
	for ; i < len(s); i++ {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c == also {
			return i
		}
	}
	return i
}
