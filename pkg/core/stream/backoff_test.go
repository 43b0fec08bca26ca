package stream

import (
	"testing"
	"time"
)

func TestBackoffIsNoneThen100msDoublingTo30s(t *testing.T) {
	want := []time.Duration{
		0: 0, 1: 0, 2: 100 * time.Millisecond, 3: 200 * time.Millisecond, 4: 400 * time.Millisecond,
		5: 800 * time.Millisecond, 6: 1600 * time.Millisecond, 7: 3200 * time.Millisecond,
		8: 6400 * time.Millisecond, 9: 12800 * time.Millisecond, 10: 25600 * time.Millisecond,
		11: 30 * time.Second, 12: 30 * time.Second, 64: 30 * time.Second, 1 << 16: 30 * time.Second,
	}
	for failures, d := range want {
		if failures > 12 && d == 0 {
			continue // not in the table
		}
		if got := Backoff(failures); got != d {
			t.Errorf("after failure %d: %v, want %v", failures, got, d)
		}
	}
}

func TestFailuresAreCountedUpToABoundAndForgotten(t *testing.T) {
	var f failures
	f.add(12, 10)
	f.add(12, 10)
	f.add(15, 10)
	for offset, want := range map[int64]int{-1: 0, 9: 0, 10: 0, 12: 2, 15: 1, 16: 0, 1 << 62: 0} {
		if got := f.of(offset); got != want {
			t.Errorf("%d failed %d times, want %d", offset, got, want)
		}
	}
	f.forget(13)
	if f.of(12) != 0 || f.of(15) != 1 {
		t.Errorf("after 12 was acked: 12 failed %d times and 15 %d, want 0 and 1", f.of(12), f.of(15))
	}
	f.forget(1 << 62)
	f.forget(0)
	for range 1<<16 + 5 {
		f.add(20, 18)
	}
	if got := f.of(20); got != 1<<16-1 {
		t.Errorf("20 failed %d times, want the count to stop at %d", got, 1<<16-1)
	}
}
