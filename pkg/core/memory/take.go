package memory

import (
	"slices"

	"github.com/podmq/podmq/pkg/core"
	"github.com/podmq/podmq/pkg/core/stream"
)

// take grants to the member what there is for it now, from the partition after
// the one served last on, and reports whether there was anything.
func (g *group) take(m *member, req *core.PollRequest, batch *core.Batch) bool {
	t := g.topic
	want := &t.scratch.want
	*want = stream.Want{Messages: req.Max, Bytes: req.MaxBytes, Runs: core.MaxReceiptRanges}
	n, served := len(m.partitions), &m.served
	if g.queue() {
		n, served = len(g.tracks), &g.served
	}
	first := 0
	for first < n && g.nth(m, first) <= *served {
		first++
	}
	drawn := 0
	for i := 0; i < n && drawn < core.MaxPollPartitions && !want.Full(); i++ {
		tr := &g.tracks[g.nth(m, (first+i)%n)]
		if req.Partition != core.AnyPartition && tr.partition != req.Partition || !g.queue() && !g.share.Holds(m.id, tr.partition) {
			continue
		}
		log := t.partitions[tr.partition].Log()
		runs := tr.cursor.Offer(t.scratch.runs[:0], log, want, t.now)
		t.scratch.runs = runs
		if len(runs) == 0 {
			continue
		}
		if batch.Receipt.Delivery == 0 {
			g.begin(m, batch)
		}
		for _, run := range runs {
			g.grant(m, tr, run, batch)
		}
		*served = tr.partition
		drawn++
	}
	if drawn == 0 {
		return false
	}
	m.remember(req.PollID, &batch.Receipt)
	return true
}

// nth is the n-th partition that a member may be served from.
func (g *group) nth(m *member, n int) int {
	if g.queue() {
		return n
	}
	return m.partitions[n]
}

// begin starts a delivery.
func (g *group) begin(m *member, batch *core.Batch) {
	t := g.topic
	batch.Lease = g.leaseTime()
	batch.Generation = g.share.Generation()
	batch.Receipt = core.Receipt{
		Epoch:      t.epoch,
		Topic:      t.incarnation,
		Group:      g.incarnation,
		Generation: batch.Generation,
		Member:     uint64(m.id),
		Delivery:   t.deliveries.Add(1),
		Ranges:     batch.Receipt.Ranges[:0],
	}
}

// grant hands a run of a partition out.
func (g *group) grant(m *member, tr *track, run stream.Run, batch *core.Batch) {
	t := g.topic
	g.fill(batch, tr, run)
	g.count.delivered += uint64(run.Len())
	batch.Receipt.Ranges = append(batch.Receipt.Ranges, core.Range{Partition: tr.partition, From: run.From, To: run.To})
	granted := 1
	if g.queue() {
		granted = int(run.Len())
	}
	m.out += granted
	tr.holder = m.name
	t.leases += granted
	t.apply(tr, stream.Change{Kind: stream.Granted, Delivery: batch.Receipt.Delivery, Member: uint64(m.id),
		From: run.From, To: run.To, At: t.now, Until: t.now.Add(batch.Lease)})
}

// fill appends a run to the batch and counts what it means to the group.
func (g *group) fill(batch *core.Batch, tr *track, run stream.Run) {
	log, now, fresh := g.topic.partitions[tr.partition].Log(), g.topic.now, tr.cursor.Fresh()
	var published stream.Instant
	together := 0 // messages not seen before that were published at that moment
	to := slices.Grow(batch.Deliveries, int(run.Len()))
	for offset := run.From; offset < run.To; {
		span := log.Span(offset, run.To)
		for i := range span {
			entry := &span[i]
			failures, seen, ended := 0, false, stream.None
			if offset < fresh {
				failures, seen, ended = tr.cursor.History(offset)
			}
			switch {
			case seen:
				g.count.redeliver(ended)
			case entry.At == published:
				together++
			default:
				g.count.latency.ObserveN(now.Sub(published), together)
				published, together = entry.At, 1
			}
			to = append(to, core.Delivery{Message: entry.Message, Partition: tr.partition, Offset: offset, Attempt: failures + 1})
			offset++
		}
	}
	batch.Deliveries = to
	g.count.latency.ObserveN(now.Sub(published), together)
}

func (c *groupCounts) redeliver(cause stream.Cause) {
	switch cause {
	case stream.Nacked:
		c.redelivered.Nack++
	case stream.Expired:
		c.redelivered.Lease++
	case stream.Left:
		c.redelivered.Leave++
	}
}
