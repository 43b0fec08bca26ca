package enginetest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
	"unsafe"

	"github.com/podmq/podmq/pkg/core"
)

var dataTests = []test{
	{"G20 payload, key and headers come back byte for byte", denseOffsets, byteForByte},
	{"G20 names passed to the engine may be overwritten", anyEngine, namesReused},
	{"G20 a message carries the time of its append", virtualTime, publishedAt},
	{"G20 a publish keeps the messages, not the slice", denseOffsets, sliceReused},
	{"G22 lag counts only what exists", denseOffsets, lagCounts},
	{"G22 lag is read at one moment with what it is computed from", denseOffsets, lagAtOnce},
}

func byteForByte(s *script) {
	s.topic(1, 100)
	g := s.ordered("billing")
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	contents := []core.Content{
		{},
		{HasKey: true, Key: []byte{}},
		{Payload: []byte("\x00"), HasKey: true, Key: []byte("\x00")},
		{Payload: []byte("\xff\xfe\xc3"), HasKey: true, Key: []byte("\xc3\x28")},
		{Payload: every, HasKey: true, Key: every},
		{Payload: bytes.Repeat([]byte{0xa5}, 600<<10)},
		{Headers: []core.Header{{Name: "traceparent", Value: "00-1"}, {Name: "empty", Value: ""}, {Name: "ü", Value: "\x00"}}},
		{ContentType: "text/plain", Sender: "web-1", ID: "7"},
	}
	for _, c := range contents {
		req := core.PublishRequest{Messages: []core.Message{s.message(c)}, Partition: 0}
		_, err := s.engine.Publish(s.Context(), s.topicName, &req, nil)
		s.ok("Publish", err)
	}
	for i, d := range g.pollLike(ask("c1", 100)).Deliveries {
		c := contents[i]
		if !bytes.Equal(d.Payload(), c.Payload) || d.HasKey() != c.HasKey || !bytes.Equal(d.Key(), c.Key) {
			s.Errorf("message %d: payload %.40q and key %q (%v) came back", i, d.Payload(), d.Key(), d.HasKey())
		}
		if got := slices.Collect(d.Headers); !slices.Equal(got, c.Headers) {
			s.Errorf("message %d: headers %v, want %v", i, got, c.Headers)
		}
		if d.ContentType() != c.ContentType || d.Sender() != c.Sender || d.ID() != c.ID {
			s.Errorf("message %d: %q, %q, %q came back", i, d.ContentType(), d.Sender(), d.ID())
		}
		contents[i].Payload = nil
	}
	if contents[5].Payload != nil {
		s.Error("the large message did not come")
	}
}

// A transport passes names that lie in its request's buffer.
func namesReused(s *script) {
	buf := []byte("orders billing c1")
	over := func(b []byte) string { return unsafe.String(&b[0], len(b)) }
	topic, name, member := over(buf[0:6]), over(buf[7:14]), over(buf[15:17])
	ctx := s.Context()
	_, err := s.engine.CreateTopic(ctx, topic, core.TopicSpec{})
	s.ok("CreateTopic", err)
	_, err = s.engine.CreateGroup(ctx, topic, name, core.GroupSpec{})
	s.ok("CreateGroup", err)
	_, _, err = s.engine.Join(ctx, topic, name, member)
	s.ok("Join", err)
	copy(buf, "XXXXXX XXXXXXX XX")

	s.publish(0, "a")
	g := &group{s, "billing", false}
	g.members("c1:0")
	member = over(buf[15:17])
	copy(buf[15:], "c1")
	pollID := []byte("p1")
	req := ask(member, 10)
	req.PollID = over(pollID)
	b := g.got(g.pollLike(req), "0:0=a")
	copy(buf[15:], "YY")
	copy(pollID, "ZZ")
	if c := g.look().Cursors[0]; c.LeaseMember != "c1" {
		s.Errorf("the lease is of %q, want c1", c.LeaseMember)
	}
	req = ask("c1", 10)
	req.PollID = "p1"
	if again := g.got(g.pollLike(req), "0:0=a"); again.Receipt.String() != b.Receipt.String() {
		s.Error("the poll-id was kept, not copied")
	}
	if name := s.engine.Stats().Topics[0].Name; name != "orders" {
		s.Errorf("the topic is called %q", name)
	}
	if name := s.stats().Groups[0].Name; name != "billing" {
		s.Errorf("the group is called %q", name)
	}
}

func publishedAt(s *script) {
	s.topic(1, 1)
	g := s.ordered("billing")
	s.publish(0, "a")
	at := time.Now()
	s.pass(time.Minute)
	waiting := s.parkPublish(0, core.MaxWait, "b")
	s.pass(20 * time.Second)
	b := g.pollLike(ask("c1", 10))
	if got := b.Deliveries[0].PublishedAt(); !got.Equal(at) {
		s.Errorf("published at %v, want %v", got, at)
	}
	g.ack(b.Receipt)
	waiting.result()
	if got, want := g.pollLike(ask("c1", 10)).Deliveries[0].PublishedAt(), at.Add(80*time.Second); !got.Equal(want) {
		s.Errorf("one that waited was published at %v, want when it was appended, %v", got, want)
	}
}

func sliceReused(s *script) {
	s.topic(1, 2)
	g := s.ordered("billing")
	req := core.PublishRequest{Messages: []core.Message{s.payload("a"), s.payload("b")}, Partition: 0}
	_, err := s.engine.Publish(s.Context(), s.topicName, &req, nil)
	s.ok("Publish", err)
	clear(req.Messages)
	g.poll("c1", 10, "0:0=a 0:1=b")
	// A caller that goes away while it waits has its slice back.
	req.Messages = []core.Message{s.payload("c")}
	req.Wait = core.MaxWait
	waiting := begin(s, func(ctx context.Context) ([]core.Placement, error) {
		return s.engine.Publish(ctx, s.topicName, &req, nil)
	})
	s.until(func() bool { return s.stats().Publishing == 1 })
	waiting.abandon()
	clear(req.Messages)
	g.ackOffset("c1", 0, 1)
	s.state(0, "log empty at 2, backlog 0/2, billing committed 2 next 2")
}

func lagCounts(s *script) {
	s.topic(2, 10)
	s.publish(0, "before", "any", "group")
	g, q := s.ordered("billing"), s.queue("jobs")
	g.cursor(0, 3, 3, 0)
	q.cursor(0, 3, 3, 0)
	s.publish(0, "a", "b", "c")
	g.cursor(0, 3, 3, 3)
	r := g.poll("c1", 2, "0:3=a 0:4=b").Receipt
	g.cursor(0, 3, 5, 3) // what is out is lag until it is acked
	g.ack(r)
	g.cursor(0, 5, 5, 1)
	g.cursor(1, 0, 0, 0)
	b := q.poll("c1", 10, "0:3=a 0:4=b 0:5=c").Receipt
	q.ack(b.Message(0, 4))
	q.cursor(0, 3, 6, 2)
	q.ack(b.Message(0, 3))
	q.cursor(0, 5, 6, 1)
}

// Looks at everything while everything moves: no look may contradict itself.
func lagAtOnce(s *script) {
	s.topic(2, 50)
	stop := make(chan struct{})
	var all sync.WaitGroup
	work := func(step func(i int) error) {
		all.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if err := step(i); err != nil {
					s.Errorf("beside the looks: %v", err)
					return
				}
			}
		})
	}
	for _, g := range []*group{s.ordered("a"), s.ordered("b"), s.queue("c")} {
		work(g.busyStep)
	}
	m := s.payload("m")
	work(func(i int) error {
		req := core.PublishRequest{Messages: []core.Message{m}, Partition: i % 2}
		_, err := s.engine.Publish(s.Context(), s.topicName, &req, nil)
		if core.CodeOf(err) == core.CodePartitionFull {
			return nil
		}
		return err
	})
	for range 2000 {
		if err := sound(s.engine.Stats()); err != nil {
			s.Error(err)
			break
		}
	}
	close(stop)
	all.Wait()
}

// busyStep takes a batch, and acks or nacks it.
func (g *group) busyStep(i int) error {
	b, err := g.tryPoll(g.Context(), ask("c1", 1+i%7))
	if err != nil || len(b.Deliveries) == 0 {
		return err
	}
	if i%5 == 0 {
		_, err = g.tryNack(core.NackRequest{Receipt: b.Receipt, Delay: core.Some(time.Duration(0))})
	} else {
		_, err = g.tryAck(b.Receipt)
	}
	return err
}

// sound checks one look against G12 and G22.
func sound(st core.Stats) error {
	var held int64
	for _, t := range st.Topics {
		for p, part := range t.Partitions {
			slowest := part.End
			for _, g := range t.Groups {
				c := g.Cursors[p]
				slowest = min(slowest, c.Committed)
				if c.Committed < part.Start || c.Next < c.Committed || part.End < c.Next {
					return fmt.Errorf("%s/%s partition %d: start %d <= committed %d <= next %d <= end %d does not hold",
						t.Name, g.Name, p, part.Start, c.Committed, c.Next, part.End)
				}
				lag := part.End - c.Committed
				if c.Lag < 0 || c.Lag > lag || g.Settings.Type == core.Ordered && c.Lag != lag {
					return fmt.Errorf("%s/%s partition %d: lag %d, end %d, committed %d", t.Name, g.Name, p, c.Lag, part.End, c.Committed)
				}
			}
			if part.Start != slowest || part.Backlog != part.End-slowest || part.Backlog > int64(t.Settings.Capacity) {
				return fmt.Errorf("%s partition %d: start %d, end %d, backlog %d of %d, slowest committed %d",
					t.Name, p, part.Start, part.End, part.Backlog, t.Settings.Capacity, slowest)
			}
			if part.Bytes < part.Backlog*core.MessageOverhead || part.Backlog == 0 && part.Bytes != 0 {
				return fmt.Errorf("%s partition %d: %d messages count %d bytes", t.Name, p, part.Backlog, part.Bytes)
			}
			held += part.Bytes
		}
	}
	if st.MemoryBytes > st.MemoryLimit {
		return fmt.Errorf("%d of %d bytes are held", st.MemoryBytes, st.MemoryLimit)
	}
	if len(st.Topics) == 1 && held != st.MemoryBytes {
		return fmt.Errorf("the partitions hold %d bytes, all together %d", held, st.MemoryBytes)
	}
	return nil
}
