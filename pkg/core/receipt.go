package core

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
)

// A Receipt proves one delivery. It is fenced by the broker's epoch, the
// incarnations of topic and group, and the number of the delivery, which is
// never used twice in an epoch. Generation is information.
//
// Its text is base64url of the following, every integer but the first and last
// a uvarint:
//
//	version u8 · epoch u64 · topic · group · generation · member · delivery ·
//	for each range: partition, from, to-from · CRC-32C of all that u32
//
// The checksum is for the user who copied half of it, not against forgery: the
// pod is the trust boundary.
type Receipt struct {
	Epoch      uint64
	Topic      uint64 // incarnation
	Group      uint64 // incarnation
	Generation int64
	Member     uint64
	Delivery   uint64
	// Ranges are what was handed out. An ordered batch has one a partition, a
	// queue batch as many runs as it needs, up to what fits into MaxReceiptLen.
	Ranges []Range
}

const (
	receiptVersion = 1
	// receiptFixed is the most that all but the ranges take: version, epoch,
	// five uvarints, checksum.
	receiptFixed = 1 + 8 + 5*binary.MaxVarintLen64 + 4
	// maxRangeLen is the most that a range takes: a partition below 2^14, an
	// offset below 2^63, and a length of MaxPollMessages, below 2^14, at most.
	maxRangeLen = 2 + 9 + 2
)

// MaxReceiptRanges is how many ranges always fit into a receipt.
const MaxReceiptRanges = (MaxReceiptLen*3/4 - receiptFixed) / maxRangeLen

// castagnoli is a table of constants.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// AppendText appends the receipt's text to dst.
func (r *Receipt) AppendText(dst []byte) ([]byte, error) {
	var buf [MaxReceiptLen]byte
	b := append(buf[:0], receiptVersion)
	b = binary.BigEndian.AppendUint64(b, r.Epoch)
	for _, v := range [...]uint64{r.Topic, r.Group, uint64(r.Generation), r.Member, r.Delivery} {
		b = binary.AppendUvarint(b, v)
	}
	for _, g := range r.Ranges {
		b = binary.AppendUvarint(b, uint64(g.Partition))
		b = binary.AppendUvarint(b, uint64(g.From))
		b = binary.AppendUvarint(b, uint64(g.To-g.From))
	}
	b = binary.BigEndian.AppendUint32(b, checksum(b))
	return base64.RawURLEncoding.AppendEncode(dst, b), nil
}

// String returns the receipt's text.
func (r *Receipt) String() string {
	b, _ := r.AppendText(nil)
	return string(b)
}

// Message returns the receipt of one message of the batch, which a queue group
// gives beside the batch's own.
func (r *Receipt) Message(partition int, offset int64) Receipt {
	one := *r
	one.Ranges = []Range{{partition, offset, offset + 1}}
	return one
}

// UnmarshalText reads a receipt's text into r, reusing its ranges. What is no
// receipt at all is CodeInvalidRequest; whether it still counts, an engine says.
func (r *Receipt) UnmarshalText(text []byte) error {
	if len(text) == 0 || len(text) > MaxReceiptLen {
		return badReceipt(text)
	}
	var buf [MaxReceiptLen]byte
	n, err := base64.RawURLEncoding.Strict().Decode(buf[:], text)
	if err != nil || n < 1+8+5+4 || buf[0] != receiptVersion {
		return badReceipt(text)
	}
	b, sum := buf[:n-4], binary.BigEndian.Uint32(buf[n-4:n])
	if checksum(b) != sum {
		return badReceipt(text)
	}
	in := Receipt{Epoch: binary.BigEndian.Uint64(b[1:]), Ranges: r.Ranges[:0]}
	b = b[9:]
	ok := true
	next := func() uint64 {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			ok = false
			return 0
		}
		b = b[n:]
		return v
	}
	in.Topic, in.Group, in.Generation, in.Member, in.Delivery = next(), next(), int64(next()), next(), next()
	for ok && len(b) > 0 {
		g := Range{Partition: int(next()), From: int64(next())}
		g.To = g.From + int64(next())
		ok = ok && g.Partition >= 0 && g.Partition < MaxPartitions && g.From >= 0 && g.To > g.From && g.To-g.From <= MaxPollMessages
		in.Ranges = append(in.Ranges, g)
	}
	if !ok || len(in.Ranges) == 0 {
		return badReceipt(text)
	}
	*r = in
	return nil
}

// checksum is CRC-32C. That of hash/crc32 goes through a variable, for which the
// compiler would put every receipt's bytes on the heap, a receipt a poll.
func checksum(b []byte) uint32 {
	crc := ^uint32(0)
	for _, c := range b {
		crc = castagnoli[byte(crc)^c] ^ crc>>8
	}
	return ^crc
}

func badReceipt(text []byte) error {
	return Invalid("receipt", "cannot read receipt %.40q: it is not one that a poll gave, or not all of it; pass it on as it came, URL-safe as it is", text)
}
