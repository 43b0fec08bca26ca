package client_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/podmq/podmq/pkg/core"
	"github.com/podmq/podmq/pkg/transport"
	"github.com/podmq/podmq/pkg/transport/client"
)

// The client must cover the whole API: after this test the server must have seen
// each call that its OpenAPI document lists, but for that document's own.
func TestTheClientCoversTheWholeAPI(t *testing.T) {
	t.Parallel()
	b := startBroker(t, one)
	callTopicsAndGroups(t, b)
	callPublish(t, b)
	callPollAndSettle(t, b)
	callDeletes(t, b)

	var called []string
	for _, r := range b.server.Stats().Requests {
		if r.Code < 300 {
			called = append(called, r.Route)
		}
	}
	for _, want := range operations(t, b.path) {
		if want != "openapi" && !slices.Contains(called, want) {
			t.Errorf("the client never made the call %s; it made %q", want, called)
		}
	}
}

// operations are the names of all calls of the API.
func operations(t *testing.T, path string) (names []string) {
	t.Helper()
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}}
	resp, err := c.Get("http://podmq/v1/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^\s*operationId:\s*(\S+)`).FindAllSubmatch(text, -1) {
		names = append(names, string(m[1]))
	}
	if len(names) < 10 {
		t.Fatalf("the document names only %q", names)
	}
	return names
}

func callTopicsAndGroups(t *testing.T, b *broker) {
	t.Helper()
	ctx := t.Context()
	spec := core.TopicSpec{Partitions: core.Some(2), Capacity: core.Some(3), MaxBytes: core.Some(int64(1 << 20)), AckTimeout: core.Some(90 * time.Second)}
	for _, want := range []bool{true, false} {
		if created, err := b.CreateTopic(ctx, "t", spec); err != nil || created != want {
			t.Errorf("CreateTopic returned %v, %v, want %v", created, err, want)
		}
	}
	spec.Capacity.Value++
	if _, err := b.CreateTopic(ctx, "t", spec); core.CodeOf(err) != core.CodeTopicExists {
		t.Errorf("CreateTopic with another capacity returned %v", err)
	}
	group := core.GroupSpec{
		Type: core.Some(core.Ordered), Start: core.Some(core.Earliest), Strategy: core.Some(core.RoundRobin),
		SessionTimeout: core.Some(time.Minute), MaxLease: core.Some(2 * time.Hour), Expires: core.Some(time.Hour),
	}
	for _, want := range []bool{true, false} {
		if created, err := b.CreateGroup(ctx, "t", "g", group); err != nil || created != want {
			t.Errorf("CreateGroup returned %v, %v, want %v", created, err, want)
		}
	}
	m, joined, err := b.Join(ctx, "t", "g", "a:1@x")
	if err != nil || !joined || m.Member != "a:1@x" || !slices.Equal(m.Partitions, []int{0, 1}) {
		t.Errorf("Join returned %+v, %v, %v", m, joined, err)
	}
	if err := b.Leave(ctx, "t", "g", "a:1@x"); err != nil {
		t.Errorf("Leave returned %v", err)
	}
}

func callPublish(t *testing.T, b *broker) {
	t.Helper()
	ctx := t.Context()
	if at, err := b.Publish(ctx, "t", client.Message{Key: []byte("user-a"), Payload: []byte("o-1")}); err != nil || at != (client.Placement{Partition: 1}) {
		t.Errorf("Publish returned %+v, %v, want offset 0 of partition 1, where user-a is", at, err)
	}
	if at, err := b.Publish(ctx, "t", client.Message{Payload: []byte("o-2")}, client.ToPartition(1)); err != nil || at != (client.Placement{Partition: 1, Offset: 1}) {
		t.Errorf("Publish to a partition returned %+v, %v, want offset 1 of partition 1", at, err)
	}
	if placed, err := b.PublishBatch(ctx, "t", []client.Message{{Key: []byte("user-a")}, {Key: []byte("user-b")}}); err != nil ||
		!slices.Equal(placed, []client.Placement{{Partition: 1, Offset: 2}, {Partition: 0, Offset: 0}}) {
		t.Errorf("PublishBatch returned %+v, %v", placed, err)
	}
	_, err := b.Publish(ctx, "t", client.Message{Key: []byte("user-a")}, client.Wait(time.Millisecond))
	var full *core.Error
	if !errors.As(err, &full) || full.Code != core.CodePartitionFull || full.RetryAfter <= 0 || !full.Retryable() || client.Unknown(err) {
		t.Errorf("Publish to a full partition returned %#v", err)
	}
	if !slices.ContainsFunc(full.Fields, func(f core.Field) bool { return f.Name == "partition" && f.Value == int64(1) }) {
		t.Errorf("the error's fields are %+v, want the partition among them", full.Fields)
	}
}

func callPollAndSettle(t *testing.T, b *broker) {
	t.Helper()
	ctx := t.Context()
	poll := func(r client.PollRequest) *client.Batch {
		t.Helper()
		batch, err := b.Poll(ctx, "t", "g", r)
		if err != nil {
			t.Fatalf("Poll returned %v", err)
		}
		return batch
	}
	settled := func(s client.Settled, err error) client.Settled {
		t.Helper()
		if err != nil {
			t.Errorf("settling returned %v", err)
		}
		return s
	}
	first := poll(client.PollRequest{Max: 2, Partition: core.Some(1), PollID: "p 1"})
	if again := poll(client.PollRequest{Max: 2, Partition: core.Some(1), PollID: "p 1"}); len(first.Messages) != 2 || again.Receipt != first.Receipt {
		t.Errorf("polls with one id returned %+v and %+v", first, again)
	}
	if b := poll(client.PollRequest{Partition: core.Some(1)}); len(b.Messages) != 0 || len(b.Blocked) != 1 || b.Blocked[0].Member != core.DefaultMember || b.Blocked[0].Lease <= 0 {
		t.Errorf("a poll while a batch is out returned %+v", b)
	}
	if s := settled(b.Extend(ctx, "t", "g", first.Receipt, 100*time.Second)); s.Lease < 95*time.Second {
		t.Errorf("Extend left a lease of %v", s.Lease)
	}
	if s := settled(b.AckUpto(ctx, "t", "g", first.Receipt, 1, 0)); !slices.Equal(s.Cursors, []client.CursorPlace{{Partition: 1, Committed: 1, Next: 2}}) {
		t.Errorf("AckUpto touched %+v", s.Cursors)
	}
	settled(b.Nack(ctx, "t", "g", first.Receipt, client.NackOptions{Partition: core.Some(1), Offset: core.Some(int64(1)), Delay: core.Some(time.Duration(0))}))
	second := poll(client.PollRequest{Max: 1, Partition: core.Some(1)})
	if len(second.Messages) != 1 || second.Messages[0].Offset != 1 || second.Messages[0].Attempt != 2 {
		t.Errorf("after the nack a poll returned %+v", second.Messages)
	}
	if _, err := b.Ack(ctx, "t", "g", first.Receipt); core.CodeOf(err) != core.CodeStaleReceipt {
		t.Errorf("the ack of a stale receipt returned %v", err)
	}
	settled(b.AckOffset(ctx, "t", "g", core.DefaultMember, 1, 1))
	if _, err := b.AckOffset(ctx, "t", "g", core.DefaultMember, 1, 7); core.CodeOf(err) != core.CodeNotInFlight {
		t.Errorf("the ack of what is not in flight returned %v", err)
	}
	third := poll(client.PollRequest{Partition: core.Some(1)})
	settled(b.Ack(ctx, "t", "g", third.Receipt))
	rest := poll(client.PollRequest{Acks: []string{third.Receipt}})
	if len(rest.Messages) != 1 || rest.Messages[0].Partition != 0 || rest.Epoch != b.Epoch() || rest.Generation < 1 {
		t.Errorf("the last poll returned %+v", rest)
	}
}

func callDeletes(t *testing.T, b *broker) {
	t.Helper()
	ctx := t.Context()
	topic, err := b.Topic(ctx, "t")
	if want := (core.TopicSettings{Partitions: 2, Capacity: 3, MaxBytes: 1 << 20, AckTimeout: 90 * time.Second}); err != nil || topic.Name != "t" || topic.Settings != want {
		t.Errorf("Topic returned %+v, %v", topic, err)
	}
	if p := topic.Partitions[0]; p.End != 1 || p.Backlog != 1 || p.Bytes == 0 || len(p.Groups) != 1 || p.Groups[0].Lease <= 0 || p.Groups[0].Owner != core.DefaultMember {
		t.Errorf("partition 0 is %+v", p)
	}
	if topics, err := b.Topics(ctx); err != nil || len(topics) != 2 || topics[1].Name != "t" {
		t.Errorf("Topics returned %+v, %v", topics, err)
	}
	group, err := b.Group(ctx, "t", "g")
	if err != nil || group.Group != "g" || group.Type != core.Ordered || group.Strategy != core.RoundRobin ||
		len(group.Members) != 1 || group.Cursors[0].Lease <= 0 || group.Cursors[1].Committed != 3 {
		t.Errorf("Group returned %+v, %v", group, err)
	}
	if groups, err := b.Groups(ctx, "t"); err != nil || len(groups) != 1 || groups[0].Group != "g" {
		t.Errorf("Groups returned %+v, %v", groups, err)
	}
	if err := b.DeleteGroup(ctx, "t", "g"); err != nil {
		t.Errorf("DeleteGroup returned %v", err)
	}
	if err := b.DeleteTopic(ctx, "t"); err != nil {
		t.Errorf("DeleteTopic returned %v", err)
	}
	if err := b.DeleteTopic(ctx, "t"); core.CodeOf(err) != core.CodeUnknownTopic {
		t.Errorf("a second DeleteTopic returned %v", err)
	}
}

func TestG20EveryByteComesBack(t *testing.T) {
	t.Parallel()
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	b := startBroker(t, one)
	for _, kind := range []core.GroupType{core.Ordered, core.Queue} {
		if _, err := b.CreateGroup(t.Context(), "orders", string(kind), core.GroupSpec{Type: core.Some(kind)}); err != nil {
			t.Fatal(err)
		}
	}
	sent := []client.Message{
		{},
		{Key: []byte{}, Payload: []byte{0}},
		{Key: all, Payload: all, Headers: []client.Header{{Name: "a", Value: "grün\r\n🙂"}, {Name: "empty", Value: ""}}, ContentType: "text/plain; charset=utf-8", Sender: "wéb", ID: "7 8"},
		{Key: []byte("\xff\xfe"), Payload: make([]byte, core.DefaultMessageBytes-2)},
	}
	if _, err := b.PublishBatch(t.Context(), "orders", sent); err != nil {
		t.Fatal(err)
	}
	plain := client.Message{Key: all, Payload: all, Headers: []client.Header{{Name: "ce-id", Value: "1"}, {Name: "trace", Value: "grün"}}, ContentType: "a/b", Sender: "s +&", ID: "%41"}
	if _, err := b.Publish(t.Context(), "orders", plain, client.ToPartition(0)); err != nil {
		t.Fatal(err)
	}
	sent = append(sent, plain)
	for _, group := range []core.GroupType{core.Ordered, core.Queue} {
		batch, err := b.Poll(t.Context(), "orders", string(group), client.PollRequest{MaxBytes: core.MaxPollBytes})
		if err != nil {
			t.Fatal(err)
		}
		if len(batch.Messages) != len(sent) {
			t.Fatalf("Poll returned %d messages, want %d", len(batch.Messages), len(sent))
		}
		for i := range sent {
			d := &batch.Messages[i]
			if !same(&d.Message, &sent[i]) || d.Attempt != 1 || d.PublishedAt.IsZero() || (d.Receipt != "") != (group == core.Queue) {
				t.Errorf("in the %s group message %d came back as %.300q, headers %q", group, i, d.Payload, d.Headers)
			}
		}
	}
}

// same compares messages; a key that is nil is another than an empty one.
func same(a, b *client.Message) bool {
	return (a.Key == nil) == (b.Key == nil) && string(a.Key) == string(b.Key) && string(a.Payload) == string(b.Payload) &&
		a.ContentType == b.ContentType && a.Sender == b.Sender && a.ID == b.ID && slices.Equal(a.Headers, b.Headers)
}

func TestLoopbackAddress(t *testing.T) {
	t.Parallel()
	b := startBroker(t, one)
	l, err := transport.ListenLoopback("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- b.server.Serve(l) }()
	t.Cleanup(func() {
		if err := <-served; err != nil {
			t.Errorf("Serve returned %v", err)
		}
	})
	t.Cleanup(b.stop) // before the other: cleanups run last in, first out
	topics, err := dial(t, "http://"+l.Addr().String()).Topics(t.Context())
	if err != nil || len(topics) != 1 {
		t.Errorf("Topics returned %+v, %v", topics, err)
	}
}
