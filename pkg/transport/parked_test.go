package transport

import (
	"fmt"
	"net"
	"runtime"
	"testing"
)

// TestCostOfAParkedPoll bounds the heap and the stack that a connection
// takes while its poll is parked, its client in the same process included.
func TestCostOfAParkedPoll(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector takes memory of its own")
	}
	r := start(t, quiet)
	r.topic("")
	before := inUse()
	const polls = 500
	conns := make([]net.Conn, polls)
	for i := range conns {
		conns[i] = r.dial()
		if _, err := conns[i].Write([]byte(request(fmt.Sprintf("%s?wait=60s&member=member-%d", pollG, i), "", "User-Agent: some client/1.0", "Accept: */*"))); err != nil {
			t.Fatal(err)
		}
	}
	r.parked(polls)
	each := (inUse() - before) / polls
	t.Logf("%d bytes each", each)
	if each > 16<<10 {
		t.Errorf("a parked poll costs %d bytes, want 16 KiB at most", each)
	}
	for _, c := range conns {
		_ = c.Close()
	}
	r.parked(0)
}

func inUse() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse)
}
