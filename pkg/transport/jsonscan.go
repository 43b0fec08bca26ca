package transport

import (
	"encoding/binary"
	"math/bits"
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

// plain returns how many bytes of s, from its start on, are neither a control
// character, nor a quote, nor a backslash, nor also, which is one of these or
// no ASCII.
func plain(s []byte, also byte) int {
	i := 0
	for ; i+8 <= len(s); i += 8 {
		w := binary.LittleEndian.Uint64(s[i:])
		// Most text is ASCII, and for that less is enough: no byte has its high bit
		// set, nor by what is taken away from it.
		if (w|(w-' '*ones)|(w^'"'*ones-ones)|(w^'\\'*ones-ones))&highs == 0 {
			continue
		}
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
