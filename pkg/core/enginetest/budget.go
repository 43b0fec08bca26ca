package enginetest

import (
	"strings"

	"github.com/podmq/podmq/pkg/core"
)

var budgetTests = []test{
	{"G21 the memory budget refuses before it is passed", exactCapacity, memoryFull},
	{"G21 a publish waits for memory as it does for room", exactCapacity, memoryWaits},
	{"G14 a reservation is the topic's own", exactCapacity, reservation},
	{"G21 a topic with a reservation can use no more", exactCapacity, topicFull},
	{"G21 a reservation that does not fit is refused", exactCapacity, reservationTooLarge},
	{"G21 a batch that can never fit into memory is refused", exactCapacity, batchBeyondMemory},
}

// kib is a payload whose message costs n KiB.
func kib(n int) string { return strings.Repeat("x", n<<10-core.MessageOverhead) }

func memoryFull(s *script) {
	s = s.with(Options{Topic: defaults, MaxBytes: 10 << 10})
	small, large := s.on("small"), s.on("large")
	small.topic(1, 100)
	large.topic(1, 100)
	small.ordered("a")
	g := large.ordered("hog")
	small.publish(0, kib(1))
	large.publish(0, kib(8), kib(1))
	_, err := small.tryPublish(s.Context(), 0, 0, "")
	s.refused(core.CodeMemoryFull, err)
	s.names(err, "large") // the topic and the group that hold most
	s.names(err, "hog")
	if st := s.engine.Stats(); st.MemoryBytes != 10<<10 || st.MemoryLimit != 10<<10 {
		s.Errorf("%d of %d bytes are held, want all of 10 KiB", st.MemoryBytes, st.MemoryLimit)
	}
	b := g.pollLike(ask("c1", 10))
	_, err = g.tryAckUpto(b.Receipt, 0, 0)
	s.ok("Ack", err)
	small.publish(0, kib(8))
	s.ok("DeleteTopic", s.engine.DeleteTopic(s.Context(), "small"))
	if got := s.engine.Stats().MemoryBytes; got != 1<<10 {
		s.Errorf("%d bytes are held, want 1 KiB", got)
	}
}

func memoryWaits(s *script) {
	s = s.with(Options{Topic: defaults, MaxBytes: 4 << 10})
	s.topic(2, 100)
	g := s.ordered("billing")
	other := s.on("other")
	other.topic(1, 100)
	other.ordered("email")
	s.publish(0, kib(4))
	waiting := s.parkPublish(1, core.MaxWait, kib(2))
	across := other.parkPublish(0, core.MaxWait, kib(2)) // of another topic
	b := g.pollLike(ask("c1", 1))
	g.ack(b.Receipt)
	waiting.result()
	across.result()
}

func reservation(s *script) {
	s = s.with(Options{Topic: defaults, MaxBytes: 8 << 10})
	vip, rest := s.on("vip"), s.on("rest")
	vip.topicLike(core.TopicSpec{MaxBytes: core.Some(int64(4 << 10))})
	rest.topic(1, 100)
	vip.ordered("a")
	rest.ordered("b")
	rest.publish(0, kib(4))
	_, err := rest.tryPublish(s.Context(), 0, 0, "")
	s.refused(core.CodeMemoryFull, err)
	vip.publish(0, kib(2), kib(2))

	s.ok("DeleteTopic", s.engine.DeleteTopic(s.Context(), "vip"))
	rest.publish(0, kib(4)) // what was reserved is shared again
}

func topicFull(s *script) {
	s = s.with(Options{Topic: defaults, MaxBytes: 8 << 10})
	s.topicLike(core.TopicSpec{MaxBytes: core.Some(int64(4 << 10))})
	g := s.ordered("billing")
	s.publish(0, kib(2), kib(2))
	_, err := s.tryPublish(s.Context(), 0, 0, "")
	s.refused(core.CodeTopicFull, err)
	waiting := s.parkPublish(0, core.MaxWait, kib(1))
	b := g.pollLike(ask("c1", 1))
	g.ack(b.Receipt)
	waiting.result()
	if got := s.stats().Partitions[0].Bytes; got != 3<<10 {
		s.Errorf("%d bytes are held, want 3 KiB", got)
	}
}

func reservationTooLarge(s *script) {
	s = s.with(Options{Topic: defaults, MaxBytes: 8 << 10})
	like := func(n int64) core.TopicSpec { return core.TopicSpec{MaxBytes: core.Some(n)} }
	_, err := s.engine.CreateTopic(s.Context(), "vip", like(8<<10+1)) // can never fit
	if code := core.CodeOf(err); code != core.CodeInvalidRequest && code != core.CodeMemoryFull {
		s.Errorf("a reservation beyond all memory: %v", err)
	}
	s.on("a").topicLike(like(5 << 10))
	_, err = s.engine.CreateTopic(s.Context(), "b", like(4<<10))
	s.refused(core.CodeMemoryFull, err)
	s.on("b").topicLike(like(3 << 10))
	s.ok("DeleteTopic", s.engine.DeleteTopic(s.Context(), "a"))
	rest := s.on("rest")
	rest.topic(1, 100)
	rest.ordered("g")
	rest.publish(0, kib(4))
	_, err = s.engine.CreateTopic(s.Context(), "c", like(2<<10)) // 1 KiB is free, the rest is in use
	s.refused(core.CodeMemoryFull, err)
	if n := len(s.engine.Stats().Topics); n != 2 {
		s.Errorf("there are %d topics, want b and rest", n)
	}
}

func batchBeyondMemory(s *script) {
	s = s.with(Options{Topic: defaults, MaxBytes: 4 << 10})
	s.topic(1, 100)
	s.ordered("billing")
	_, err := s.tryPublish(s.Context(), 0, 0, kib(2), kib(2), kib(1))
	switch core.CodeOf(err) {
	case core.CodeMemoryFull, core.CodeBatchExceedsCapacity, core.CodeTooLarge:
	default:
		s.Errorf("a batch of 5 KiB into 4 KiB: %v", err)
	}
	s.state(0, "log empty at 0, backlog 0/100, billing committed 0 next 0")
	s.publish(0, kib(4))
}
