package transport

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

// budgetIsWhole makes sure that nothing of the budget is lost.
func (r *rig) budgetIsWhole() {
	r.Helper()
	for _, b := range []*budget{r.server.bodies, r.server.answers} {
		r.eventually("the budget is whole", func() bool {
			b.mu.Lock()
			defer b.mu.Unlock()
			return b.free == b.size && len(b.queue) == 0
		})
	}
}

func TestBudgetIsGivenInTheOrderOfAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(100)
		if n, ok := b.tryTake(60); !ok || n != 60 {
			t.Fatalf("took %d, %v", n, ok)
		}
		got := make(chan int64, 3)
		for _, n := range []int64{80, 10, 1000} {
			go func() {
				taken, err := b.take(context.Background(), n, time.Minute)
				if err != nil {
					t.Error(err)
				}
				got <- taken
			}()
			synctest.Wait()
		}
		if _, ok := b.tryTake(1); ok {
			t.Error("a newcomer overtook those who wait")
		}
		b.give(60)
		synctest.Wait()
		if n := len(got); n != 2 {
			t.Fatalf("%d were served, want those of 80 and 10", n)
		}
		b.give(80)
		synctest.Wait()
		if len(got) != 2 {
			t.Fatal("what is larger than the budget did not wait for all of it")
		}
		b.give(10)
		synctest.Wait()
		if len(got) != 3 {
			t.Fatal("what is larger than the budget never passed")
		}
		if <-got+<-got != 90 || <-got != 100 {
			t.Error("the wrong ones were served")
		}
		b.give(100)
		if b.free != 100 {
			t.Errorf("%d are free", b.free)
		}
	})
}

func TestOneThatStopsWaitingForTheBudgetLetsOthersPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(100)
		b.tryTake(60)
		ctx, cancel := context.WithCancel(context.Background())
		first := make(chan error)
		go func() {
			_, err := b.take(ctx, 50, time.Minute)
			first <- err
		}()
		synctest.Wait()
		second := make(chan error)
		go func() {
			_, err := b.take(context.Background(), 50, time.Second)
			second <- err
		}()
		third := make(chan error)
		go func() {
			time.Sleep(time.Millisecond) // virtual: it comes last
			_, err := b.take(context.Background(), 40, time.Minute)
			third <- err
		}()
		if err := <-second; core.CodeOf(err) != core.CodeMemoryFull {
			t.Errorf("the wait ended with %v", err)
		}
		cancel()
		if err := <-first; err != context.Canceled {
			t.Errorf("the hang-up ended with %v", err)
		}
		if err := <-third; err != nil {
			t.Error(err)
		}
		if b.free != 0 || len(b.queue) != 0 {
			t.Errorf("%d are free, %d wait", b.free, len(b.queue))
		}
	})
}

// blocked is a server whose whole budget is taken.
func blocked(t *testing.T) *rig {
	r := startWith(t, Config{TopicAdmin: true, InflightBytes: 200_000})
	r.server.bodies.joined = make(chan struct{}, 1)
	r.topic("")
	for _, b := range []*budget{r.server.bodies, r.server.answers} {
		if _, ok := b.tryTake(100_000); !ok {
			t.Fatal("the budget is not whole")
		}
	}
	return r
}

// unblock gives all of it back.
func (r *rig) unblock() {
	r.server.bodies.give(100_000)
	r.server.answers.give(100_000)
}

func TestLargeBodiesWaitForTheBudgetBeforeTheyAreRead(t *testing.T) {
	t.Parallel()
	r := blocked(t)
	for _, body := range []io.Reader{
		strings.NewReader(strings.Repeat("x", 70_000)),
		io.MultiReader(strings.NewReader(strings.Repeat("x", 70_000))), // of unknown length: chunked
	} {
		done := make(chan *answer, 1)
		go func() {
			a, err := r.try(publishT, body)
			if err != nil {
				t.Error(err)
			}
			done <- a
		}()
		receive(r, "the large body waits", r.server.bodies.joined)
		r.want(201, publishT, "small ones pass")
		r.server.bodies.give(100_000)
		if a := receive(r, "the large body is served", done); a == nil || a.StatusCode != 201 {
			t.Fatalf("answered %v", a)
		}
		r.eventually("the budget can be taken again", func() bool { _, ok := r.server.bodies.tryTake(100_000); return ok })
	}
	r.unblock()
}

func TestALargeBodyWithoutBudgetIsRefusedUnread(t *testing.T) {
	t.Parallel()
	r := blocked(t)
	w := r.wire()
	w.send(request(publishT, strings.Repeat("x", 70_000), "Expect: 100-continue")[:200])
	a := w.read()
	if a.StatusCode != 429 || a.member("code") != "memory_full" || a.member("retryable") != true || a.Header.Get("Retry-After") != "1" || a.member("retry_after_ms") != 1000.0 {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	w.ended()
	r.unblock()
	r.budgetIsWhole()
}

func TestG3AnAnswerWithoutBudgetIsGivenBack(t *testing.T) {
	t.Parallel()
	r := blocked(t)
	for range 2 {
		r.want(201, publishT, strings.Repeat("x", 50_000))
	}
	a := r.refused(core.CodeMemoryFull, "try again", pollG+"?wait=0", nil)
	if a.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	receive(r, "the batch is given back", r.engine.returns)
	r.unblock()
	a = r.want(200, pollG+"?wait=0", nil)
	if n := strings.Count(a.text(), `"attempt":1}`); n != 2 {
		t.Errorf("%d messages at their first attempt: %.200s", n, a.body)
	}
	r.budgetIsWhole()
}

// Otherwise the publishers would wait for room, and the consumers, who make it,
// for the publishers.
func TestG14PublishersThatWaitForRoomLeaveConsumersTheirBudget(t *testing.T) {
	t.Parallel()
	r := startWith(t, Config{TopicAdmin: true, InflightBytes: 200_000})
	r.topic("capacity=1")
	r.want(201, publishT, strings.Repeat("x", 60_000))
	w := r.wire()
	w.send(request(publishT+"?wait=60s", strings.Repeat("y", 200_000)))
	r.eventually("the publisher waits for room", func() bool { return r.engine.Stats().Topics[0].Publishing == 1 })
	a := r.want(200, pollG+"?encoding=base64", nil)
	r.want(200, "POST /v1/topics/t/groups/g/ack?receipt="+a.member("receipt").(string), nil)
	if a := w.read(); a.StatusCode != 201 {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	r.budgetIsWhole()
}

func TestG3AClientThatHangsUpWhileItWaitsForTheBudgetLeavesNothing(t *testing.T) {
	t.Parallel()
	r := blocked(t)
	w := r.wire()
	w.send(request(publishT, strings.Repeat("x", 70_000)))
	receive(r, "the large body waits", r.server.bodies.joined)
	_ = w.Close()
	r.eventually("the connection ends", func() bool { return r.server.Stats().Connections <= 1 })
	r.unblock()
	r.budgetIsWhole()
	if lag := r.group().Cursors[0].Lag; lag != 0 {
		t.Errorf("%d messages were stored", lag)
	}
}

func TestTheBoundOfAnAnswerHoldsWhatItBecomes(t *testing.T) {
	t.Parallel()
	payloads := [][]byte{
		[]byte(strings.Repeat("a", 100_000)), []byte(strings.Repeat("\x01", 50_000)), []byte(strings.Repeat("\"\n", 50_000)),
		[]byte(strings.Repeat("\u2028", 50_000)), []byte(strings.Repeat("\xff", 50_000)), []byte(strings.Repeat("é", 50_000)), nil,
	}
	for _, p := range payloads {
		m, err := core.NewMessage(&core.Content{Payload: p, ContentType: "text/plain", Sender: "me"}, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		batch := core.Batch{Deliveries: []core.Delivery{{Message: m.Published(1)}, {Message: m.Published(2)}}}
		for _, f := range []pollFormat{{}, {asBase64: true}, {frames: true}} {
			e := batchEncoder{batch: &batch, asBase64: f.asBase64}
			bound := int64(freeOfBudget)
			b, err := e.append(nil, func(n int64) error { bound = n; return nil })
			if f.frames {
				bound = max(freeOfBudget, e.framesBound())
				b, err = e.frames(nil)
			}
			size := int64((&response{body: b, blocks: e.blocks}).size())
			if err != nil || size > bound+1024 {
				t.Errorf("%.20q in %+v: %d bytes, bounded by %d (%v)", p, f, size, bound, err)
			}
		}
	}
}
