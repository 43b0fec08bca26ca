package stream

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/podmq/podmq/pkg/core"
	"pgregory.net/rapid"
)

// A machine drives a partition and a twin for each of its groups through the
// same random life, and compares all they say after every step.
type machine struct {
	*driver
	twins    map[*reader]*twin
	got      []*delivery // newest last
	messages []core.Message
}

func newMachine(t *rapid.T) *machine {
	m := &machine{driver: newDriver(rapid.IntRange(1, 12).Draw(t, "capacity")), twins: map[*reader]*twin{}}
	for size := range 8 {
		m.messages = append(m.messages, message(t, size*size))
	}
	m.group(t)
	return m
}

func (m *machine) reader(t *rapid.T) *reader {
	if len(m.readers) == 0 {
		t.Skip("no group")
	}
	return rapid.SampledFrom(m.readers).Draw(t, "group")
}

// receipt is one of the deliveries so far, old ones included.
func (m *machine) receipt(t *rapid.T) *delivery {
	if len(m.got) == 0 {
		t.Skip("nothing was handed out")
	}
	recent := m.got[max(0, len(m.got)-3):]
	if rapid.IntRange(0, 3).Draw(t, "old") == 0 {
		recent = m.got
	}
	return rapid.SampledFrom(recent).Draw(t, "receipt")
}

func (m *machine) group(t *rapid.T) {
	if len(m.readers) == 3 {
		t.Skip("enough groups")
	}
	typ := rapid.SampledFrom([]core.GroupType{core.Ordered, core.Queue}).Draw(t, "type")
	start := rapid.SampledFrom([]core.Start{core.Latest, core.Earliest}).Draw(t, "start")
	w := &twin{ordered: typ == core.Ordered, first: m.part.Log().End()}
	if start == core.Earliest {
		w.first = m.part.Log().Start()
	}
	w.fates = make([]fate, m.part.Log().End()-w.first)
	m.twins[m.addGroup(typ, start)] = w
}

func (m *machine) remove(t *rapid.T) {
	r := m.reader(t)
	m.removeGroup(slices.Index(m.readers, r))
	delete(m.twins, r)
	m.got = slices.DeleteFunc(m.got, func(d *delivery) bool { return d.of == r })
}

func (m *machine) append(t *rapid.T) {
	if m.part.Room() == 0 {
		t.Skip("full")
	}
	n := rapid.IntRange(1, min(6, m.part.Room())).Draw(t, "n")
	ms := rapid.SliceOfN(rapid.SampledFrom(m.messages), n, n).Draw(t, "messages")
	want := m.part.Log().End()
	if got := m.publish(ms...); got != want {
		t.Fatalf("appended at %d, want %d", got, want)
	}
	for _, w := range m.twins {
		w.fates = append(w.fates, make([]fate, n)...)
	}
}

func (m *machine) pollSome(t *rapid.T) {
	r := m.reader(t)
	w := m.twins[r]
	want := Want{
		Messages: rapid.IntRange(1, 6).Draw(t, "max"),
		Bytes:    rapid.IntRange(1, 120).Draw(t, "bytes"),
		Runs:     rapid.IntRange(1, 3).Draw(t, "runs"),
	}
	m.checkOffer(t, r, want)
	got := m.poll(r, rapid.Uint64Range(1, 3).Draw(t, "member"), want, lease(t))
	if got == nil {
		return
	}
	for _, run := range got.runs {
		part := r.cursor.Judge(nil, got.number, Run{run.From, run.From + 1})[0]
		w.grant(got.number, got.member, run, m.now, part.Until)
	}
	m.got = append(m.got, got)
}

func lease(t *rapid.T) time.Duration {
	return time.Duration(rapid.IntRange(1, 8).Draw(t, "lease")) * 100 * time.Millisecond
}

func (m *machine) ackSome(t *rapid.T) {
	got := m.receipt(t)
	w, runs := m.twins[got.of], slices.Clone(got.runs)
	if rapid.Bool().Draw(t, "part of it") {
		run := rapid.SampledFrom(got.runs).Draw(t, "run")
		offset := rapid.Int64Range(run.From, run.To-1).Draw(t, "offset")
		if runs = []Run{{run.From, offset + 1}}; !w.ordered {
			runs[0].From = offset
		}
	}
	before := m.leases(w)
	settled := m.verdicts(got, runs)
	parts, ended := m.ack(got, runs...)
	m.compareVerdicts(t, got, parts, maps.Clone(settled))
	for offset, v := range settled {
		if v == Current || v == Late {
			w.ack(Run{offset, offset + 1})
		}
	}
	m.compareEnded(t, ended, before-m.leases(w))
}

// verdicts is what the twin says of each offset of some runs.
func (m *machine) verdicts(got *delivery, runs []Run) map[int64]Verdict {
	all, w := map[int64]Verdict{}, m.twins[got.of]
	for _, run := range runs {
		for offset := run.From; offset < run.To; offset++ {
			all[offset] = w.verdict(got.number, run, offset)
		}
	}
	return all
}

// compareVerdicts takes the offsets out of want that parts judge, and holds the
// rest against what an ordered group leaves out: what is below committed.
func (m *machine) compareVerdicts(t *rapid.T, got *delivery, parts []Part, want map[int64]Verdict) {
	w := m.twins[got.of]
	for _, part := range parts {
		for offset := part.From; offset < part.To; offset++ {
			if part.Verdict != want[offset] {
				t.Fatalf("delivery %d, offset %d: verdict %d, want %d", got.number, offset, part.Verdict, want[offset])
			}
			f := w.at(offset)
			if part.Verdict == Current && (part.Member != f.member || part.Granted != f.granted) {
				t.Fatalf("delivery %d, offset %d: %+v, want %+v", got.number, offset, part, *f)
			}
			delete(want, offset)
		}
	}
	for offset, v := range want {
		if !w.ordered || offset >= w.committed() {
			t.Fatalf("delivery %d, offset %d: no verdict, want %d", got.number, offset, v)
		}
	}
}

// leases is how many a group has out: one for each message of a queue group.
func (m *machine) leases(w *twin) int {
	if w.ordered {
		return int(min(1, w.inFlight()))
	}
	return int(w.inFlight())
}

func (m *machine) compareEnded(t *rapid.T, got, want int) {
	if got != want {
		t.Fatalf("%d leases ended, want %d", got, want)
	}
}

func (m *machine) nackSome(t *rapid.T) {
	got := m.receipt(t)
	w, failed, delay := m.twins[got.of], int64(-1), core.Opt[time.Duration]{}
	if rapid.Bool().Draw(t, "named") {
		run := rapid.SampledFrom(got.runs).Draw(t, "run")
		failed = rapid.Int64Range(run.From, run.To-1).Draw(t, "failed")
		if w.verdict(got.number, run, failed) != Current || failed < w.committed() {
			t.Skip("refused: it is not out")
		}
	}
	if rapid.Bool().Draw(t, "delayed") {
		delay = core.Some(time.Duration(rapid.IntRange(0, 9).Draw(t, "delay")) * 100 * time.Millisecond)
	}
	before := m.leases(w)
	_, ended := m.nack(got, failed, delay)
	w.nack(got.number, got.runs, failed, delay, m.now)
	m.compareEnded(t, ended, before-m.leases(w))
}

func (m *machine) unsentOne(t *rapid.T) {
	got := m.receipt(t)
	w := m.twins[got.of]
	before := m.leases(w)
	_, ended := m.unsent(got)
	w.unsent(got.number, m.now)
	m.compareEnded(t, ended, before-m.leases(w))
}

func (m *machine) extendOne(t *rapid.T) {
	got, by := m.receipt(t), lease(t)
	m.extend(got, by)
	m.twins[got.of].extend(got.number, m.now.Add(by))
}

func (m *machine) leave(t *rapid.T) {
	r, member := m.reader(t), rapid.Uint64Range(1, 3).Draw(t, "member")
	w := m.twins[r]
	before := m.leases(w)
	ended := m.left(r, member)
	w.left(member, m.now)
	m.compareEnded(t, ended, before-m.leases(w))
}

func (m *machine) handOver(t *rapid.T) {
	r := m.reader(t)
	w := m.twins[r]
	if !w.ordered || w.inFlight() > 0 {
		t.Skip("not to be handed over")
	}
	m.fence(r)
	w.fence()
}

// wait lets some time pass, or all of it until something is due.
func (m *machine) wait(t *rapid.T) {
	d := time.Duration(rapid.IntRange(0, 9).Draw(t, "pass")) * 100 * time.Millisecond
	if len(m.readers) > 0 && rapid.Bool().Draw(t, "until due") {
		r := m.reader(t)
		if due := r.cursor.Due(m.now); due != Never {
			d = due.Sub(m.now)
		}
	}
	m.now = m.now.Add(d)
	for _, r := range m.readers {
		w := m.twins[r]
		before := m.leases(w)
		changes, ended := m.expire(r)
		for _, ch := range changes {
			w.each(ch.From, ch.To, func(offset int64, f *fate) {
				if f.stage != out || f.until > m.now || f.member != ch.Member {
					t.Fatalf("group %d: %+v at %d, offset %d is %+v", r.id, ch, m.now, offset, *f)
				}
			})
		}
		w.expire(m.now)
		m.compareEnded(t, ended, before-m.leases(w))
	}
}

// forge presents what no poll gave: any run, any delivery. Its worth is not
// compared, but the partition must hold together whatever it is.
func (m *machine) forge(t *rapid.T) {
	r := m.reader(t)
	number := rapid.Uint64Range(0, m.deliveries+1).Draw(t, "delivery")
	from := rapid.Int64Range(0, m.part.Log().End()+3).Draw(t, "from")
	to := rapid.Int64Range(from+1, from+20).Draw(t, "to")
	if rapid.IntRange(0, 3).Draw(t, "huge") == 0 {
		to = 1 << 62
	}
	for _, part := range r.cursor.Judge(nil, number, Run{from, to}) {
		if part.Len() <= 0 || part.From < from || part.To > to {
			t.Fatalf("the judgement of [%d, %d) has [%d, %d)", from, to, part.From, part.To)
		}
		if (part.Verdict == Current || part.Verdict == Late) && part.To > m.part.Log().End() {
			t.Fatalf("[%d, %d) counts, the log ends at %d", part.From, part.To, m.part.Log().End())
		}
	}
}

func (m *machine) compare(t *rapid.T) {
	if err := check(m.part); err != nil {
		t.Fatal(err)
	}
	if m.held != m.part.Log().Bytes() {
		t.Fatalf("%d bytes were appended and not freed, the log has %d", m.held, m.part.Log().Bytes())
	}
	for _, r := range m.readers {
		w, c := m.twins[r], r.cursor
		if c.Committed() != w.committed() || c.Next() != w.next() || c.InFlight() != w.inFlight() || c.Unacked(w.end()) != w.unacked() {
			t.Fatalf("group %d: committed %d next %d in flight %d unacked %d, want %d %d %d %d", r.id,
				c.Committed(), c.Next(), c.InFlight(), c.Unacked(w.end()), w.committed(), w.next(), w.inFlight(), w.unacked())
		}
		if got, want := c.Available(w.end(), m.now), len(w.available(m.now)) > 0; got != want {
			t.Fatalf("group %d: available is %v, want %v", r.id, got, want)
		}
		if got, want := c.Due(m.now), w.due(m.now); got != want {
			t.Fatalf("group %d: due at %d, want %d", r.id, got, want)
		}
		if got, want := c.Fresh(), w.neverHanded(); got != want {
			t.Fatalf("group %d: fresh from %d on, want %d", r.id, got, want)
		}
		m.compareLease(t, r)
		w.each(w.committed(), w.end(), func(offset int64, f *fate) {
			failures, seen, ended := c.History(offset)
			if failures != f.failures {
				t.Fatalf("group %d, offset %d: failed %d times, want %d", r.id, offset, failures, f.failures)
			}
			if f.stage != out && f.stage != done && (seen != (f.ended != None) || ended != f.ended) {
				t.Fatalf("group %d, offset %d: seen %v, ended by %d, want %d", r.id, offset, seen, ended, f.ended)
			}
		})
	}
}

func (m *machine) compareLease(t *rapid.T, r *reader) {
	w := m.twins[r]
	var want fate
	if w.ordered && w.inFlight() > 0 {
		want = *w.at(w.committed())
	}
	if member, until := r.cursor.Lease(); member != want.member || until != want.until {
		t.Fatalf("group %d: member %d has a lease until %d, want %d until %d", r.id, member, until, want.member, want.until)
	}
}

// checkOffer holds an offer against what it promises: only what is available, no
// more than is wanted, a suspect alone, and as much as possible.
func (m *machine) checkOffer(t *rapid.T, r *reader, want Want) {
	w, left := m.twins[r], want
	runs := r.cursor.Offer(nil, m.part.Log(), &left, m.now)
	free := w.available(m.now)
	messages, bytes, suspect := 0, 0, false
	for i, run := range runs {
		if run.Len() <= 0 || i > 0 && run.From < runs[i-1].To {
			t.Fatalf("offered %v", runs)
		}
		for offset := run.From; offset < run.To; offset++ {
			if !free.has(offset) {
				t.Fatalf("offered %v, available is %v", runs, free)
			}
			messages++
			bytes += m.part.Log().At(offset).Size()
			suspect = suspect || w.at(offset).failures >= 2
		}
	}
	switch {
	case messages == 0 && len(free) > 0:
		t.Fatalf("offered nothing of %v", free)
	case messages > want.Messages || len(runs) > want.Runs || messages > 1 && (bytes > want.Bytes || suspect):
		t.Fatalf("offered %v, %d bytes, a suspect: %v; wanted %+v", runs, bytes, suspect, want)
	case messages != want.Messages-left.Messages || bytes != want.Bytes-left.Bytes || len(runs) != want.Runs-left.Runs:
		t.Fatalf("offered %v, %d bytes, of %+v, and %+v is left", runs, bytes, want, left)
	}
	if suspect || messages == want.Messages || len(runs) == want.Runs {
		return
	}
	// What comes next did not fit, and nothing after it was offered.
	offered := int64(0)
	for _, run := range free {
		for offset := run.From; offset < run.To; offset++ {
			if offered++; offered <= int64(messages) {
				continue
			}
			if m.part.Log().At(offset).Size() <= want.Bytes-bytes && w.at(offset).failures < 2 {
				t.Fatalf("offered %v of %v with %+v left, and not %d", runs, free, left, offset)
			}
			if !left.Closed {
				t.Fatalf("offered %v of %v, %d does not fit, and the batch is open: %+v", runs, free, offset, left)
			}
			return
		}
	}
}

// live takes some 100 random steps, or as many as -rapid.steps says by 3.
func (m *machine) live(t *rapid.T) {
	for range 3 {
		t.Repeat(m.actions())
	}
}

func (m *machine) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"": m.compare,
		// Those that carry the load have several names, to come more often.
		"append 1": m.append, "append 2": m.append, "append 3": m.append,
		"poll 1": m.pollSome, "poll 2": m.pollSome, "poll 3": m.pollSome, "poll 4": m.pollSome,
		"ack 1": m.ackSome, "ack 2": m.ackSome, "ack 3": m.ackSome,
		"nack 1": m.nackSome, "nack 2": m.nackSome,
		"wait 1": m.wait, "wait 2": m.wait,
		"unsent": m.unsentOne, "extend": m.extendOne, "leave": m.leave, "fence": m.handOver,
		"forge": m.forge, "add group": m.group, "remove group": m.remove,
	}
}

// G4, G6, G8, G9, G12, G18 and G22, as far as one partition decides them.
func TestPartitionDoesWhatItsSimpleTwinDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { newMachine(t).live(t) })
}

func FuzzPartition(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) { newMachine(t).live(t) }))
}

// What a journal must rely on: a partition is what happened to it.
func TestPartitionIsTheSameWhenItsChangesAreAppliedAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(t)
		m.live(t)
		again := m.replayed()
		if err := check(again); err != nil {
			t.Fatal(err)
		}
		if got, want := snapshot(again, m.now), snapshot(m.part, m.now); got != want {
			t.Fatalf("applied again:\n%s\nwant\n%s", got, want)
		}
	})
}
