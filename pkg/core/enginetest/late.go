package enginetest

import (
	"time"

	"github.com/podmq/podmq/pkg/core"
)

var lateTests = []test{
	{"G9 a late ack is applied while nobody got the messages since", virtualTime, lateAck},
	{"G9 a late ack up to an offset is applied that far", virtualTime, lateAckUpto},
	{"G9 an ack after a nack is late", virtualTime, ackAfterNack},
	{"G9 a late nack or extend is stale", virtualTime, lateNack},
	{"G9 a late ack is stale once the messages went out again", virtualTime, tooLate},
	{"G9 a late ack after a hand-over is stale for ever", virtualTime, lateAfterHandover},
	{"G9 a late ack in a queue group is judged message by message", virtualTime, lateQueue},
	{"A late ack frees the publisher that waits", virtualTime, lateAckFrees},
}

func lateAck(s *script) {
	s.topic(1, 10)
	g := s.ordered("billing")
	s.publish(0, "a", "b")
	r := g.poll("c1", 10, "0:0=a 0:1=b").Receipt
	s.pass(defaults.AckTimeout)
	g.cursor(0, 0, 0, 2)
	got, err := g.tryAck(r)
	s.ok("Ack", err)
	if !got.Late || len(got.Stale) != 0 || len(got.Cursors) != 1 || got.Cursors[0] != (core.CursorPlace{Partition: 0, Committed: 2, Next: 2}) {
		s.Errorf("the late ack says %+v", got)
	}
	got, err = g.tryAck(r)
	s.ok("Ack again", err)
	if got.Late {
		s.Error("an ack of what is done is no late one")
	}
	g.poll("c1", 10, "")
}

func lateAckUpto(s *script) {
	s.topic(1, 10)
	g := s.ordered("billing")
	s.publish(0, "a", "b", "c")
	r := g.poll("c1", 2, "0:0=a 0:1=b").Receipt
	s.pass(defaults.AckTimeout)
	got, err := g.tryAckUpto(r, 0, 0)
	s.ok("Ack", err)
	if !got.Late || got.Lease != 0 {
		s.Errorf("the late ack says %+v, want late and no lease", got)
	}
	g.cursor(0, 1, 1, 2)
	// b was not handed out since, so the receipt still counts for it.
	if got, err = g.tryAck(r); err != nil || !got.Late {
		s.Errorf("the rest: %+v, %v; want late", got, err)
	}
	g.poll("c1", 10, "0:2=c")
}

func ackAfterNack(s *script) {
	s.topic(1, 10)
	g := s.ordered("billing")
	s.publish(0, "a")
	r := g.poll("c1", 10, "0:0=a").Receipt
	g.nackAfter(r, time.Minute)
	got, err := g.tryAck(r)
	s.ok("Ack", err)
	if !got.Late {
		s.Errorf("an ack after the nack says %+v, want late", got)
	}
	g.cursor(0, 1, 1, 0)
	s.publish(0, "b")
	g.poll("c1", 10, "0:1=b") // the failure of a delays nothing any more
}

func lateNack(s *script) {
	s.topic(1, 10)
	g := s.ordered("billing")
	s.publish(0, "a")
	r := g.poll("c1", 10, "0:0=a").Receipt
	s.pass(defaults.AckTimeout)
	_, err := g.tryNack(core.NackRequest{Receipt: r})
	s.refused(core.CodeStaleReceipt, err)
	_, err = g.tryNackOffset(r, 0, 0)
	s.refused(core.CodeStaleReceipt, err)
	_, err = g.tryExtend(r, core.Some(time.Minute))
	s.refused(core.CodeStaleReceipt, err)
	g.poll("c1", 10, "0:0=a#2") // the lease end counts, and only that
}

func tooLate(s *script) {
	s.topic(1, 10)
	g := s.ordered("billing")
	s.publish(0, "a", "b")
	r := g.poll("c1", 10, "0:0=a 0:1=b").Receipt
	s.pass(defaults.AckTimeout)
	again := g.poll("c1", 1, "0:0=a#2").Receipt
	_, err := g.tryAck(r)
	s.refused(core.CodeStaleReceipt, err)
	_, err = g.tryAckUpto(r, 0, 1)
	s.refused(core.CodeStaleReceipt, err)
	s.pass(defaults.AckTimeout) // the second ends as well: the first does not come back to life
	_, err = g.tryAck(r)
	s.refused(core.CodeStaleReceipt, err)
	got, err := g.tryAck(again)
	if err != nil || !got.Late {
		s.Errorf("the later receipt: %+v, %v; want late", got, err)
	}
	g.cursor(0, 1, 1, 1)
	// What the old receipt covers is done in part only.
	_, err = g.tryAck(r)
	s.refused(core.CodeStaleReceipt, err)
}

func lateAfterHandover(s *script) {
	s.topic(1, 10)
	g := s.group("billing", core.GroupSpec{SessionTimeout: core.Some(time.Minute)})
	s.publish(0, "a")
	r := g.poll("c1", 10, "0:0=a").Receipt
	g.join("c2")
	g.leave("c1") // the partition is handed over, and nobody polls it
	_, err := g.tryAck(r)
	s.refused(core.CodeStaleReceipt, err)
	g.join("c1")
	g.leave("c2") // and back
	g.owners("c1")
	_, err = g.tryAck(r)
	s.refused(core.CodeStaleReceipt, err)
	g.poll("c1", 10, "0:0=a")
}

func lateQueue(s *script) {
	s.topic(1, 10)
	g := s.queue("jobs")
	s.publish(0, "a", "b", "c")
	r := g.poll("c1", 10, "0:0=a 0:1=b 0:2=c").Receipt
	s.pass(defaults.AckTimeout)
	other := g.poll("c2", 1, "0:0=a#2")
	got, err := g.tryAck(r)
	s.ok("Ack", err)
	if !got.Late || len(got.Stale) != 1 || got.Stale[0] != (core.StaleRange{Partition: 0, From: 0, To: 1}) {
		s.Errorf("the ack says %+v, want b and c late and a stale", got)
	}
	g.ack(other.Receipt)
	g.cursor(0, 3, 3, 0)
	if n := g.look().Acked; n != 3 {
		s.Errorf("%d are counted as acked, want 3", n)
	}
}

func lateAckFrees(s *script) {
	s.topic(1, 1)
	g := s.ordered("billing")
	s.publish(0, "a")
	r := g.poll("c1", 10, "0:0=a").Receipt
	waiting := s.parkPublish(0, time.Minute, "b")
	s.pass(defaults.AckTimeout)
	waiting.parked()
	if got, err := g.tryAck(r); err != nil || !got.Late {
		s.Errorf("the late ack: %+v, %v", got, err)
	}
	waiting.result()
	g.poll("c1", 10, "0:1=b")
}
