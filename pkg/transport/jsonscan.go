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

// odd has it set for each byte of w that is no ASCII, a control character, a quote
// or a backslash. Beyond the first of them it may be wrong; the other bits say
// nothing. With one bit turned a quote comes right after the control characters,
// so that both are one comparison (D. Lemire, "Detect control characters, quotes and
// backslashes efficiently using SWAR", 2025).
func odd(w uint64) uint64 {
	const quoteAsSpace = ('"' ^ ' ') * ones
	return w | (w ^ quoteAsSpace - (' '+1)*ones) | (w ^ '\\'*ones - ones)
}

func word(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

// plainASCII returns how many bytes of s, from its start on, are ASCII but neither
// a control character, nor a quote, nor a backslash. Most text is nothing else.
func plainASCII(s []byte) int {
	i := 0
	for ; i+32 <= len(s); i += 32 {
		b := s[i : i+32]
		if (odd(word(b))|odd(word(b[8:]))|odd(word(b[16:]))|odd(word(b[24:])))&highs != 0 {
			break
		}
	}
	for ; i+8 <= len(s); i += 8 {
		if m := odd(word(s[i:])) & highs; m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
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
		w := word(s[i:])
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
