package memory

import (
	"strings"

	"github.com/podmq/podmq/pkg/core"
	"github.com/podmq/podmq/pkg/core/stream"
)

// A replay is a batch that was asked for with a poll id.
type replay struct {
	pollID  string
	receipt core.Receipt
	again   int // answers that hold it beside the first
}

// replaysKept is how many a member can have: one for each of the polls that a
// client with several connections under one name may have under way.
const replaysKept = 8

func (m *member) remember(pollID string, receipt *core.Receipt) {
	if pollID == "" {
		return
	}
	if len(m.replays) == replaysKept {
		m.replays = m.replays[:copy(m.replays, m.replays[1:])]
	}
	kept := *receipt
	kept.Ranges = append([]core.Range(nil), receipt.Ranges...)
	m.replays = append(m.replays, replay{pollID: strings.Clone(pollID), receipt: kept})
}

// replay fills batch with what the member got for the same poll id, as far as
// that is unsettled, and reports whether there was anything. A poll that is
// still parked under that id ends empty: its client has come again.
func (g *group) replay(m *member, req *core.PollRequest, batch *core.Batch) bool {
	if req.PollID == "" {
		return false
	}
	g.supersede(m, req.PollID)
	for i := range m.replays {
		if m.replays[i].pollID != req.PollID {
			continue
		}
		kept := m.replays[i].receipt
		if g.refill(&kept, batch) {
			m.replays[i].again++
			return true
		}
		m.replays = append(m.replays[:i], m.replays[i+1:]...)
		return false
	}
	return false
}

// answeredAgain reports whether a batch of which an answer was lost stands in
// another one: then it is with its member, and must not be handed out again.
func (m *member) answeredAgain(delivery uint64) bool {
	for i := range m.replays {
		if r := &m.replays[i]; r.receipt.Delivery == delivery && r.again > 0 {
			r.again--
			return true
		}
	}
	return false
}

func (g *group) supersede(m *member, pollID string) {
	waiting := &m.waiting
	if g.queue() {
		waiting = &g.waiting
	}
	for at := waiting.first; at != nil; {
		w := at.who
		at = at.next
		if w.member == m && w.req.PollID == pollID {
			g.finishPoll(w, nil)
		}
	}
}

// refill hands what is still out of a receipt out once more, as it was.
func (g *group) refill(receipt *core.Receipt, batch *core.Batch) bool {
	t := g.topic
	for _, r := range receipt.Ranges {
		tr := &g.tracks[r.Partition]
		parts := tr.cursor.Judge(t.scratch.parts[:0], receipt.Delivery, stream.Run{From: r.From, To: r.To})
		t.scratch.parts = parts
		for _, part := range parts {
			if part.Verdict != stream.Current {
				continue
			}
			if left := part.Until.Sub(t.now); batch.Lease == 0 || left < batch.Lease {
				batch.Lease = left
			}
			log := t.partitions[tr.partition].Log()
			for offset := part.From; offset < part.To; offset++ {
				failures, _, _ := tr.cursor.History(offset)
				batch.Deliveries = append(batch.Deliveries, core.Delivery{
					Message: log.At(offset).Message, Partition: tr.partition, Offset: offset, Attempt: failures + 1})
			}
		}
	}
	if len(batch.Deliveries) == 0 {
		return false
	}
	ranges := append(batch.Receipt.Ranges[:0], receipt.Ranges...)
	batch.Receipt = *receipt
	batch.Receipt.Ranges = ranges
	return true
}
