package transport

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"testing"
)

// mostWaiting bounds the heap and the stack that a connection takes while it
// waits, its client in the same process included.
const mostWaiting = 16 << 10

func TestCostOfAParkedPoll(t *testing.T) {
	r := start(t, quiet)
	r.topic("")
	costOfWaiting(t, r, func(conns []net.Conn) {
		for i, c := range conns {
			_, err := c.Write([]byte(request(fmt.Sprintf("%s?wait=60s&member=member-%d", pollG, i), "", "User-Agent: some client/1.0", "Accept: */*")))
			r.must(err)
		}
		r.parked(len(conns))
	})
	r.parked(0)
}

func TestCostOfAnIdleConnection(t *testing.T) {
	r := start(t, quiet)
	r.topic("")
	answer := bufio.NewReader(nil)
	costOfWaiting(t, r, func(conns []net.Conn) {
		for _, c := range conns {
			_, err := c.Write([]byte(request("GET /v1/topics", "", "User-Agent: some client/1.0", "Accept: */*")))
			r.must(err)
			answer.Reset(c)
			a, err := http.ReadResponse(answer, nil)
			r.must(err)
			if a.StatusCode != 200 {
				t.Fatal(a.Status)
			}
		}
	})
}

// costOfWaiting has all connections wait, and measures them.
func costOfWaiting(t *testing.T, r *rig, wait func(conns []net.Conn)) {
	t.Helper()
	if raceEnabled {
		t.Skip("the race detector takes memory of its own")
	}
	before := inUse()
	conns := make([]net.Conn, 500)
	for i := range conns {
		conns[i] = r.dial()
	}
	wait(conns)
	each := (inUse() - before) / len(conns)
	t.Logf("%d bytes each", each)
	if each > mostWaiting {
		t.Errorf("a connection that waits costs %d bytes, want %d at most", each, mostWaiting)
	}
	for _, c := range conns {
		_ = c.Close()
	}
}

func inUse() int {
	runtime.GC()
	runtime.GC() // what lies in pools outlives one
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse)
}
