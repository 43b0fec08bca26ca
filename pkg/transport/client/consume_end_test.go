package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"testing"
	"time"
)

func TestConsumeAcksWhatWasDoneWhenItIsEnded(t *testing.T) {
	t.Parallel()
	s := try(t, func(s *trial, n int, verb string, _ url.Values, _ *http.Request) (*http.Response, error) {
		if verb == "poll" {
			return handOut(t, "R1", 30*time.Second, "0:0=a", "0:1=b")
		}
		return settled(0)
	}, func(s *trial, _ *Delivery) error {
		s.cancel(errEnd)
		return nil
	}, "poll", "ack partition=0&receipt=R1&upto=0", "leave")
	s.wantSeen("a")

	s = try(t, func(s *trial, n int, verb string, _ url.Values, _ *http.Request) (*http.Response, error) {
		if verb == "poll" {
			return handOut(t, "R1", 30*time.Second, "0:0=last")
		}
		return settled(0)
	}, func(s *trial, _ *Delivery) error {
		s.cancel(errEnd)
		return nil
	}, "poll", "ack receipt=R1", "leave")
	s.wantErrors()
}

func TestConsumeCountsNoAttemptWhenItIsEnded(t *testing.T) {
	t.Parallel()
	try(t, func(s *trial, n int, verb string, _ url.Values, _ *http.Request) (*http.Response, error) {
		if verb == "poll" {
			return handOut(t, "R1", 30*time.Second, "0:0=a", "0:1=b")
		}
		return settled(0)
	}, func(s *trial, _ *Delivery) error {
		s.cancel(errEnd)
		return context.Canceled
	}, "poll", "leave")
}

func TestConsumeLeavesBeforeItsPollEnds(t *testing.T) {
	t.Parallel()
	left := make(chan struct{})
	acks := 0
	s := run(t, func(s *trial, n int, verb string, _ url.Values, r *http.Request) (*http.Response, error) {
		switch {
		case verb == "leave" && acks == 1:
			acks++ // only the first time
			close(left)
		case verb == "ack":
			acks++
		case n == 1:
			return handOut(t, "R1", 30*time.Second, "0:0=a")
		case verb == "poll":
			s.cancel(errEnd)
			select {
			case <-left: // as the broker does
				return response(200, nil, nil), nil
			case <-r.Context().Done():
				t.Error("the poll was cut off")
			}
		}
		return settled(0)
	}, done)
	// What the poll was to ack is acked before: leaving gives back what is not.
	s.wantCalls("poll", "poll ack=R1", "ack receipt=R1", "leave", "leave")
}

func TestConsumeCutsOffAPollThatOutlivesItsMember(t *testing.T) {
	t.Parallel()
	try(t, func(s *trial, n int, verb string, _ url.Values, r *http.Request) (*http.Response, error) {
		if verb == "poll" {
			s.cancel(errEnd)
			return park(r)
		}
		return settled(0)
	}, done, "poll", "leave", "leave")
}

func TestConsumeEndsWhileABrokerIsAway(t *testing.T) {
	t.Parallel()
	start, took := time.Time{}, time.Duration(0)
	s := try(t, func(s *trial, n int, verb string, _ url.Values, r *http.Request) (*http.Response, error) {
		if verb == "poll" {
			start = time.Now()
			s.cancel(errEnd)
		}
		<-r.Context().Done() // a broker that hangs
		took = time.Since(start)
		return nil, errors.New("no answer")
	}, done, "poll", "leave")
	s.wantErrors("leaving the group failed")
	if took != closeTimeout {
		t.Errorf("it took %v to leave, want %v", took, closeTimeout)
	}
}
