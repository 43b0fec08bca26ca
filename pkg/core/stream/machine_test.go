package stream

import (
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/podmq/podmq/pkg/core"
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

// reader is one of the groups, nil without any. What cannot be done is passed
// over: a fuzzer would have rapid skip for ever.
func (m *machine) reader(t *rapid.T) *reader {
	if len(m.readers) == 0 {
		return nil
	}
	return rapid.SampledFrom(m.readers).Draw(t, "group")
}

// receipt is one of the deliveries so far, old ones included; nil without any.
func (m *machine) receipt(t *rapid.T) *delivery {
	if len(m.got) == 0 {
		return nil
	}
	recent := m.got[max(0, len(m.got)-3):]
	if rapid.IntRange(0, 3).Draw(t, "old") == 0 {
		recent = m.got
	}
	return rapid.SampledFrom(recent).Draw(t, "receipt")
}

func (m *machine) group(t *rapid.T) {
	if len(m.readers) == 3 {
		return
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
	if r == nil {
		return
	}
	m.removeGroup(slices.Index(m.readers, r))
	delete(m.twins, r)
	m.got = slices.DeleteFunc(m.got, func(d *delivery) bool { return d.of == r })
}

func (m *machine) append(t *rapid.T) {
	if m.part.Room() == 0 {
		return
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
	if r == nil {
		return
	}
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
	if got == nil {
		return
	}
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

func (m *machine) nackSome(t *rapid.T) {
	got := m.receipt(t)
	if got == nil {
		return
	}
	w, failed, delay := m.twins[got.of], int64(-1), core.Opt[time.Duration]{}
	if rapid.Bool().Draw(t, "named") {
		run := rapid.SampledFrom(got.runs).Draw(t, "run")
		failed = rapid.Int64Range(run.From, run.To-1).Draw(t, "failed")
		if w.verdict(got.number, run, failed) != Current || failed < w.committed() {
			return // it is not out
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
	if got == nil {
		return
	}
	w := m.twins[got.of]
	before := m.leases(w)
	_, ended := m.unsent(got)
	w.unsent(got.number, m.now)
	m.compareEnded(t, ended, before-m.leases(w))
}

func (m *machine) extendOne(t *rapid.T) {
	if got := m.receipt(t); got != nil {
		by := lease(t)
		m.extend(got, by)
		m.twins[got.of].extend(got.number, m.now.Add(by))
	}
}

func (m *machine) leave(t *rapid.T) {
	r, member := m.reader(t), rapid.Uint64Range(1, 3).Draw(t, "member")
	if r == nil {
		return
	}
	w := m.twins[r]
	before := m.leases(w)
	ended := m.left(r, member)
	w.left(member, m.now)
	m.compareEnded(t, ended, before-m.leases(w))
}

func (m *machine) handOver(t *rapid.T) {
	r := m.reader(t)
	if w := m.twins[r]; r != nil && w.ordered && w.inFlight() == 0 {
		m.fence(r)
		w.fence()
	}
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
// compared, but the partition must hold together when it is acked.
func (m *machine) forge(t *rapid.T) {
	r := m.reader(t)
	if r == nil {
		return
	}
	number := rapid.Uint64Range(0, m.deliveries+1).Draw(t, "delivery")
	from := rapid.Int64Range(0, m.part.Log().End()+3).Draw(t, "from")
	to := rapid.Int64Range(from+1, from+20).Draw(t, "to")
	if rapid.IntRange(0, 3).Draw(t, "huge") == 0 {
		to = 1 << 62
	}
	parts, _ := m.ack(&delivery{of: r, number: number}, Run{from, to})
	for _, part := range parts {
		if part.Len() <= 0 || part.From < from || part.To > to {
			t.Fatalf("the judgement of [%d, %d) has [%d, %d)", from, to, part.From, part.To)
		}
		if part.Verdict != Current && part.Verdict != Late {
			continue
		}
		if part.To > m.part.Log().End() {
			t.Fatalf("[%d, %d) counts, the log ends at %d", part.From, part.To, m.part.Log().End())
		}
		m.twins[r].ack(part.Run)
	}
}

// live takes some 120 random steps, or as many as -rapid.steps says by 4.
func (m *machine) live(t *rapid.T) {
	for range 4 {
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
