package memory_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/podmq/podmq/pkg/core"
	"github.com/podmq/podmq/pkg/core/memory"
)

// The benchmarks push messages of 256 bytes through one partition: append, poll
// and ack by one consumer a group, in batches. Beside them stands a buffered
// channel, which promises nothing of what a partition does.

const (
	payload  = 256
	buffered = 4096 // messages, in the partition and in the channel
)

func message(tb testing.TB) core.Message {
	m, err := core.NewMessage(&core.Content{Payload: make([]byte, payload)}, core.DefaultMessageBytes)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

func open(tb testing.TB, groups int) *memory.Broker {
	b := memory.New(memory.Options{MaxBytes: 1 << 30})
	tb.Cleanup(func() { b.Close() })
	must(tb, created(b.CreateTopic(context.Background(), "t", core.TopicSpec{Capacity: core.Some(buffered)})))
	for i := range groups {
		must(tb, created(b.CreateGroup(context.Background(), "t", fmt.Sprint("g", i), core.GroupSpec{})))
	}
	return b
}

func created(_ bool, err error) error { return err }

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// drain consumes n messages as a member of a group, acking each batch with the
// next poll.
func drain(tb testing.TB, b *memory.Broker, group string, n, batch int) {
	req := core.PollRequest{Member: "m", Max: batch, MaxBytes: core.MaxPollBytes, Wait: core.MaxWait, Partition: core.AnyPartition}
	var got core.Batch
	acks := make([]core.Receipt, 1)
	for n > 0 {
		if err := b.Poll(context.Background(), "t", group, &req, &got); err != nil {
			tb.Error(err)
			return
		}
		n -= len(got.Deliveries)
		acks[0].Ranges = append(acks[0].Ranges[:0], got.Receipt.Ranges...)
		ranges := acks[0].Ranges
		acks[0] = got.Receipt
		acks[0].Ranges = ranges
		req.Acks = acks
	}
	if _, err := b.Ack(context.Background(), "t", group, &core.AckRequest{Receipts: acks}); err != nil {
		tb.Error(err)
	}
}

func BenchmarkBroker(b *testing.B) {
	for _, c := range []struct{ producers, groups, batch int }{
		{1, 1, 1}, {1, 1, 100}, {4, 1, 100}, {4, 2, 100}, {4, 10, 100}, {4, 1, 1},
	} {
		b.Run(fmt.Sprintf("producers=%d/groups=%d/batch=%d", c.producers, c.groups, c.batch), func(b *testing.B) {
			broker := open(b, c.groups)
			each := max(c.batch, b.N/c.producers/c.batch*c.batch)
			var wg sync.WaitGroup
			b.ReportAllocs()
			b.ResetTimer()
			for g := range c.groups {
				wg.Go(func() { drain(b, broker, fmt.Sprint("g", g), each*c.producers, c.batch) })
			}
			m := message(b)
			for range c.producers {
				wg.Go(func() {
					req := core.PublishRequest{Partition: 0, Wait: core.MaxWait}
					for range c.batch {
						req.Messages = append(req.Messages, m)
					}
					var placed []core.Placement
					for range each / c.batch {
						var err error
						if placed, err = broker.Publish(context.Background(), "t", &req, placed[:0]); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
		})
	}
}

// BenchmarkOneThread publishes, polls and acks on one goroutine.
func BenchmarkOneThread(b *testing.B) {
	for _, batch := range []int{1, 100} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) { oneThread(b, batch) })
	}
}

func oneThread(b *testing.B, batch int) {
	broker := open(b, 1)
	pub := core.PublishRequest{Partition: core.AnyPartition}
	for range batch {
		pub.Messages = append(pub.Messages, message(b))
	}
	req := core.PollRequest{Member: "m", Max: batch, MaxBytes: core.MaxPollBytes, Partition: core.AnyPartition}
	ack := core.AckRequest{Receipts: make([]core.Receipt, 1)}
	var got core.Batch
	var placed []core.Placement
	b.ReportAllocs()
	b.ResetTimer()
	for range max(1, b.N/batch) {
		var err error
		if placed, err = broker.Publish(context.Background(), "t", &pub, placed[:0]); err != nil {
			b.Fatal(err)
		}
		if err := broker.Poll(context.Background(), "t", "g0", &req, &got); err != nil {
			b.Fatal(err)
		}
		ack.Receipts[0] = got.Receipt
		s, err := broker.Ack(context.Background(), "t", "g0", &ack)
		if err != nil {
			b.Fatal(err)
		}
		ack.Buffer = s.Cursors
	}
}

func BenchmarkChannel(b *testing.B) {
	for _, producers := range []int{1, 4} {
		b.Run(fmt.Sprintf("producers=%d", producers), func(b *testing.B) {
			ch := make(chan core.Message, buffered)
			m := message(b)
			each := max(1, b.N/producers)
			var wg sync.WaitGroup
			b.ReportAllocs()
			b.ResetTimer()
			for range producers {
				wg.Go(func() {
					for range each {
						ch <- m
					}
				})
			}
			for range each * producers {
				<-ch
			}
			wg.Wait()
		})
	}
}
