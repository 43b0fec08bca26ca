package main

import (
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podmq/podmq/pkg/core"
	"github.com/podmq/podmq/pkg/transport"
)

// drained runs a drain in virtual time against a broker whose leases and last
// request are functions of the time since the drain began.
func drained(t *testing.T, timeout time.Duration, signals <-chan os.Signal, leases func(time.Duration) int, last func(time.Duration) time.Duration) (endedBy string, took time.Duration) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		begin := time.Now()
		endedBy = drain(timeout, signals,
			func() core.Stats { return core.Stats{LeasesOut: leases(time.Since(begin))} },
			func() transport.Stats {
				return transport.Stats{LastRequest: begin.Add(last(time.Since(begin)))}
			})
		took = time.Since(begin)
	})
	return endedBy, took
}

func none(time.Duration) int                 { return 0 }
func never(time.Duration) time.Duration      { return -time.Hour }
func always(now time.Duration) time.Duration { return now }
func until(end time.Duration) func(time.Duration) int {
	return func(now time.Duration) int {
		if now < end {
			return 1
		}
		return 0
	}
}

func TestG24ADrainEndsOnceAllIsQuiet(t *testing.T) {
	if by, took := drained(t, 25*time.Second, nil, none, never); by != "quiet" || took != drainQuiet {
		t.Errorf("ended by %s after %v, want quiet after %v", by, took, drainQuiet)
	}
}

func TestG24ADrainWaitsForTheLastLease(t *testing.T) {
	if by, took := drained(t, 25*time.Second, nil, until(7*time.Second), never); by != "quiet" || took != 7*time.Second {
		t.Errorf("ended by %s after %v, want quiet after 7s", by, took)
	}
}

func TestG24ADrainWaitsForASecondWithoutRequests(t *testing.T) {
	talking := func(now time.Duration) time.Duration { return min(now, 3*time.Second) }
	if by, took := drained(t, 25*time.Second, nil, none, talking); by != "quiet" || took != 4*time.Second {
		t.Errorf("ended by %s after %v, want quiet after 4s", by, took)
	}
}

func TestG24ADrainEndsAtItsTimeout(t *testing.T) {
	forever := func(time.Duration) int { return 1 }
	if by, took := drained(t, 25*time.Second, nil, forever, never); by != "timeout" || took != 25*time.Second {
		t.Errorf("with a lease out: ended by %s after %v, want timeout after 25s", by, took)
	}
	if by, took := drained(t, 25*time.Second, nil, none, always); by != "timeout" || took != 25*time.Second {
		t.Errorf("with requests: ended by %s after %v, want timeout after 25s", by, took)
	}
}

func TestASecondSignalCutsADrainShort(t *testing.T) {
	signals := make(chan os.Signal, 1)
	signals <- syscall.SIGTERM
	if by, took := drained(t, 25*time.Second, signals, none, always); by != "signal" || took != 0 {
		t.Errorf("ended by %s after %v, want signal at once", by, took)
	}
}
