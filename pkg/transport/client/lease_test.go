package client

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

// leaseTrial hands out one message with a lease of 30 s, whose handler takes as
// long as work says, and returns when each extend came, counted from then.
func leaseTrial(t *testing.T, work time.Duration, extend func(n int) (*http.Response, error)) (s *trial, beats []time.Duration) {
	var start time.Time
	s = run(t, func(s *trial, n int, verb string, _ url.Values, _ *http.Request) (*http.Response, error) {
		switch {
		case verb == "extend":
			beats = append(beats, time.Since(start))
			return extend(len(beats))
		case verb != "poll":
			return settled(0)
		case n == 1:
			start = time.Now()
			return handOut(t, "R1", 30*time.Second, "0:0=a")
		}
		return s.end()
	}, func(*trial, *Delivery) error {
		time.Sleep(work) // in virtual time: the handler's work
		return nil
	})
	s.wantSeen("a")
	return s, beats
}

func TestConsumeRenewsTheLeaseAtEachThird(t *testing.T) {
	t.Parallel()
	s, beats := leaseTrial(t, 33*time.Second, func(n int) (*http.Response, error) {
		if n == 2 {
			return settled(15 * time.Second) // clipped by max-lease
		}
		return settled(30 * time.Second)
	})
	if want := []time.Duration{10 * time.Second, 20 * time.Second, 25 * time.Second}; !slices.Equal(beats, want) {
		t.Errorf("extended at %v, want %v", beats, want)
	}
	s.wantCalls("poll", "extend receipt=R1", "extend receipt=R1", "extend receipt=R1", "poll ack=R1")
	s.wantErrors()
}

func TestConsumeRenewsNoLeaseOfQuickWork(t *testing.T) {
	t.Parallel()
	s, _ := leaseTrial(t, 9*time.Second, nil)
	s.wantCalls("poll", "poll ack=R1")
}

func TestConsumeStopsRenewingAtTheLeaseLimitAndFinishesTheWork(t *testing.T) {
	t.Parallel()
	s, _ := leaseTrial(t, 10*time.Minute, func(n int) (*http.Response, error) {
		if n == 1 {
			return settled(30 * time.Second)
		}
		return refuse(409, core.CodeLeaseLimit, 0)
	})
	s.wantCalls("poll", "extend receipt=R1", "extend receipt=R1", "poll ack=R1")
	s.wantErrors("renewing the lease ended: lease_limit")
}

func TestConsumeStopsRenewingWhatIsSettled(t *testing.T) {
	t.Parallel()
	s, _ := leaseTrial(t, 10*time.Minute, func(int) (*http.Response, error) { return settled(0) })
	s.wantCalls("poll", "extend receipt=R1", "poll ack=R1")
	s.wantErrors()
}

func TestConsumeRenewsAgainSoonAfterAFailure(t *testing.T) {
	t.Parallel()
	s, beats := leaseTrial(t, 12*time.Second, func(n int) (*http.Response, error) {
		if n <= 2 {
			return nil, errors.New("connection reset")
		}
		return settled(30 * time.Second)
	})
	if len(beats) != 3 || beats[2] > 11*time.Second {
		t.Errorf("extended at %v, want three times before the second third of the lease", beats)
	}
	s.wantErrors("renewing the lease failed: ", "renewing the lease failed: ")
}
