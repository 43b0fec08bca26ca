package transport

import (
	"errors"
	"strconv"

	"github.com/podmq/podmq/pkg/core"
)

// settling is the memory of calls that settle.
type settling struct {
	acking   core.AckRequest
	receipts []core.Receipt
	cursors  []core.CursorPlace // of the answer
	member   string
}

func (s *settling) reset() { s.receipts = trimReceipts(s.receipts) }

// ack settles as done.
func (k *call) ack() (r response, err error) {
	s := &k.settling
	req := &s.acking
	*req = core.AckRequest{Buffer: s.cursors[:0]}
	if s.receipts, err = appendReceipts(s.receipts[:0], "receipt", k.query.all("receipt")); err != nil {
		return r, err
	}
	req.Receipts = s.receipts
	if req.Partition, err = optional[int](&k.query, "partition"); err != nil {
		return r, err
	}
	if req.Upto, err = optional[int64](&k.query, "upto"); err != nil {
		return r, err
	}
	if err := k.checkAck(req); err != nil {
		return r, err
	}
	if len(req.Receipts) == 0 {
		s.member = k.memberOr(s.member)
		req.Member = s.member
	}
	done, err := k.server.engine.Ack(k.conn, k.topic, k.group, req)
	s.cursors = done.Cursors[:0]
	return k.settled(done, err)
}

func (k *call) checkAck(req *core.AckRequest) error {
	_, member := k.query.get("member")
	switch n := len(req.Receipts); {
	case n == 0 && !req.Partition.Given && !req.Upto.Given:
		return core.Invalid("receipt", "cannot ack without saying what: give receipt, or partition and upto")
	case req.Upto.Given && !req.Partition.Given:
		return core.Invalid("partition", "cannot ack up to offset %d: give the partition as well", req.Upto.Value)
	case req.Partition.Given && !req.Upto.Given:
		return core.Invalid("upto", "cannot ack in partition %d: give upto as well, the last offset that is done", req.Partition.Value)
	case n > 1 && req.Upto.Given:
		return core.Invalid("receipt", "cannot ack %d receipts up to an offset: give one receipt", n)
	case n > 0 && member:
		return core.Invalid("member", "cannot use member beside a receipt, which knows its own")
	}
	return nil
}

// nack hands out again.
func (k *call) nack() (r response, err error) {
	req := core.NackRequest{}
	if err := k.oneReceipt(&req.Receipt); err != nil {
		return r, err
	}
	if req.Partition, err = optional[int](&k.query, "partition"); err != nil {
		return r, err
	}
	if req.Offset, err = optional[int64](&k.query, "offset"); err != nil {
		return r, err
	}
	if req.Partition.Given != req.Offset.Given {
		return r, core.Invalid("offset", "cannot nack with one of partition and offset: give both, or neither")
	}
	if req.Delay, err = k.query.duration("delay", core.MaxNackDelay); err != nil {
		return r, err
	}
	return k.settled(k.server.engine.Nack(k.conn, k.topic, k.group, &req))
}

// extend asks for a new lease.
func (k *call) extend() (r response, err error) {
	req := core.ExtendRequest{}
	if err := k.oneReceipt(&req.Receipt); err != nil {
		return r, err
	}
	if req.By, err = k.query.duration("by", core.MaxDuration); err != nil {
		return r, err
	}
	if req.By.Given && req.By.Value < core.MinDuration {
		return r, core.Invalid("by", "cannot extend by %v: the least is %v", req.By.Value, core.MinDuration)
	}
	return k.settled(k.server.engine.Extend(k.conn, k.topic, k.group, &req))
}

// oneReceipt reads the receipt that the call must have.
func (k *call) oneReceipt(to *core.Receipt) (err error) {
	s := &k.settling
	if s.receipts, err = appendReceipts(s.receipts[:0], "receipt", k.query.all("receipt")); err != nil {
		return err
	}
	if len(s.receipts) == 0 {
		return core.Invalid("receipt", "cannot %s without a receipt: give the one of the poll's answer", k.route.name)
	}
	*to = s.receipts[0]
	return nil
}

// receiptError names the parameter in which a receipt could not be read.
func receiptError(name string, err error) error {
	var e *core.Error
	if errors.As(err, &e) {
		for i := range e.Fields {
			if e.Fields[i].Name == "parameter" {
				e.Fields[i].Value = name
			}
		}
	}
	return err
}

// settled answers with what was touched.
func (k *call) settled(s core.Settled, err error) (response, error) {
	if err != nil {
		return response{}, err
	}
	b := append(k.newText(), `{"cursors":[`...)
	for i, c := range s.Cursors {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"partition":`...)
		b = strconv.AppendInt(b, int64(c.Partition), 10)
		b = append(b, `,"committed":`...)
		b = strconv.AppendInt(b, c.Committed, 10)
		b = append(b, `,"next":`...)
		b = strconv.AppendInt(b, c.Next, 10)
		b = append(b, '}')
	}
	b = append(b, `],"late":`...)
	b = strconv.AppendBool(b, s.Late)
	b = append(b, `,"stale":`...)
	b = appendStale(b, s.Stale)
	b = append(b, `,"lease_ms":`...)
	b = strconv.AppendInt(b, s.Lease.Milliseconds(), 10)
	return k.json(statusOK, append(b, '}')), nil
}
