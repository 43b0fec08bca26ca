package memory

import (
	"context"
	"slices"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

// A publisher is one publish while it runs, and while it waits for room.
type publisher struct {
	req    *core.PublishRequest
	placed []core.Placement // one a message; Partition is AnyPartition until one is chosen
	only   int              // the one partition that all want, or AnyPartition
	keyed  []int            // otherwise: that of each message, AnyPartition for the choice by room
	cost   int64
	size   int
	ctx    context.Context

	everyone place[*publisher] // in topic.publishing while it waits
	turn     place[*publisher] // in partition.waiting or topic.floating
	arrival  uint64            // when it began to wait, as a number; 0: it does not
	blocked  refusal           // why it waits
	since    time.Duration     // on the topic's clock
	done     chan error        // one result, when it was waiting
	timer    *time.Timer
}

// A refusal says why a publish cannot be stored now.
type refusal struct {
	code      core.Code // "" for none
	partition int       // the full one
}

func newPublisher() *publisher {
	w := &publisher{done: make(chan error, 1), timer: newStoppedTimer()}
	w.everyone.who, w.turn.who = w, w
	return w
}

func newStoppedTimer() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

// Publish implements core.Engine.
func (b *Broker) Publish(ctx context.Context, topic string, req *core.PublishRequest, placed []core.Placement) ([]core.Placement, error) {
	t, err := b.find(topic)
	if err != nil {
		return placed, err
	}
	w := b.publishers.Get().(*publisher)
	defer func() {
		*w = publisher{placed: w.placed[:0], keyed: w.keyed[:0], done: w.done, timer: w.timer}
		w.everyone.who, w.turn.who = w, w
		b.publishers.Put(w)
	}()
	if err := t.plan(w, req); err != nil {
		return placed, err
	}
	w.ctx = ctx
	if err := t.publish(w); err != nil {
		return placed, err
	}
	return append(placed, w.placed...), nil
}

// plan checks a request and works out, without the lock, where its messages
// want to go.
func (t *topic) plan(w *publisher, req *core.PublishRequest) error {
	n := t.settings.Partitions
	switch {
	case len(req.Messages) == 0:
		return core.Errorf(core.CodeInvalidRequest, "cannot publish to %s: the batch has no messages", t.name)
	case len(req.Messages) > core.MaxBatchMessages:
		return core.Errorf(core.CodeTooLarge, "cannot publish %d messages to %s at once: the most is %d", len(req.Messages), t.name, core.MaxBatchMessages)
	case req.Wait < 0 || req.Wait > core.MaxWait:
		return core.Invalid("wait", "cannot wait %v for room: wait is 0 to %v", req.Wait, core.MaxWait)
	case req.Partition != core.AnyPartition && (req.Partition < 0 || req.Partition >= n):
		return unknownPartition(t.name, req.Partition, n)
	}
	w.req, w.only, w.cost, w.size = req, req.Partition, 0, 0
	if n == 1 {
		w.only = 0
	}
	w.placed = slices.Grow(w.placed[:0], len(req.Messages))[:len(req.Messages)]
	for i := range req.Messages {
		w.cost += req.Messages[i].Cost()
		w.size += req.Messages[i].Size()
	}
	if w.only == core.AnyPartition {
		w.key(n)
	}
	return t.fits(w)
}

// key chooses the partition of each message that has a key.
func (w *publisher) key(partitions int) {
	w.keyed = w.keyed[:0]
	same := true
	for i := range w.req.Messages {
		p := core.AnyPartition
		if m := &w.req.Messages[i]; m.HasKey() {
			p = core.PartitionFor(m.Key(), partitions)
		}
		w.keyed = append(w.keyed, p)
		same = same && p == w.keyed[0]
	}
	if same {
		w.only = w.keyed[0]
	}
}

// fits refuses what no amount of waiting could make room for.
func (t *topic) fits(w *publisher) error {
	n := len(w.req.Messages)
	most := t.settings.MaxBytes
	if most == 0 {
		most = t.budget.shared()
	}
	if w.cost > most {
		code := core.CodeTooLarge
		if n > 1 {
			code = core.CodeBatchExceedsCapacity
		}
		return core.Errorf(code, "cannot ever hold %d messages that cost %d bytes in topic %s: it can have %d; send less at once, or raise max-bytes or PODMQ_MAX_BYTES", n, w.cost, t.name, most).
			With("topic", t.name).With("bytes", w.cost).With("max_bytes", most)
	}
	if n <= t.settings.Capacity {
		return nil
	}
	worst, total := 0, t.settings.Capacity*t.settings.Partitions
	if w.only != core.AnyPartition {
		worst = n
	} else {
		counts := make([]int, t.settings.Partitions)
		for _, p := range w.keyed {
			if p != core.AnyPartition {
				counts[p]++
				worst = max(worst, counts[p])
			}
		}
	}
	if worst > t.settings.Capacity || n > total {
		return core.Errorf(core.CodeBatchExceedsCapacity, "cannot ever store %d messages at once in topic %s: a partition holds %d; send smaller batches or raise capacity", n, t.name, t.settings.Capacity).
			With("topic", t.name).With("messages", n).With("capacity", t.settings.Capacity)
	}
	return nil
}

// publish stores what w wants, now or when there is room.
func (t *topic) publish(w *publisher) error {
	waits, err := t.publishNow(w)
	if err != nil && core.CodeOf(err) == core.CodeMemoryFull {
		return t.nameHolder(err)
	}
	if !waits {
		return err
	}
	w.timer.Reset(w.req.Wait)
	defer w.timer.Stop()
	select {
	case err := <-w.done:
		return err
	case <-w.timer.C:
		return t.giveUpPublish(w, nil)
	case <-w.ctx.Done():
		return t.giveUpPublish(w, w.ctx.Err())
	}
}

func (t *topic) publishNow(w *publisher) (waits bool, err error) {
	if err := t.enter(); err != nil {
		return false, err
	}
	defer t.leave()
	why := t.tryPublish(w)
	if why.code == "" {
		return false, nil
	}
	switch {
	case w.req.Wait == 0:
		return false, t.refuse(w, why)
	case t.draining.Load():
		t.count.rejected[core.CodeDraining]++
		return false, draining()
	}
	t.park(w, why)
	return true, nil
}

// tryPublish stores all of w's messages, or says what stands in the way.
func (t *topic) tryPublish(w *publisher) refusal {
	why := t.choose(w)
	for _, p := range t.scratch.touched {
		p.planned = 0
	}
	if why.code != "" {
		return why
	}
	cost := w.cost
	if len(t.groups) == 0 {
		cost = 0 // nothing is kept for nobody
	}
	switch {
	case t.settings.MaxBytes > 0 && t.held.Load()+cost > t.settings.MaxBytes:
		return refusal{core.CodeTopicFull, w.placed[0].Partition}
	case t.settings.MaxBytes == 0 && cost > 0 && !t.budget.take(cost):
		return refusal{core.CodeMemoryFull, w.placed[0].Partition}
	}
	t.held.Add(cost)
	t.append(w)
	return refusal{}
}

// choose finds a partition with room for each message, first for those that can
// go to one only. It leaves what it touched in scratch.touched.
func (t *topic) choose(w *publisher) refusal {
	t.scratch.touched = t.scratch.touched[:0]
	put := func(i int, p *partition) {
		if p.planned == 0 {
			t.scratch.touched = append(t.scratch.touched, p)
		}
		p.planned++
		w.placed[i].Partition = p.index
	}
	open := func(p *partition) bool { return p.Room() > p.planned && !p.before(w) }
	if w.only != core.AnyPartition {
		p := t.partitions[w.only]
		if !open(p) || p.Room() < len(w.placed) {
			return refusal{core.CodePartitionFull, w.only}
		}
		for i := range w.placed {
			w.placed[i].Partition = w.only
		}
		t.scratch.touched = append(t.scratch.touched, p)
		return refusal{}
	}
	unkeyed := 0
	for i, p := range w.keyed {
		switch {
		case p == core.AnyPartition:
			unkeyed++
		case !open(t.partitions[p]):
			return refusal{core.CodePartitionFull, p}
		default:
			put(i, t.partitions[p])
		}
	}
	for i := 0; unkeyed > 0; i++ {
		if w.keyed[i] != core.AnyPartition {
			continue
		}
		unkeyed--
		p := t.nextOpen(open)
		if p == nil {
			return refusal{core.CodePartitionFull, t.nextUnkeyed}
		}
		put(i, p)
	}
	return refusal{}
}

// nextOpen goes round the partitions and returns the next that is open, nil if
// none is.
func (t *topic) nextOpen(open func(*partition) bool) *partition {
	for range t.partitions {
		p := t.partitions[t.nextUnkeyed]
		if t.nextUnkeyed++; t.nextUnkeyed == len(t.partitions) {
			t.nextUnkeyed = 0
		}
		if open(p) {
			return p
		}
	}
	return nil
}

func (t *topic) append(w *publisher) {
	unixNano := t.clock.unixNano(t.now)
	for from := 0; from < len(w.placed); {
		p, to := w.placed[from].Partition, from+1
		for to < len(w.placed) && w.placed[to].Partition == p {
			to++
		}
		first := t.partitions[p].Append(w.req.Messages[from:to], unixNano, t.now)
		for i := range w.placed[from:to] {
			w.placed[from+i].Offset = first + int64(i)
		}
		from = to
	}
	t.count.publishedBytes += uint64(w.size)
	t.count.published += uint64(len(w.req.Messages))
	if len(t.groups) == 0 {
		t.unheard(len(w.req.Messages))
		return
	}
	if t.parked == 0 {
		return
	}
	for _, p := range t.scratch.touched {
		for _, g := range t.inOrder {
			t.markReady(&g.tracks[p.index])
		}
	}
}
