package transport

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

// TestTheSeedsTraceOverTheSocket is the seed's trace, step by step. Its lease
// of 30 s is one of 3 s here.
func TestTheSeedsTraceOverTheSocket(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.want(201, "PUT /v1/topics/orders?partitions=2&capacity=3&ack-timeout=3s", nil)
	for _, g := range []string{"billing", "email"} {
		r.want(201, "PUT /v1/topics/orders/groups/"+g, nil)
	}
	publish := func(key, payload, place string) {
		t.Helper()
		if a := r.want(201, "POST /v1/topics/orders/messages?key="+key, payload); a.text() != place {
			t.Errorf("%s is stored at %s, want %s", payload, a.body, place)
		}
	}
	poll := func(group string, query, want string) {
		t.Helper()
		a := r.want(200, "POST /v1/topics/orders/groups/"+group+"/poll?partition=1"+query, nil)
		var got struct {
			Messages []struct {
				Offset  int
				Payload string
			}
		}
		r.must(json.Unmarshal(a.body, &got))
		var all []string
		for _, m := range got.Messages {
			all = append(all, fmt.Sprintf("%d:%s", m.Offset, m.Payload))
		}
		if strings.Join(all, " ") != want {
			t.Errorf("%s got %v, want %s", group, all, want)
		}
	}
	ack := func(group string, upto int) {
		t.Helper()
		r.want(200, fmt.Sprintf("POST /v1/topics/orders/groups/%s/ack?partition=1&upto=%d", group, upto), nil)
	}
	// state is partition 1 as "start..end-1 backlog billing:committed,next …".
	state := func(want string) {
		t.Helper()
		var topic topicJSON
		r.must(json.Unmarshal(r.want(200, "GET /v1/topics/orders", nil).body, &topic))
		p := topic.Partitions[1]
		got := fmt.Sprintf("%d..%d %d", p.Start, p.End-1, p.Backlog)
		for _, g := range p.Groups {
			got += fmt.Sprintf(" %s:%d,%d", g.Group, g.Committed, g.Next)
		}
		if got != want {
			t.Errorf("partition 1 is %s, want %s", got, want)
		}
	}

	publish("user-a", "o-1", `{"partition":1,"offset":0}`)
	publish("user-a", "o-2", `{"partition":1,"offset":1}`)
	publish("user-a", "o-3", `{"partition":1,"offset":2}`)
	publish("user-b", "o-4", `{"partition":0,"offset":0}`)
	state("0..2 3 billing:0,0 email:0,0")
	r.refused(core.CodePartitionFull, "partition 1 holds 3 of 3", "POST /v1/topics/orders/messages?key=user-a&wait=0", "o-5")
	state("0..2 3 billing:0,0 email:0,0")
	poll("billing", "&max=2", "0:o-1 1:o-2")
	ack("billing", 0)
	state("0..2 3 billing:1,2 email:0,0")
	poll("email", "&max=10", "0:o-1 1:o-2 2:o-3")
	ack("email", 2)
	state("1..2 2 billing:1,2 email:3,3")
	publish("user-a", "o-5", `{"partition":1,"offset":3}`)
	state("1..3 3 billing:1,2 email:3,3")
	poll("billing", "&max=10&wait=20s", "1:o-2 2:o-3 3:o-5") // when its lease has ended
	ack("billing", 3)
	state("3..3 1 billing:4,4 email:3,3")
	r.refused(core.CodeNotInFlight, "offset 7", "POST /v1/topics/orders/groups/billing/ack?partition=1&upto=7", nil)
	state("3..3 1 billing:4,4 email:3,3")
}

// TestTheSeedsLoadOverTheSocket has four producers of 40 keys and two groups of
// two members, one of which pauses: every group gets every key in order.
func TestTheSeedsLoadOverTheSocket(t *testing.T) {
	t.Parallel()
	const producers, each, keys = 4, 2500, 40
	r := start(t, quiet)
	r.want(201, "PUT /v1/topics/load?partitions=4&capacity=64", nil)
	groups := []string{"fast", "slow"}
	for _, g := range groups {
		r.want(201, "PUT /v1/topics/load/groups/"+g, nil)
	}
	var all sync.WaitGroup
	for p := range producers {
		all.Go(func() {
			var next [keys]int
			for i := range each {
				k := p + producers*(i%(keys/producers))
				what := fmt.Sprintf("POST /v1/topics/load/messages?wait=20s&key=%d", k)
				a, err := r.try(what, fmt.Sprint(next[k]))
				if err != nil || a.StatusCode != 201 {
					t.Errorf("%s: %v %v", what, a, err)
					return
				}
				next[k]++
			}
		})
	}
	for _, g := range groups {
		s := &seen{T: t, group: g}
		for m := range 2 {
			all.Go(func() { s.consume(r, fmt.Sprint("m", m), producers*each) })
		}
	}
	done := make(chan struct{})
	go func() {
		all.Wait()
		close(done)
	}()
	for end := false; !end; {
		select {
		case <-done:
			end = true
		case <-time.After(time.Millisecond):
		}
		topic, err := r.engine.Engine.Topic(t.Context(), "load")
		r.must(err)
		for i, p := range topic.Partitions {
			if p.Backlog > 64 || end && p.Backlog != 0 {
				t.Errorf("partition %d has a backlog of %d", i, p.Backlog)
			}
		}
	}
}

// seen is what a group has received.
type seen struct {
	*testing.T
	group string
	mu    sync.Mutex
	next  [40]int // by key
	total atomic.Int64
}

func (s *seen) consume(r *rig, member string, all int64) {
	receipt := ""
	for s.total.Load() < all {
		what := fmt.Sprintf("POST /v1/topics/load/groups/%s/poll?wait=100ms&max=10&member=%s", s.group, member)
		if receipt != "" {
			what += "&ack=" + url.QueryEscape(receipt)
		}
		a, err := r.try(what, nil)
		if err != nil || a.StatusCode != 200 {
			s.Errorf("%s: %v %v", what, a, err)
			return
		}
		var got struct {
			Messages []struct{ Key, Payload string }
			Receipt  string
		}
		if err := json.Unmarshal(a.body, &got); err != nil {
			s.Error(err)
			return
		}
		receipt = got.Receipt
		s.mu.Lock()
		for _, m := range got.Messages {
			var k, n int
			if _, err := fmt.Sscan(m.Key, &k); err != nil {
				s.Error(err)
			}
			if _, err := fmt.Sscan(m.Payload, &n); err != nil || n != s.next[k] {
				s.Errorf("%s got %d of key %d, want %d (%v)", s.group, n, k, s.next[k], err)
			}
			s.next[k] = n + 1
		}
		s.mu.Unlock()
		s.total.Add(int64(len(got.Messages)))
		if s.group == "slow" && len(got.Messages) > 0 {
			<-time.After(200 * time.Microsecond)
		}
	}
	if receipt == "" {
		return
	}
	a, err := r.try(fmt.Sprintf("POST /v1/topics/load/groups/%s/ack?receipt=%s", s.group, receipt), nil)
	if err != nil || a.StatusCode != 200 {
		s.Errorf("the last ack: %v %v", a, err)
	}
}
