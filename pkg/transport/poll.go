package transport

import (
	"bytes"
	"iter"
	"math"

	"github.com/podmq/podmq/pkg/core"
)

// maxPollID is how long a poll-id may be.
const maxPollID = core.MaxNameLen

// polling is the memory of polls.
type polling struct {
	req     core.PollRequest
	batch   core.Batch
	encoder batchEncoder
	used    bool
}

const (
	// keepDeliveries is how many deliveries' memory an idle consumer may keep.
	keepDeliveries = 64
	// keepReceipts does it for the receipts of a call.
	keepReceipts = 16
)

// reset lets go of all messages. A consumer that is busy keeps its memory; one
// whose batches are small or empty keeps little, as it may be parked for long.
func (p *polling) reset() {
	if !p.used {
		return
	}
	p.used = false
	if n := cap(p.batch.Deliveries); n > keepDeliveries && len(p.batch.Deliveries) < n/8 {
		p.batch = core.Batch{}
	}
	p.batch.Reset()
	clear(p.encoder.blocks)
	p.encoder.blocks = p.encoder.blocks[:0]
	if cap(p.encoder.blocks) > keepDeliveries {
		p.encoder.blocks = nil
	}
	p.req.Acks = trimReceipts(p.req.Acks)
	p.req.PollID = ""
}

func trimReceipts(rs []core.Receipt) []core.Receipt {
	if cap(rs) > keepReceipts {
		return nil
	}
	return rs[:0]
}

// pollFormat is how a poll wants its answer.
type pollFormat struct {
	raw, frames, asBase64 bool
}

// poll hands out a batch.
func (k *call) poll() (r response, err error) {
	p := &k.polling
	p.used = true
	format, err := k.pollRequest(&p.req)
	if err != nil {
		return r, err
	}
	if err := k.beforeWait(p.req.Wait); err != nil {
		return r, err
	}
	if err := k.server.engine.Poll(k.conn, k.topic, k.group, &p.req, &p.batch); err != nil {
		return r, err
	}
	k.batched = len(p.batch.Deliveries) > 0
	e := &p.encoder
	*e = batchEncoder{batch: &p.batch, asBase64: format.asBase64, blocks: e.blocks}
	switch {
	case format.raw:
		return k.rawBatch(&p.batch) // the payload is written from where it lies
	case format.frames:
		return k.frameBatch(e)
	}
	return k.jsonBatch(e)
}

func (k *call) pollRequest(req *core.PollRequest) (f pollFormat, err error) {
	q := &k.query
	if req.Wait, err = q.wait(core.DefaultPollWait); err != nil {
		return f, err
	}
	n, err := q.integer("max", core.DefaultPollMax, 1, core.MaxPollMessages)
	if err != nil {
		return f, err
	}
	req.Max = int(n)
	if n, err = q.size("max-bytes", core.DefaultPollBytes, core.MaxPollBytes); err != nil {
		return f, err
	}
	req.MaxBytes = int(n)
	if n, err = q.integer("partition", core.AnyPartition, 0, math.MaxInt32); err != nil {
		return f, err
	}
	req.Partition = int(n)
	req.Member = k.memberOr(req.Member)
	if id, given := q.get("poll-id"); given {
		if len(id) == 0 || len(id) > maxPollID {
			return f, core.Invalid("poll-id", "cannot use a poll-id of %d bytes: it has 1 to %d", len(id), maxPollID)
		}
		req.PollID = string(id)
	}
	if req.Acks, err = appendReceipts(req.Acks[:0], "ack", q.all("ack")); err != nil {
		return f, err
	}
	return k.pollFormat(req)
}

func (k *call) pollFormat(req *core.PollRequest) (f pollFormat, err error) {
	encoding, err := k.query.oneOf("encoding", "auto", "base64")
	if err != nil {
		return f, err
	}
	format, raw := k.query.get("format")
	if raw && string(format) != "raw" {
		return f, core.Invalid("format", "cannot use format=%.40q: it is raw, or left out", format)
	}
	f = pollFormat{
		raw:      raw,
		frames:   bytes.Contains(k.header.Peek("Accept"), []byte(framesType)),
		asBase64: encoding == "base64",
	}
	if f.raw {
		req.Max = 1
	}
	return f, nil
}

// memberOr returns the member that the query names; old is the one before.
func (k *call) memberOr(old string) string {
	if name, given := k.query.get("member"); given {
		return same(old, name)
	}
	return core.DefaultMember
}

// appendReceipts reads receipts, reusing the memory of those that stood in to.
func appendReceipts(to []core.Receipt, name string, texts iter.Seq[[]byte]) ([]core.Receipt, error) {
	for text := range texts {
		if len(to) < cap(to) {
			to = to[:len(to)+1]
		} else {
			to = append(to, core.Receipt{})
		}
		if err := to[len(to)-1].UnmarshalText(text); err != nil {
			return to, receiptError(name, err)
		}
	}
	return to, nil
}

// admitAnswer takes the budget for a poll's answer of at most n bytes.
func (k *call) admitAnswer(n int64) error {
	if n <= freeOfBudget {
		return nil
	}
	return k.admit(k.server.answers, n, k.polling.req.Wait)
}

// jsonBatch answers a poll in JSON.
func (k *call) jsonBatch(e *batchEncoder) (response, error) {
	b, err := e.append(k.newText(), k.admitAnswer)
	if err != nil {
		return response{}, err
	}
	if len(k.polling.req.Acks) > 0 {
		b = appendStale(append(b, `,"stale":`...), e.batch.Stale)
	}
	if len(e.batch.Deliveries) == 0 {
		b = appendBlocked(append(b, `,"blocked":`...), e.batch.Blocked)
	}
	return k.json(statusOK, append(b, '}')), nil
}

// frameBatch answers a poll in frames.
func (k *call) frameBatch(e *batchEncoder) (r response, err error) {
	if r.lines, err = k.batchLines(e.batch); err != nil {
		return r, err
	}
	r.lines = appendIntLine(r.lines, "Podmq-Count", int64(len(e.batch.Deliveries)))
	k.lines = r.lines
	if err := k.admitAnswer(e.framesBound()); err != nil {
		return r, err
	}
	if r.body, err = e.frames(k.newText()); err != nil {
		return r, err
	}
	k.text.b, r.blocks = r.body, e.blocks
	r.status, r.contentType = statusOK, framesType
	return r, nil
}

// rawBatch answers a poll with the payload of its one message.
func (k *call) rawBatch(b *core.Batch) (r response, err error) {
	if r.lines, err = k.batchLines(b); err != nil {
		return r, err
	}
	r.status = statusNoContent
	if len(b.Deliveries) > 0 {
		d := &b.Deliveries[0]
		r.status = statusOK
		r.lines, r.contentType = rawLines(r.lines, d)
		r.body = d.Payload()
	}
	k.lines = r.lines
	return r, nil
}

// headItems is how many items of a list can stand in a head, which clients
// bound; JSON has all.
const headItems = 64

// batchLines are the lines of a head for what is of the whole batch.
func (k *call) batchLines(b *core.Batch) (lines []byte, err error) {
	lines = k.lines[:0]
	if len(b.Deliveries) > 0 {
		lines = append(lines, "Podmq-Receipt: "...)
		if lines, err = b.Receipt.AppendText(lines); err != nil {
			return lines, err
		}
		lines = append(lines, "\r\n"...)
		lines = appendIntLine(lines, "Podmq-Lease-Ms", b.Lease.Milliseconds())
	}
	lines = appendIntLine(lines, "Podmq-Generation", b.Generation)
	if n := len(b.Blocked); n > 0 && len(b.Deliveries) == 0 {
		lines = append(lines, "Podmq-Blocked: "...)
		lines = append(appendBlocked(lines, b.Blocked[:min(n, headItems)]), "\r\n"...)
	}
	if n := len(b.Stale); n > 0 {
		lines = append(lines, "Podmq-Stale: "...)
		lines = append(appendStale(lines, b.Stale[:min(n, headItems)]), "\r\n"...)
	}
	if n := len(b.Skipped); n > 0 {
		lines = append(lines, "Podmq-Skipped: "...)
		lines = append(appendSkipped(lines, b.Skipped[:min(n, headItems)]), "\r\n"...)
	}
	return lines, nil
}
