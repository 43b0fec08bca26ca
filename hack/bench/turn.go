package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/podmq/podmq/pkg/transport/loadgen"
)

// A sample is what one turn showed.
type sample struct {
	Rate       float64 `json:"rate"`        // messages a second
	ServerCPU  float64 `json:"server_cpu"`  // µs a message
	ClientCPU  float64 `json:"client_cpu"`  // µs a message
	ServerBusy float64 `json:"server_busy"` // cores
	ClientBusy float64 `json:"client_busy"` // cores
	Calls      float64 `json:"calls"`       // the server's reads and writes, a message

	PublishP50  float64 `json:"publish_p50"` // µs
	PublishP99  float64 `json:"publish_p99"`
	DeliveryP50 float64 `json:"delivery_p50"`
	DeliveryP99 float64 `json:"delivery_p99"`
}

// turn lets a system work once, from nothing to all acknowledged.
func turn(ctx context.Context, sys system, w *work, d time.Duration) (s sample, err error) {
	if err := sys.prepare(ctx, w); err != nil {
		return s, fmt.Errorf("prepare: %w", err)
	}
	m := loadgen.NewMeter(w.load(d))
	talks, err := sys.talks(ctx, w, m)
	if err != nil {
		return s, fmt.Errorf("connect: %w", err)
	}
	runtime.GC() // the last turn's garbage is not this one's
	server, err := cpuTime(sys.pid())
	if err != nil {
		return s, err
	}
	calls, err := systemCalls(sys.pid())
	if err != nil {
		return s, err
	}
	client, err := cpuTime(os.Getpid())
	if err != nil {
		return s, err
	}
	err = loadgen.Drive(ctx, m.Tally, min(runtime.GOMAXPROCS(0), len(talks)), talks, func() error {
		serverNow, err := cpuTime(sys.pid())
		if err != nil {
			return err
		}
		callsNow, err := systemCalls(sys.pid())
		if err != nil {
			return err
		}
		clientNow, err := cpuTime(os.Getpid())
		if err != nil {
			return err
		}
		server, client, calls = serverNow-server, clientNow-client, callsNow-calls
		return settled(ctx, sys, w)
	})
	if err != nil {
		return s, err
	}
	took, n := m.Tally.Took(), float64(m.Tally.Stored())
	micros := func(d time.Duration) float64 { return float64(d) / 1e3 }
	publish, delivery := m.Publish(), m.Delivery()
	return sample{
		Rate:        n / took.Seconds(),
		ServerCPU:   micros(server) / n,
		ClientCPU:   micros(client) / n,
		ServerBusy:  server.Seconds() / took.Seconds(),
		ClientBusy:  client.Seconds() / took.Seconds(),
		Calls:       float64(calls) / n,
		PublishP50:  float64(publish.ValueAtQuantile(50)) / 1e3,
		PublishP99:  float64(publish.ValueAtQuantile(99)) / 1e3,
		DeliveryP50: float64(delivery.ValueAtQuantile(50)) / 1e3,
		DeliveryP99: float64(delivery.ValueAtQuantile(99)) / 1e3,
	}, nil
}

// settled waits until the broker says itself that all is acknowledged.
func settled(ctx context.Context, sys system, w *work) error {
	if w.consumers == 0 {
		return nil
	}
	for deadline := time.Now().Add(5 * time.Second); ; {
		n, err := sys.left(ctx, w)
		if err != nil || n == 0 {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("cannot trust this turn: the broker still holds %d messages that were acknowledged", n)
		}
		pause := time.NewTimer(5 * time.Millisecond)
		<-pause.C
	}
}
