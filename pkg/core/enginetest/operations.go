package enginetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/podmq/podmq/pkg/core"
)

type opKind int

// The operations. Shrinking goes towards the first, so towards nothing at all.
const (
	opNothing opKind = iota
	opPublish
	opPublishTo
	opPublishBatch
	opPoll
	opPollWait
	opPollAck
	opAck
	opAckUpto
	opAckOffset
	opNack
	opNackOffset
	opExtend
	opReturn
	opJoin
	opLeave
	opCreateGroup
	opDeleteGroup
	opAgain
	opPass
)

var opNames = [...]string{"nothing", "publish", "publish to", "publish batch", "poll", "poll and wait", "poll with ack", "ack",
	"ack upto", "ack offset", "nack", "nack offset", "extend", "return", "join", "leave", "create group", "delete group",
	"make the topic again", "pass"}

// An op is one operation; what a, b and c mean depends on what there is.
type op struct {
	Kind    opKind
	A, B, C int
}

func (o op) String() string { return fmt.Sprintf("%s %d %d %d", opNames[o.Kind], o.A, o.B, o.C) }

// opMix is how often each operation comes, as a share of the whole.
var opMix = slices.Concat(
	[]opKind{opNothing, opPoll, opPublish, opAck, opNack, opPass, opPollWait, opPublishBatch, opExtend, opAckOffset, opReturn},
	slices.Repeat([]opKind{opPoll, opPublish, opPass, opPublishBatch, opPollWait}, 4),
	slices.Repeat([]opKind{opPollAck, opAck, opNack, opAckUpto, opAckOffset, opExtend, opNackOffset}, 3),
	slices.Repeat([]opKind{opPublishTo, opJoin, opReturn, opLeave, opCreateGroup, opAckOffset}, 2),
	[]opKind{opPoll, opPublishBatch, opDeleteGroup, opAgain},
)

// opList prints as a script.
type opList []op

func (l opList) GoString() string {
	var words []string
	for _, o := range l {
		if o.Kind != opNothing {
			words = append(words, o.String())
		}
	}
	return strings.Join(words, "; ")
}

func drawOps(t *rapid.T) opList {
	return rapid.SliceOfN(rapid.Custom(drawOp), opsPerCheck, opsPerCheck).Draw(t, "ops")
}

func drawOp(t *rapid.T) op {
	// Small numbers come too often from a generator of a small range.
	number := rapid.Map(rapid.Uint64(), func(n uint64) int { return int(n % 24) })
	return op{
		Kind: rapid.Map(rapid.Uint64(), func(n uint64) opKind { return opMix[n%uint64(len(opMix))] }).Draw(t, "kind"),
		A:    number.Draw(t, "a"), B: number.Draw(t, "b"), C: number.Draw(t, "c"),
	}
}

// passes are the steps of time: within a backoff, a lease, a session, and on
// their edges.
var passes = []time.Duration{time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 450 * time.Millisecond,
	time.Second - 1, time.Second, 1500 * time.Millisecond, 5 * time.Second}

func (t *trial) do(o op) {
	groupName := trialGroupNames[o.B%len(trialGroupNames)]
	g := t.group(groupName)
	member := fmt.Sprint("m", o.A%3)
	switch o.Kind {
	case opPublish:
		t.publish(core.AnyPartition, t.payload(o.A))
	case opPublishTo:
		t.publish(o.A%len(t.parts), t.payload(o.B), t.payload(o.C))
	case opPublishBatch:
		ms := []core.Message{t.payload(o.A), t.payload(o.B), t.payload(o.C), t.payload(o.A + o.B)}
		t.publish(core.AnyPartition, ms[:1+o.C%4]...)
	case opPoll, opPollWait, opPollAck:
		t.poll(groupName, g, o, member)
	case opAck, opAckUpto, opAckOffset, opNack, opNackOffset, opExtend, opReturn:
		t.settle(o)
	case opJoin:
		_, joined, err := t.engine.Join(t.ctx, trialTopic, groupName, member)
		if t.expect("Join", err, g == nil, core.CodeUnknownGroup) {
			return
		}
		if joined != (g.member(member) == nil) {
			t.fail("%s joined anew: %v", member, joined)
		}
		g.join(member, t.now)
	case opLeave:
		err := t.engine.Leave(t.ctx, trialTopic, groupName, member)
		if !t.expect("Leave", err, g == nil, core.CodeUnknownGroup) && g.member(member) != nil {
			g.remove(member)
		}
	case opCreateGroup:
		t.createGroup(groupName, g, o.A%2 == 0)
	case opDeleteGroup:
		err := t.engine.DeleteGroup(t.ctx, trialTopic, groupName)
		if !t.expect("DeleteGroup", err, g == nil, core.CodeUnknownGroup) {
			t.removeGroup(g)
		}
	case opAgain:
		t.again()
	case opPass:
		t.advance(passes[o.A%len(passes)])
	}
}

// expect checks that a call failed with the code if and only if it must, and
// reports whether it did.
func (t *trial) expect(call string, err error, must bool, code core.Code) bool {
	switch {
	case must && core.CodeOf(err) != code:
		t.fail("%s: %v, want code %s", call, err, code)
	case !must && err != nil:
		t.fail("%s: %v", call, err)
	}
	return must
}

func (t *trial) createGroup(name string, g *twinGroup, earliest bool) {
	like := trialGroups[name]
	spec := core.GroupSpec{
		Type: core.Some(like.Type), Strategy: core.Some(like.Strategy), SessionTimeout: core.Some(like.SessionTimeout), MaxLease: core.Some(like.MaxLease),
	}
	if earliest {
		spec.Start = core.Some(core.Earliest)
	}
	created, err := t.engine.CreateGroup(t.ctx, trialTopic, name, spec)
	if err != nil || created != (g == nil) {
		t.fail("CreateGroup %s: created %v, %v", name, created, err)
	}
	if created {
		t.addGroup(name, like, earliest)
		gs, err := t.engine.Group(t.ctx, trialTopic, name)
		if err != nil {
			t.fail("Group %s: %v", name, err)
		}
		t.group(name).generation = gs.Generation
	}
}

// again deletes the topic and makes it anew. All that is known of it is void.
func (t *trial) again() {
	if err := t.engine.DeleteTopic(t.ctx, trialTopic); err != nil {
		t.fail("DeleteTopic: %v", err)
	}
	for _, p := range t.parked {
		<-p.done
		if core.CodeOf(p.err) != core.CodeUnknownTopic {
			t.fail("the topic is deleted under a parked poll, which ends with %v", p.err)
		}
	}
	t.parked = nil
	if created, err := t.engine.CreateTopic(t.ctx, trialTopic, core.TopicSpec{}); err != nil || !created {
		t.fail("CreateTopic: created %v, %v", created, err)
	}
	used := t.deliveries
	t.begin(Options{Topic: t.settings, MaxBytes: t.budget})
	t.deliveries = used // never used twice in an epoch
}

// payload makes a message with one of a few keys, or without one.
func (t *trial) payload(n int) core.Message {
	t.sent++
	c := core.Content{Payload: fmt.Append(nil, t.sent)}
	if n%3 > 0 {
		c.Key, c.HasKey = fmt.Append(nil, "k", n%7), true
	}
	m, err := core.NewMessage(&c, core.DefaultMessageBytes)
	if err != nil {
		t.fail("NewMessage: %v", err)
	}
	return m
}

func (t *trial) publish(partition int, ms ...core.Message) {
	req := core.PublishRequest{Messages: ms, Partition: partition}
	placed, err := t.engine.Publish(t.ctx, trialTopic, &req, nil)
	code := core.CodeOf(err)
	if allowed := t.publishCodes(partition, ms); !slices.Contains(allowed, code) {
		t.fail("Publish of %d to %d: %v, want one of the codes %q", len(ms), partition, err, allowed)
	}
	t.saw["publish "+string(code)]++
	if err != nil {
		return
	}
	if len(placed) != len(ms) {
		t.fail("%d messages were placed %v", len(ms), placed)
	}
	for i, m := range ms {
		p := placed[i].Partition
		want := partition
		if want == core.AnyPartition && m.HasKey() {
			want = core.PartitionFor(m.Key(), len(t.parts))
		}
		if want != core.AnyPartition && p != want || placed[i].Offset != t.parts[p].end() {
			t.fail("message %d was placed %v, want partition %d (-1 is any), offset %d", i, placed[i], want, t.parts[p].end())
		}
		t.append(p, m)
	}
	t.published += uint64(len(ms))
	if len(t.groups) == 0 {
		t.unheard += uint64(len(ms))
	}
}

// publishCodes are what a publish may come to, "" if it may be stored.
func (t *trial) publishCodes(partition int, ms []core.Message) []core.Code {
	need := make([]int, len(t.parts))
	unkeyed, cost := 0, int64(0)
	for _, m := range ms {
		cost += m.Cost()
		switch {
		case partition != core.AnyPartition:
			need[partition]++
		case m.HasKey():
			need[core.PartitionFor(m.Key(), len(t.parts))]++
		default:
			unkeyed++
		}
	}
	never, full, room, all := false, false, 0, len(ms)
	for i, p := range t.parts {
		free := t.settings.Capacity - int(p.end()-p.start)
		never = never || need[i] > t.settings.Capacity
		full = full || need[i] > free
		room += free - need[i]
	}
	never = never || all > t.settings.Capacity*len(t.parts)
	full = full || unkeyed > room
	switch {
	case never && len(t.groups) == 0:
		return []core.Code{"", core.CodeBatchExceedsCapacity}
	case never:
		return []core.Code{core.CodeBatchExceedsCapacity}
	case len(t.groups) == 0:
		return []core.Code{""}
	}
	var codes []core.Code
	if full {
		codes = append(codes, core.CodePartitionFull)
	}
	if t.held()+cost > t.budget {
		codes = append(codes, core.CodeMemoryFull)
	}
	if len(codes) == 0 {
		codes = append(codes, "")
	}
	return codes
}
