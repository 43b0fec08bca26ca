package memory_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/podmq/podmq/pkg/core"
	"github.com/podmq/podmq/pkg/core/memory"
)

// After a first round, which fills pools and grows maps, further rounds of
// clients that come and go leave nothing on the heap. A leak of one object a
// cycle would leave thousands.
func TestG23TheHeapDoesNotGrowWithWhatComesAndGoes(t *testing.T) {
	const cycles = 2000
	b := memory.New(memory.Options{Topic: core.TopicSettings{Partitions: 2, Capacity: 10, AckTimeout: time.Minute}, MaxBytes: 1 << 20})
	defer b.Close()
	ctx := t.Context()
	if _, err := b.CreateTopic(ctx, "stays", core.TopicSpec{}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.CreateGroup(ctx, "stays", "g", core.GroupSpec{}); err != nil {
		t.Fatal(err)
	}
	round := func() int64 {
		for i := range cycles {
			if err := comeAndGo(ctx, b, i); err != nil {
				t.Fatal(err)
			}
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapObjects)
	}
	round()
	before := round()
	if grown := round() - before; grown > cycles/4 {
		t.Errorf("%d cycles left %d objects on the heap", cycles, grown)
	}
	if n := len(b.Stats().Topics); n != 1 {
		t.Errorf("%d topics are left, want 1", n)
	}
}

// comeAndGo is a member that gives up a parked poll and leaves, and a topic with
// a lease and a delayed message that is deleted.
func comeAndGo(ctx context.Context, b *memory.Broker, i int) error {
	gone, cancel := context.WithCancel(ctx)
	cancel()
	var batch core.Batch
	member := fmt.Sprint("m", i)
	req := core.PollRequest{Member: member, Max: 1, MaxBytes: 1, Wait: time.Minute, Partition: core.AnyPartition}
	if err := b.Poll(gone, "stays", "g", &req, &batch); !errors.Is(err, context.Canceled) {
		return fmt.Errorf("a poll whose caller is gone: %w", err)
	}
	m, err := core.NewMessage(&core.Content{Payload: []byte("p")}, 100)
	if err != nil {
		return err
	}
	topic := fmt.Sprint("t", i)
	_, created := b.CreateTopic(ctx, topic, core.TopicSpec{})
	_, grouped := b.CreateGroup(ctx, topic, "g", core.GroupSpec{Type: core.Some(core.Queue), Expires: core.Some(time.Hour)})
	_, published := b.Publish(ctx, topic, &core.PublishRequest{Messages: []core.Message{m, m}, Partition: 0}, nil)
	polled := b.Poll(ctx, topic, "g", &req, &batch)
	_, nacked := b.Nack(ctx, topic, "g", &core.NackRequest{Receipt: batch.Receipt, Delay: core.Some(time.Hour)})
	return errors.Join(created, grouped, published, polled, nacked, b.DeleteTopic(ctx, topic), b.Leave(ctx, "stays", "g", member))
}
