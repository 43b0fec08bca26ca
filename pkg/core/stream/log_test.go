package stream

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/podmq/podmq/pkg/core"
)

// A logTwin is a log kept the obvious way.
type logTwin struct {
	start int64
	held  []Entry
}

func (w *logTwin) compare(tb rapid.TB, l *Log) {
	if l.Start() != w.start || l.End() != w.start+int64(len(w.held)) {
		tb.Fatalf("the log is [%d, %d), want [%d, %d)", l.Start(), l.End(), w.start, w.start+int64(len(w.held)))
	}
	var bytes int64
	for i, m := range w.held {
		bytes += m.Cost()
		if got := l.At(w.start + int64(i)); !slices.Equal(got.Block(), m.Block()) || got.At != m.At || !got.PublishedAt().Equal(m.PublishedAt()) {
			tb.Fatalf("offset %d is %q at %d, want %q at %d", w.start+int64(i), got.Block(), got.At, m.Block(), m.At)
		}
	}
	if l.Bytes() != bytes {
		tb.Fatalf("the log has %d bytes, want %d", l.Bytes(), bytes)
	}
	if err := l.check(); err != nil {
		tb.Fatal(err)
	}
}

func TestLogIsASliceThatGrowsAndIsCut(t *testing.T) {
	var sizes []core.Message
	for size := range 5 {
		sizes = append(sizes, message(t, size))
	}
	rapid.Check(t, func(t *rapid.T) {
		l, w, now := Log{shared: new(Chunks)}, logTwin{}, Instant(0)
		end := func() int64 { return w.start + int64(len(w.held)) }
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				n := rapid.IntRange(1, 2*chunkLen).Draw(t, "n")
				ms := rapid.SliceOfN(rapid.SampledFrom(sizes), n, n).Draw(t, "messages")
				now++
				if got := l.append(ms, int64(now), now); got != end() {
					t.Fatalf("appended at %d, want %d", got, end())
				}
				for _, m := range ms {
					w.held = append(w.held, Entry{m.Published(int64(now)), now})
				}
			},
			"trim": func(t *rapid.T) {
				to := rapid.Int64Range(w.start, end()).Draw(t, "to")
				var want int64
				for _, m := range w.held[:to-w.start] {
					want += m.Cost()
				}
				if freed := l.trim(to); freed != want {
					t.Fatalf("trimming to %d freed %d bytes, want %d", to, freed, want)
				}
				w.start, w.held = to, w.held[to-w.start:]
			},
			"skip": func(t *rapid.T) {
				if len(w.held) > 0 {
					t.Skip("something is held")
				}
				n := rapid.IntRange(1, 2*chunkLen).Draw(t, "n")
				if got := l.skip(n); got != w.start {
					t.Fatalf("skipped from %d, want %d", got, w.start)
				}
				w.start += int64(n)
			},
			"span": func(t *rapid.T) {
				if len(w.held) == 0 {
					t.Skip("nothing is held")
				}
				from := rapid.Int64Range(w.start, end()-1).Draw(t, "from")
				to := rapid.Int64Range(from+1, end()).Draw(t, "to")
				at := from
				for at < to {
					span := l.Span(at, to)
					if len(span) == 0 || &span[0] != l.At(at) || &span[len(span)-1] != l.At(at+int64(len(span))-1) {
						t.Fatalf("a span of %d entries from %d is not those of the log", len(span), at)
					}
					at += int64(len(span))
				}
				if at != to {
					t.Fatalf("spans from %d on end at %d, want %d", from, at, to)
				}
			},
			"": func(t *rapid.T) { w.compare(t, &l) },
		})
	})
}

// What is trimmed must not stay in memory, neither in the log nor in the chunks
// that wait to be used again.
func TestLogHoldsNothingOfWhatWasTrimmed(t *testing.T) {
	kept := new(Chunks)
	l := Log{shared: kept}
	l.append(slices.Repeat([]core.Message{message(t, 1)}, 100*chunkLen), 0, 0)
	l.trim(50*chunkLen + 5)
	if got, want := l.chunks.len(), 50; got != want {
		t.Errorf("half of 100 chunks is trimmed and %d are held, want %d", got, want)
	}
	l.trim(l.End())
	if l.chunks.len() != 0 || l.Bytes() != 0 {
		t.Errorf("an empty log holds %d chunks and %d bytes", l.chunks.len(), l.Bytes())
	}
	if len(kept.free) != chunksKept {
		t.Errorf("%d chunks are kept for others, want %d", len(kept.free), chunksKept)
	}
	for _, c := range kept.free {
		for i := range c {
			if !c[i].IsZero() || c[i].At != 0 {
				t.Fatalf("a chunk that is kept holds on to entry %d", i)
			}
		}
	}
}

func TestLogsOfOneOwnerShareChunks(t *testing.T) {
	kept := new(Chunks)
	a, b := Log{shared: kept}, Log{shared: kept}
	m := []core.Message{message(t, 1)}
	a.append(m, 0, 0)
	was := a.At(0)
	a.trim(1)
	b.append(m, 0, 0)
	if b.At(0) != was || len(kept.free) != 0 {
		t.Errorf("a chunk that one log gave back was not used by the next, %d are kept", len(kept.free))
	}
}

func TestLogPanicsOutsideOfWhatItHolds(t *testing.T) {
	l := Log{shared: new(Chunks)}
	l.append(slices.Repeat([]core.Message{message(t, 1)}, 3), 0, 0)
	l.trim(1)
	for name, read := range map[string]func(){
		"below":              func() { l.At(0) },
		"above":              func() { l.At(3) },
		"span below":         func() { l.Span(0, 2) },
		"span above":         func() { l.Span(1, 4) },
		"empty span":         func() { l.Span(2, 2) },
		"skip over messages": func() { l.skip(1) },
	} {
		if !panics(read) {
			t.Errorf("%s: no panic", name)
		}
	}
}

func panics(f func()) (yes bool) {
	defer func() { yes = recover() != nil }()
	f()
	return false
}
