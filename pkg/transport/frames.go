package transport

import (
	"encoding/binary"

	"github.com/podmq/podmq/pkg/core"
)

// deliveryFixed is what stands before a delivery's receipt in an answer of
// frames: partition u32, offset u64, attempt u32, published i64, receipt length
// u16.
const deliveryFixed = 4 + 8 + 4 + 8 + 2

// framesBound is at most how large the answer's body becomes in frames.
func (e *batchEncoder) framesBound() (n int64) {
	n = int64(len(e.batch.Deliveries)) * (deliveryFixed + e.receiptBound())
	for i := range e.batch.Deliveries {
		n += int64(len(e.batch.Deliveries[i].Block()))
	}
	return n
}

// frames appends the batch's messages as frames, but for those that are large:
// e.blocks says where they belong.
func (e *batchEncoder) frames(b []byte) ([]byte, error) {
	for i := range e.batch.Deliveries {
		d := &e.batch.Deliveries[i]
		b = binary.BigEndian.AppendUint32(b, uint32(d.Partition))
		b = binary.BigEndian.AppendUint64(b, uint64(d.Offset))
		b = binary.BigEndian.AppendUint32(b, uint32(d.Attempt))
		b = binary.BigEndian.AppendUint64(b, uint64(d.PublishedAt().UnixNano()))
		b = append(b, 0, 0)
		if e.batch.Queue {
			from := len(b)
			var err error
			if b, err = e.receipt(b, d); err != nil {
				return b, err
			}
			binary.BigEndian.PutUint16(b[from-2:], uint16(len(b)-from))
		}
		if m := d.Block(); len(m) < vectorFrom {
			b = append(b, m...)
		} else {
			e.blocks = append(e.blocks, block{len(b), m})
		}
	}
	return b, nil
}

// readFrames cuts a body of frames into messages.
func readFrames(body []byte, maxMessage int, to []core.Message) ([]core.Message, error) {
	for len(body) > 0 {
		m, rest, err := core.ParseMessage(body, maxMessage)
		if err != nil {
			return to, inMessage(len(to), err)
		}
		if to, err = addMessage(to, m); err != nil {
			return to, err
		}
		body = rest
	}
	return to, nil
}
