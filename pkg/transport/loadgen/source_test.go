package loadgen

import (
	"testing"
	"time"
)

const ms = int64(time.Millisecond)

func TestLatenciesCountFromWhenAMessageWasDue(t *testing.T) {
	t.Parallel()
	h := newHistogram()
	s := NewSource(NewTally(time.Second, 0, 0), 0, 1, 32, 100, h) // due at 0, 10 ms, 20 ms, …
	send := func(now int64) {
		t.Helper()
		if yes, _ := s.Next(now); !yes {
			t.Fatalf("nothing to send at %d", now)
		}
		s.AppendPayload(nil)
		s.Sent()
	}
	send(0)
	if yes, again := s.Next(5 * ms); yes || again != Never {
		t.Fatal("sends while it waits for an answer")
	}
	// The broker stalls for 95 ms: the nine that were due meanwhile are late, each
	// by what is left of the stall.
	s.Stored(95 * ms)
	for range 9 {
		send(95 * ms)
		s.Stored(95 * ms)
	}
	if yes, again := s.Next(95 * ms); yes || again != 100*ms {
		t.Fatalf("the next is due at %d, want %d", again, 100*ms)
	}
	if h.TotalCount() != 10 {
		t.Fatalf("%d latencies", h.TotalCount())
	}
	for i, want := range []int64{5, 15, 25, 35, 45, 55, 65, 75, 85, 95} {
		got := h.ValueAtQuantile(float64(i+1) * 10)
		if off := got - want*ms; off < -want*ms/50 || off > want*ms/50 {
			t.Errorf("latency %d is %v, want %d ms", i, time.Duration(got), want)
		}
	}
}

func TestWithoutARateLatenciesCountFromSending(t *testing.T) {
	t.Parallel()
	h := newHistogram()
	s := NewSource(NewTally(time.Second, 0, 0), 0, 1, 32, 0, h)
	for _, at := range []int64{0, 50 * ms, 51 * ms} {
		if yes, _ := s.Next(at); !yes {
			t.Fatal("nothing to send")
		}
		s.Stored(at + ms)
	}
	if h.TotalCount() != 3 || h.Max() > 2*ms {
		t.Errorf("%d latencies, the longest %v", h.TotalCount(), time.Duration(h.Max()))
	}
}

func TestASourcePausesWhileTooMuchIsOnItsWay(t *testing.T) {
	t.Parallel()
	tally := NewTally(time.Second, 2, 10)
	s := NewSource(tally, 0, 10, 32, 0, newHistogram())
	if yes, _ := s.Next(0); !yes {
		t.Fatal("nothing to send")
	}
	s.Stored(0)
	if yes, again := s.Next(0); yes || again != Soon {
		t.Fatal("ten are on their way, and it does not pause")
	}
	tally.delivered.Add(19)
	if yes, _ := s.Next(0); yes {
		t.Fatal("one group still waits for the last, and it does not pause")
	}
	tally.delivered.Add(1)
	if yes, _ := s.Next(0); !yes {
		t.Fatal("all was delivered, and it pauses")
	}
}

func TestASourceEndsWithItsRun(t *testing.T) {
	t.Parallel()
	tally := NewTally(time.Second, 0, 0)
	s := NewSource(tally, 0, 1, 32, 0, newHistogram())
	if tally.Over() {
		t.Fatal("over before it began")
	}
	if yes, again := s.Next(int64(time.Second)); yes || again != Never || !tally.Over() {
		t.Errorf("sends after the end")
	}
}

func TestALostOrDoubledMessageIsFound(t *testing.T) {
	t.Parallel()
	for name, deliver := range map[string]func(k *Sink, a, b []byte) error{
		"one lost": func(k *Sink, a, _ []byte) error { return k.Got(0, a) },
		"one too many": func(k *Sink, a, b []byte) error {
			return firstOf(k.Got(0, a), k.Got(0, b), k.Got(0, b))
		},
		"one for another": func(k *Sink, a, _ []byte) error { return firstOf(k.Got(0, a), k.Got(0, a)) },
	} {
		tally := NewTally(time.Second, 1, 0)
		s := NewSource(tally, 3, 2, 32, 0, newHistogram())
		s.Next(0)
		a := s.AppendPayload(nil)
		b := s.AppendPayload(nil)
		s.Sent()
		s.Stored(0)
		k := NewSink(tally, nil)
		if err := deliver(k, a, b); err != nil {
			t.Fatal(err)
		}
		k.Heard(1)
		if tally.Check() == nil {
			t.Errorf("%s: not found", name)
		}
	}
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestAForeignMessageIsRefused(t *testing.T) {
	t.Parallel()
	if err := NewSink(NewTally(0, 1, 0), nil).Got(0, []byte("short")); err == nil {
		t.Error("no error")
	}
}

func TestAPayloadSaysItsNumberAndTime(t *testing.T) {
	t.Parallel()
	for _, size := range []int{MinPayload, 100, 300_000} {
		const number, due = 0xFEDC_BA98_7654_3210, int64(1)<<62 + 5
		b := appendPayload([]byte("before"), number, due, size)[len("before"):]
		if len(b) != size || readNumber(b) != number || readDue(b) != due {
			t.Errorf("size %d: %d bytes, number %x, due %d", size, len(b), readNumber(b), readDue(b))
		}
		for _, c := range b {
			if c < 0x20 || c >= 0x7F || c == '"' || c == '\\' {
				t.Fatalf("%q cannot stand in JSON as it is", c)
			}
		}
	}
}
