package stream

import (
	"time"

	"pgregory.net/rapid"

	"github.com/podmq/podmq/pkg/core"
)

// A driver does to one partition what an engine does: it keeps the time, numbers
// deliveries, applies what the cursors decide, and writes all of it down.
type driver struct {
	part       *Partition
	capacity   int
	now        Instant
	deliveries uint64
	groups     uint64
	readers    []*reader
	journal    []step
	held       int64 // cost of what was appended, less of what was freed
}

// A reader is a group with a cursor in the partition.
type reader struct {
	id     uint64
	typ    core.GroupType
	cursor Cursor
}

// A delivery is what one poll got, as its receipt says.
type delivery struct {
	of     *reader
	number uint64
	member uint64
	runs   []Run
}

// A step is one thing that happened to a partition, as a journal would keep it.
type step struct {
	messages []core.Message // appended at `at`, if any
	at       Instant
	added    uint64 // this group came,
	typ      core.GroupType
	start    core.Start
	removed  uint64 // or went
	change   Change // or its cursor changed
}

func newDriver(capacity int) *driver {
	return &driver{part: NewPartition(capacity, new(Chunks)), capacity: capacity}
}

// replayed is a new partition to which the same things happened.
func (d *driver) replayed() *Partition {
	p := NewPartition(d.capacity, new(Chunks))
	for _, s := range d.journal {
		switch {
		case len(s.messages) > 0:
			p.Append(s.messages, int64(s.at), s.at)
		case s.added != 0:
			p.AddGroup(s.added, s.typ, s.start)
		case s.removed != 0:
			p.RemoveGroup(s.removed)
		default:
			p.Replay(s.change)
		}
	}
	return p
}

// publish appends messages and returns the offset of the first.
func (d *driver) publish(ms ...core.Message) int64 {
	d.journal = append(d.journal, step{messages: ms, at: d.now})
	if len(d.part.cursors) > 0 {
		for _, m := range ms {
			d.held += m.Cost()
		}
	}
	return d.part.Append(ms, int64(d.now), d.now)
}

func (d *driver) addGroup(typ core.GroupType, start core.Start) *reader {
	d.groups++
	d.journal = append(d.journal, step{added: d.groups, typ: typ, start: start})
	r := &reader{d.groups, typ, d.part.AddGroup(d.groups, typ, start)}
	d.readers = append(d.readers, r)
	return r
}

func (d *driver) removeGroup(i int) {
	id := d.readers[i].id
	d.journal = append(d.journal, step{removed: id})
	d.held -= d.part.RemoveGroup(id)
	d.readers = append(d.readers[:i:i], d.readers[i+1:]...)
}

func (d *driver) apply(r *reader, changes ...Change) (ended int) {
	for _, ch := range changes {
		ch.Group = r.id
		d.journal = append(d.journal, step{change: ch})
		n, freed := d.part.Apply(r.cursor, ch)
		ended += n
		d.held -= freed
	}
	return ended
}

// poll grants what want leaves, nil for nothing.
func (d *driver) poll(r *reader, member uint64, want Want, lease time.Duration) *delivery {
	runs := r.cursor.Offer(nil, d.part.Log(), &want, d.now)
	if len(runs) == 0 {
		return nil
	}
	d.deliveries++
	for _, run := range runs {
		d.apply(r, Change{Kind: Granted, Delivery: d.deliveries, Member: member, From: run.From, To: run.To, At: d.now, Until: d.now.Add(lease)})
	}
	return &delivery{r, d.deliveries, member, runs}
}

// ack settles as done what still counts of some runs of a delivery.
func (d *driver) ack(got *delivery, runs ...Run) (parts []Part, ended int) {
	for _, run := range runs {
		judged := got.of.cursor.Judge(nil, got.number, run)
		parts = append(parts, judged...)
		for _, part := range judged {
			if part.Verdict == Current || part.Verdict == Late {
				ended += d.apply(got.of, Change{Kind: Acked, Member: part.Member, From: part.From, To: part.To, At: d.now})
			}
		}
	}
	return parts, ended
}

// end returns what is out of a delivery, as one of Nack and Unsent says.
func (d *driver) end(got *delivery, how func(dst []Change, part Part) []Change) (parts []Part, ended int) {
	for _, run := range got.runs {
		judged := got.of.cursor.Judge(nil, got.number, run)
		parts = append(parts, judged...)
		for _, part := range judged {
			if part.Verdict == Current {
				ended += d.apply(got.of, how(nil, part)...)
			}
		}
	}
	return parts, ended
}

// nack says that an offset failed, the first that is out where it is negative.
func (d *driver) nack(got *delivery, failed int64, delay core.Opt[time.Duration]) ([]Part, int) {
	return d.end(got, func(dst []Change, part Part) []Change {
		if failed < 0 {
			failed = part.From
		}
		return got.of.cursor.Nack(dst, part, failed, delay, d.now)
	})
}

func (d *driver) unsent(got *delivery) ([]Part, int) {
	return d.end(got, func(dst []Change, part Part) []Change { return got.of.cursor.Unsent(dst, part, d.now) })
}

func (d *driver) extend(got *delivery, by time.Duration) ([]Part, int) {
	return d.end(got, func(dst []Change, part Part) []Change {
		return append(dst, Change{Kind: Extended, Delivery: got.number, Member: part.Member, From: part.From, To: part.To, At: d.now, Until: d.now.Add(by)})
	})
}

func (d *driver) left(r *reader, member uint64) (ended int) {
	return d.apply(r, r.cursor.Left(nil, member, d.now)...)
}

func (d *driver) fence(r *reader) { d.apply(r, Change{Kind: Fenced, At: d.now}) }

// expire lets time do to a group what it has to do by now.
func (d *driver) expire(r *reader) (changes []Change, ended int) {
	changes = r.cursor.Expired(nil, d.now)
	return changes, d.apply(r, changes...)
}

// message makes one of that many bytes of payload.
func message(tb rapid.TB, size int) core.Message {
	return textMessage(tb, string(make([]byte, size)))
}

func textMessage(tb rapid.TB, payload string) core.Message {
	m, err := core.NewMessage(&core.Content{Payload: []byte(payload)}, core.DefaultMessageBytes)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// all is a Want that nothing in a test exceeds.
func all() Want { return Want{Messages: 1 << 20, Bytes: 1 << 30, Runs: 1 << 20} }
