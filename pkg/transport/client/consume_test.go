package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

var errWork = errors.New("work failed")

// A trial is one run of Consume against a script, in virtual time.
type trial struct {
	t      *testing.T
	fake   *fakeBroker
	ctx    context.Context
	cancel context.CancelCauseFunc
	errs   []string // what OnError was told
	seen   []string // payloads that the handler got
}

type script func(s *trial, n int, verb string, q url.Values, r *http.Request) (*http.Response, error)

// try consumes until the script or the handler ends it, and checks the calls
// that were made. The script gets the number of polls so far.
func try(t *testing.T, play script, handler func(s *trial, d *Delivery) error, want ...string) *trial {
	t.Helper()
	s := run(t, play, handler)
	s.wantCalls(want...)
	return s
}

func run(t *testing.T, play script, handler func(s *trial, d *Delivery) error) *trial {
	t.Helper()
	s := &trial{t: t}
	synctest.Test(t, func(t *testing.T) {
		s.ctx, s.cancel = context.WithCancelCause(t.Context())
		polls := 0
		c, fake := newFake(t, func(verb string, q url.Values, r *http.Request) (*http.Response, error) {
			if verb == "poll" {
				polls++
			}
			return play(s, polls, verb, q, r)
		})
		s.fake = fake
		err := c.Consume(s.ctx, ConsumeConfig{
			Topic: "orders", Group: "billing", Member: "m",
			OnError: func(err error) { s.errs = append(s.errs, err.Error()) },
		}, func(_ context.Context, d *Delivery) error {
			s.seen = append(s.seen, string(d.Payload))
			return handler(s, d)
		})
		if err != errEnd {
			t.Errorf("Consume returned %v, want the cause of its context's end", err)
		}
	})
	return s
}

func (s *trial) wantCalls(want ...string) {
	s.t.Helper()
	if got := s.fake.log(); !slices.Equal(got, want) {
		s.t.Errorf("the calls were\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

var errEnd = errors.New("the test is over")

// end ends the consumer, and answers a poll with nothing. What follows is the
// same in all tests, and not noted.
func (s *trial) end() (*http.Response, error) {
	s.fake.stopNoting()
	s.cancel(errEnd)
	return response(200, nil, nil), nil
}

func (s *trial) wantSeen(want ...string) {
	s.t.Helper()
	if !slices.Equal(s.seen, want) {
		s.t.Errorf("the handler got %q, want %q", s.seen, want)
	}
}

func (s *trial) wantErrors(want ...string) {
	s.t.Helper()
	ok := len(s.errs) == len(want)
	for i := 0; ok && i < len(want); i++ {
		ok = strings.Contains(s.errs[i], want[i])
	}
	if !ok {
		s.t.Errorf("OnError was told\n\t%s\nwant\n\t%s", strings.Join(s.errs, "\n\t"), strings.Join(want, "\n\t"))
	}
}

func done(*trial, *Delivery) error { return nil }

func TestConsumeAcksEachMessageAndTheLastWithTheNextPoll(t *testing.T) {
	t.Parallel()
	s := try(t, func(s *trial, n int, verb string, _ url.Values, _ *http.Request) (*http.Response, error) {
		switch {
		case verb != "poll":
			return settled(0)
		case n == 1:
			return handOut(t, "R1", 30*time.Second, "0:4=a", "0:5=b", "1:0=c")
		}
		return s.end()
	}, done,
		"poll", "ack partition=0&receipt=R1&upto=4", "ack partition=0&receipt=R1&upto=5", "poll ack=R1")
	s.wantSeen("a", "b", "c")
	s.wantErrors()
}

func TestConsumeNacksAndLeavesTheRestOfThePartition(t *testing.T) {
	t.Parallel()
	s := try(t, func(s *trial, n int, verb string, _ url.Values, _ *http.Request) (*http.Response, error) {
		switch {
		case verb != "poll":
			return settled(0)
		case n == 1:
			return handOut(t, "R1", 30*time.Second, "0:4=ok", "0:5=bad", "0:6=behind it", "1:0=elsewhere")
		}
		return s.end()
	}, func(_ *trial, d *Delivery) error {
		if string(d.Payload) == "bad" {
			return errWork
		}
		return nil
	},
		// The last ack names its place: the receipt as a whole also covers what
		// was nacked.
		"poll", "ack partition=0&receipt=R1&upto=4", "nack offset=5&partition=0&receipt=R1",
		"ack partition=1&receipt=R1&upto=0", "poll")
	s.wantSeen("ok", "bad", "elsewhere")
	s.wantErrors("handler failed on 0:5, attempt 1: work failed")
}

func TestConsumeSettlesEachMessageOfAQueueGroupByItself(t *testing.T) {
	t.Parallel()
	s := try(t, func(s *trial, n int, verb string, _ url.Values, _ *http.Request) (*http.Response, error) {
		switch {
		case verb != "poll":
			return settled(0)
		case n == 1:
			return handOut(t, "R1", 30*time.Second, "0:4=a@Ra", "0:5=bad@Rb", "0:6=c@Rc")
		}
		return s.end()
	}, func(_ *trial, d *Delivery) error {
		if string(d.Payload) == "bad" {
			return errWork
		}
		return nil
	}, "poll", "ack receipt=Ra", "nack receipt=Rb", "poll ack=Rc")
	s.wantSeen("a", "bad", "c")
}

func TestConsumeGoesOnAfterARefusedAck(t *testing.T) {
	t.Parallel()
	s := try(t, func(s *trial, n int, verb string, q url.Values, _ *http.Request) (*http.Response, error) {
		switch {
		case verb == "ack" && q.Get("partition") == "0":
			return refuse(409, core.CodeStaleReceipt, 0)
		case verb != "poll":
			return settled(0)
		case n == 1:
			return handOut(t, "R1", 30*time.Second, "0:4=a", "0:5=another has it now", "1:0=b")
		case n == 2:
			return handOut(t, "R2", 30*time.Second, "1:1=c")
		}
		return s.end()
	}, done,
		"poll", "ack partition=0&receipt=R1&upto=4", "ack partition=1&receipt=R1&upto=0", "poll", "poll ack=R2")
	s.wantSeen("a", "b", "c")
	s.wantErrors("ack of 0:4 refused: stale_receipt")
}

func TestConsumeGoesOnAfterARefusedAckOfAPoll(t *testing.T) {
	t.Parallel()
	s := try(t, func(s *trial, n int, verb string, _ url.Values, _ *http.Request) (*http.Response, error) {
		switch {
		case verb != "poll":
			return settled(0)
		case n == 1:
			return handOut(t, "R1", 30*time.Second, "0:4=a")
		case n == 2:
			return refuse(409, core.CodeStaleReceipt, 0)
		}
		return s.end()
	}, done, "poll", "poll ack=R1", "poll")
	s.wantErrors("ack refused: stale_receipt")
}

func TestConsumeReportsWhatAPollLost(t *testing.T) {
	t.Parallel()
	s := try(t, func(s *trial, n int, verb string, _ url.Values, _ *http.Request) (*http.Response, error) {
		switch {
		case verb != "poll":
			return settled(0)
		case n == 1:
			h := http.Header{}
			h.Set("Podmq-Stale", `[{"partition":1,"from":4,"to":6}]`)
			h.Set("Podmq-Skipped", `[{"partition":0,"from":7,"to":9}]`)
			return response(200, h, nil), nil
		}
		return s.end()
	}, done, "poll", "poll")
	s.wantErrors("ack of 1:4 to 5 refused", "0:7 to 8 are lost")
}

func TestConsumeRepeatsWhateverSaysWhenToComeBack(t *testing.T) {
	t.Parallel()
	acks := 0
	s := try(t, func(s *trial, n int, verb string, _ url.Values, _ *http.Request) (*http.Response, error) {
		if verb == "ack" {
			if acks++; acks == 1 {
				return refuse(503, "a_new_code", time.Second)
			}
		}
		switch {
		case verb != "poll":
			return settled(0)
		case n == 1:
			return handOut(t, "R1", 30*time.Second, "0:0=a", "0:1=b")
		}
		return s.end()
	}, done, "poll", "ack partition=0&receipt=R1&upto=0", "ack partition=0&receipt=R1&upto=0", "poll ack=R1")
	s.wantSeen("a", "b")
	s.wantErrors("ack of 0:0 failed: a_new_code")
}

func TestConsumeHandlesWhatItHasInHandWhenTheBrokerIsRestarted(t *testing.T) {
	t.Parallel()
	s := try(t, func(s *trial, n int, verb string, _ url.Values, _ *http.Request) (*http.Response, error) {
		switch {
		case verb == "ack":
			resp, err := refuse(409, core.CodeStaleReceipt, 0)
			resp.Header.Set("Podmq-Epoch", "e2")
			return resp, err
		case verb != "poll":
			return settled(0)
		case n == 1:
			return handOut(t, "R1", 30*time.Second, "0:4=a", "0:5=b", "1:0=c")
		}
		return s.end()
	}, done, "poll", "ack partition=0&receipt=R1&upto=4", "poll")
	s.wantSeen("a", "b", "c")
	s.wantErrors("ack of 0:4 refused: stale_receipt")
}

func TestConsumeRepeatsAPollWhoseAnswerWasLost(t *testing.T) {
	t.Parallel()
	var ids []string
	s := try(t, func(s *trial, n int, verb string, q url.Values, r *http.Request) (*http.Response, error) {
		if verb == "poll" {
			ids = append(ids, r.URL.Query().Get("poll-id"))
		}
		switch {
		case verb != "poll":
			return settled(0)
		case n == 2:
			return nil, errors.New("connection reset")
		case n <= 3:
			return handOut(t, "R", 30*time.Second, "0:0=a")
		}
		return s.end()
	}, done, "poll", "poll ack=R", "poll ack=R", "poll ack=R")
	s.wantErrors("poll failed: ")
	if len(ids) != 4 || ids[0] == ids[1] || ids[1] != ids[2] || ids[2] == ids[3] {
		t.Errorf("the poll ids were %q, want the second twice", ids)
	}
}

func TestConsumeWaitsAsLongAsTheBrokerAsks(t *testing.T) {
	t.Parallel()
	var at []time.Time
	s := try(t, func(s *trial, n int, verb string, _ url.Values, _ *http.Request) (*http.Response, error) {
		if verb != "poll" {
			return settled(0)
		}
		at = append(at, time.Now())
		switch n {
		case 1:
			return refuse(503, core.CodeDraining, 7*time.Second)
		case 2:
			return refuse(404, core.CodeUnknownGroup, 0)
		}
		return s.end()
	}, done, "poll", "poll", "poll")
	s.wantErrors("draining", "unknown_group")
	if d := at[1].Sub(at[0]); d < 7*time.Second {
		t.Errorf("it came back after %v, the broker asked for 7s", d)
	}
	if at[2].Equal(at[1]) {
		t.Error("it came back at once for a group that is not there")
	}
}

func TestConsumeBacksOffToACapAndFromTheStartAgainAfterAnAnswer(t *testing.T) {
	t.Parallel()
	var pauses []time.Duration
	var last time.Time
	const failures = 12
	try(t, func(s *trial, n int, verb string, _ url.Values, _ *http.Request) (*http.Response, error) {
		if verb != "poll" {
			return settled(0)
		}
		if n > 1 {
			pauses = append(pauses, time.Since(last))
		}
		last = time.Now()
		switch {
		case n == failures:
			return response(200, nil, nil), nil
		case n > failures+1:
			return s.end()
		}
		return nil, errors.New("connection refused")
	}, done, slices.Repeat([]string{"poll"}, failures+2)...)
	for i, p := range pauses[:failures-1] {
		step := min(backoffFirst<<i, backoffMost)
		if p < step/2 || p > step {
			t.Errorf("pause %d was %v, want %v to %v", i+1, p, step/2, step)
		}
	}
	if p := pauses[len(pauses)-1]; p > backoffFirst {
		t.Errorf("the first pause after an answer was %v, want at most %v", p, backoffFirst)
	}
}

func TestConsumeGivesUpAPollThatIsNeverAnswered(t *testing.T) {
	t.Parallel()
	s := try(t, func(s *trial, n int, verb string, _ url.Values, r *http.Request) (*http.Response, error) {
		switch {
		case verb != "poll":
			return settled(0)
		case n == 1:
			return park(r)
		}
		return s.end()
	}, done, "poll", "poll")
	s.wantErrors("the broker does not answer")
}

func TestConsumeRepeatsAnAckUntilItIsAnswered(t *testing.T) {
	t.Parallel()
	acks := 0
	s := try(t, func(s *trial, n int, verb string, _ url.Values, _ *http.Request) (*http.Response, error) {
		if verb == "ack" {
			if acks++; acks == 1 {
				return nil, errors.New("connection reset")
			}
		}
		switch {
		case verb != "poll":
			return settled(0)
		case n == 1:
			return handOut(t, "R1", 30*time.Second, "0:0=a", "0:1=b")
		}
		return s.end()
	}, done, "poll", "ack partition=0&receipt=R1&upto=0", "ack partition=0&receipt=R1&upto=0", "poll ack=R1")
	s.wantErrors("ack of 0:0 failed: ")
}

func TestConsumeLetsAPanicThroughAndKeepsNoLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, fake := newFake(t, func(string, url.Values, *http.Request) (*http.Response, error) {
			return handOut(t, "R1", 30*time.Second, "0:0=a")
		})
		func() {
			defer func() {
				if got := recover(); got != "boom" {
					t.Errorf("recovered %v, want the handler's panic", got)
				}
			}()
			_ = c.Consume(t.Context(), ConsumeConfig{Topic: "t", Group: "g"}, func(context.Context, *Delivery) error { panic("boom") })
		}()
		time.Sleep(time.Minute) // in virtual time: two leases
		if got := fake.log(); !slices.Equal(got, []string{"poll"}) {
			t.Errorf("the calls were %q, want the poll alone", got)
		}
	})
}

func TestConsumeRefusesWhatCanNeverWork(t *testing.T) {
	t.Parallel()
	c, _ := newFake(t, nil)
	for name, cfg := range map[string]ConsumeConfig{
		"topic":     {Topic: "a/b", Group: "g"},
		"group":     {Topic: "t"},
		"member":    {Topic: "t", Group: "g", Member: " "},
		"max":       {Topic: "t", Group: "g", Max: -1},
		"max-bytes": {Topic: "t", Group: "g", MaxBytes: core.MaxPollBytes + 1},
		"wait":      {Topic: "t", Group: "g", Wait: time.Hour},
	} {
		err := c.Consume(t.Context(), cfg, func(context.Context, *Delivery) error { return nil })
		if core.CodeOf(err) != core.CodeInvalidRequest || !strings.HasPrefix(err.(*core.Error).Detail, "cannot ") {
			t.Errorf("%s: Consume returned %v", name, err)
		}
	}
	if err := c.Consume(t.Context(), ConsumeConfig{Topic: "t", Group: "g"}, nil); core.CodeOf(err) != core.CodeInvalidRequest {
		t.Errorf("without a handler Consume returned %v", err)
	}
}
