package main

import (
	"os"
	"time"

	"github.com/podmq/podmq/pkg/core"
	"github.com/podmq/podmq/pkg/transport"
)

const (
	// drainQuiet is how long nobody must have called before a drain ends.
	drainQuiet = time.Second
	// drainLook is how often a drain looks; each look is a snapshot.
	drainLook = 100 * time.Millisecond
)

// drain waits for the application's last calls, after the engine was told to let
// nothing wait any more. It ends when no lease is out and nobody called for
// drainQuiet, at the timeout, or at a further signal, and says which.
func drain(timeout time.Duration, signals <-chan os.Signal, engine func() core.Stats, server func() transport.Stats) (endedBy string) {
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	look := time.NewTicker(drainLook)
	defer look.Stop()
	// The app got its SIGTERM together with the broker: its last calls are still
	// to come.
	begin := time.Now()
	for {
		select {
		case <-look.C:
			last := server().LastRequest
			if last.Before(begin) {
				last = begin
			}
			if time.Since(last) >= drainQuiet && engine().LeasesOut == 0 {
				return "quiet"
			}
		case <-deadline.C:
			return "timeout"
		case <-signals:
			return "signal"
		}
	}
}
