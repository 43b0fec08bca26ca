package core_test

import (
	"testing"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

func TestBatchResetKeepsMemoryButNoMessage(t *testing.T) {
	m, err := core.NewMessage(&core.Content{Payload: []byte("p")}, core.DefaultMessageBytes)
	if err != nil {
		t.Fatal(err)
	}
	b := core.Batch{
		Deliveries: make([]core.Delivery, 3, 8),
		Receipt:    core.Receipt{Epoch: 1, Delivery: 2, Ranges: make([]core.Range, 2, 4)},
		Lease:      time.Second, Generation: 7,
		Stale:   make([]core.StaleRange, 1, 2),
		Blocked: make([]core.Blocked, 1, 2),
		Skipped: make([]core.Skipped, 1, 2),
	}
	b.Deliveries[0].Message = m
	b.Deliveries[2].Message = m
	b.Reset()

	if len(b.Deliveries)+len(b.Receipt.Ranges)+len(b.Stale)+len(b.Blocked)+len(b.Skipped) != 0 {
		t.Errorf("after Reset: %+v, want nothing in it", b)
	}
	if b.Receipt.Epoch != 0 || b.Receipt.Delivery != 0 || b.Lease != 0 || b.Generation != 0 {
		t.Errorf("after Reset: %+v, want no receipt, lease or generation", b)
	}
	if cap(b.Deliveries) != 8 || cap(b.Receipt.Ranges) != 4 || cap(b.Stale) != 2 || cap(b.Blocked) != 2 || cap(b.Skipped) != 2 {
		t.Errorf("Reset lost the memory of a slice: %+v", b)
	}
	for i, d := range b.Deliveries[:cap(b.Deliveries)] {
		if !d.IsZero() {
			t.Errorf("Reset holds on to message %d", i)
		}
	}
}
