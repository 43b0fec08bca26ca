package stream

import (
	"pgregory.net/rapid"
)

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
			if part.Verdict == Current && (part.Member != f.member || part.Granted != f.granted || part.Until != f.until) {
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
