package memory_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/podmq/podmq/pkg/core"
	"github.com/podmq/podmq/pkg/core/memory"
)

// What is never deleted is refused before it fills the memory, and what is
// deleted makes room.
func TestG21TopicsAndGroupsAreBoundedByTheMemoryTheyTake(t *testing.T) {
	const budget, most = 64 << 20, 16 << 20
	b := memory.New(memory.Options{MaxBytes: budget})
	defer b.Close()
	before := heapInUse()
	must(t, created(b.CreateTopic(t.Context(), "wide", core.TopicSpec{Partitions: core.Some(1000)})))
	fill := func() (n int) {
		for {
			_, err := b.CreateGroup(t.Context(), "wide", fmt.Sprint("g", n), core.GroupSpec{})
			if err != nil {
				if core.CodeOf(err) != core.CodeMemoryFull || n == 0 {
					t.Fatalf("group %d: %v", n, err)
				}
				return n
			}
			n++
		}
	}
	first := fill()
	if took := heapInUse() - before; took > most {
		t.Errorf("%d groups of 1000 partitions take %d bytes, want at most %d", first, took, most)
	}

	made := 0
	var refused error
	for ; refused == nil; made++ {
		_, refused = b.CreateTopic(t.Context(), fmt.Sprint("more", made), core.TopicSpec{Partitions: core.Some(1000)})
	}
	if core.CodeOf(refused) != core.CodeMemoryFull {
		t.Errorf("another topic: %v", refused)
	}
	for i := range made - 1 {
		must(t, b.DeleteTopic(t.Context(), fmt.Sprint("more", i)))
	}
	for range 3 {
		must(t, b.DeleteGroup(t.Context(), "wide", "g0"))
		must(t, created(b.CreateGroup(t.Context(), "wide", "g0", core.GroupSpec{})))
	}
	must(t, b.DeleteTopic(t.Context(), "wide"))
	must(t, created(b.CreateTopic(t.Context(), "wide", core.TopicSpec{Partitions: core.Some(1000)})))
	if again := fill(); again != first {
		t.Errorf("after the topic was deleted there is room for %d groups, before for %d", again, first)
	}
}

// A refused reservation leaves nothing taken.
func TestG21ARefusedTopicTakesNothing(t *testing.T) {
	b := memory.New(memory.Options{MaxBytes: 1 << 20})
	defer b.Close()
	must(t, created(b.CreateTopic(t.Context(), "half", core.TopicSpec{MaxBytes: core.Some[int64](600 << 10)})))
	for range 1000 {
		_, err := b.CreateTopic(t.Context(), "other", core.TopicSpec{Partitions: core.Some(1000), MaxBytes: core.Some[int64](600 << 10)})
		if core.CodeOf(err) != core.CodeMemoryFull {
			t.Fatal(err)
		}
	}
	must(t, created(b.CreateTopic(t.Context(), "other", core.TopicSpec{Partitions: core.Some(1000)})))
}

// The bounds of topics and groups do not come before those of their number.
func TestTheBoundsOfTopicsAndGroupsCanBeReached(t *testing.T) {
	b := memory.New(memory.Options{MaxBytes: 1 << 20})
	defer b.Close()
	for i := range core.MaxTopics {
		must(t, created(b.CreateTopic(t.Context(), fmt.Sprint("t", i), core.TopicSpec{Partitions: core.Some(1)})))
	}
	for i := range core.MaxGroups {
		must(t, created(b.CreateGroup(t.Context(), "t0", fmt.Sprint("g", i), core.GroupSpec{})))
	}
}

func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
