package loadgen

import "bytes"

// A payload is text, so that it travels as it is in JSON as well: the number of
// the message and the time when it was due, as 16 digits of 4 bits each, and
// then filling. A digit is a byte of '0' to '?': no table, no branch.

// MinPayload is the least that a payload has.
const MinPayload = 32

var filling = bytes.Repeat([]byte("podmq-"), 1<<16/6+1)

func appendPayload(b []byte, number uint64, due int64, size int) []byte {
	b = appendDigits(b, number)
	b = appendDigits(b, uint64(due))
	for n := size - MinPayload; n > 0; n -= len(filling) {
		b = append(b, filling[:min(n, len(filling))]...)
	}
	return b
}

func readNumber(payload []byte) uint64 { return readDigits(payload[:16]) }

func readDue(payload []byte) int64 { return int64(readDigits(payload[16:32])) }

func appendDigits(b []byte, v uint64) []byte {
	for shift := 60; shift >= 0; shift -= 4 {
		b = append(b, '0'|byte(v>>shift&0xF))
	}
	return b
}

func readDigits(b []byte) (v uint64) {
	for _, c := range b {
		v = v<<4 | uint64(c&0xF)
	}
	return v
}
