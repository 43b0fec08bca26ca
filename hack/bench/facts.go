package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/podmq/podmq/pkg/transport/loadgen"
)

const (
	starts = 11        // of which the median counts
	held   = 1_000_000 // messages
	idle   = 3 * time.Second
)

// facts are what is not measured in turns, on all cores: start and memory. Of
// peers only what can be compared.
func facts(ctx context.Context, o *options) (all []fact, err error) {
	dir, err := os.MkdirTemp("", "podmq-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program, err := os.Stat(o.sidecar)
	if err != nil {
		return nil, err
	}
	all = append(all, fact{"size of the program", mib(program.Size())})
	for _, step := range []func(context.Context, *options, string) ([]fact, error){
		startFacts, heldByPodMQ, heldByRedis, parkedInPodMQ, parkedInRedis,
	} {
		some, err := step(ctx, o, dir)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
		fmt.Fprintln(o.progress, "start and memory:", some[0].Name)
	}
	return all, nil
}

func mib(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }

// startFacts are from the start of the process to the first answer, and what an
// idle broker needs.
func startFacts(ctx context.Context, o *options, dir string) ([]fact, error) {
	var took []float64
	for range starts {
		began := time.Now()
		b, err := startPodMQ(ctx, allCores, o.sidecar, dir)
		if err != nil {
			return nil, err
		}
		_, err = b.admin.Topics(ctx)
		took = append(took, time.Since(began).Seconds()*1e3)
		b.stop()
		if err != nil {
			return nil, err
		}
	}
	b, err := startPodMQ(ctx, allCores, o.sidecar, dir)
	if err != nil {
		return nil, err
	}
	defer b.stop()
	rest(ctx, idle)
	memory, err := resident(b.pid())
	return []fact{
		{"start to first answer", fmt.Sprintf("%.0f ms", median(took))},
		{"idle memory", mib(memory)},
	}, err
}

func rest(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// fill publishes messages that nobody takes, about as many as held, and returns
// how many.
func fill(ctx context.Context, sys system) (int, error) {
	w := the(func(w *work) { w.producers, w.consumers, w.batch = 4, 0, 100 })
	if err := sys.prepare(ctx, &w); err != nil {
		return 0, err
	}
	m := loadgen.NewMeter(w.load(time.Hour))
	talks, err := sys.talks(ctx, &w, m)
	if err != nil {
		return 0, err
	}
	enough, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		for m.Tally.Stored() < held && enough.Err() == nil {
			rest(enough, time.Millisecond)
		}
		stop()
	}()
	err = loadgen.Drive(enough, m.Tally, 1, talks, func() error { return nil })
	return int(m.Tally.Stored()), err
}

func heldByPodMQ(ctx context.Context, o *options, dir string) ([]fact, error) {
	b, err := startPodMQ(ctx, allCores, o.sidecar, dir)
	if err != nil {
		return nil, err
	}
	defer b.stop()
	return heldBy(ctx, podmqFrames, podmqWay{podmq: b, format: loadgen.Frames})
}

func heldByRedis(ctx context.Context, _ *options, dir string) ([]fact, error) {
	r, err := startRedis(ctx, allCores, dir)
	if err != nil {
		return nil, err
	}
	defer r.stop()
	return heldBy(ctx, redisName, r)
}

// heldBy is what the process has grown by, so with all that its allocator and
// its collector need beside the messages.
func heldBy(ctx context.Context, name string, sys system) ([]fact, error) {
	before, err := resident(sys.pid())
	if err != nil {
		return nil, err
	}
	n, err := fill(ctx, sys)
	if err != nil {
		return nil, err
	}
	after, err := resident(sys.pid())
	return []fact{{
		fmt.Sprintf("%s, %s messages of %d B held: resident memory beyond the payload, a message", name, thousands(float64(n)), base.size),
		fmt.Sprintf("%.0f B", float64(after-before)/float64(n)-float64(base.size)),
	}}, err
}

// parking are numbers of consumers that wait; a group has at most 1,000 members,
// and a broker 10,000 connections, a few of which are ours.
var parking = []struct{ consumers, groups int }{{1000, 1}, {9900, 10}}

func parkedInPodMQ(ctx context.Context, o *options, dir string) ([]fact, error) {
	return parkedIn(ctx, podmqFrames, func() (system, func(), error) {
		b, err := startPodMQ(ctx, allCores, o.sidecar, dir)
		if err != nil {
			return nil, nil, err
		}
		return podmqWay{podmq: b, format: loadgen.Frames}, b.stop, nil
	})
}

func parkedInRedis(ctx context.Context, _ *options, dir string) ([]fact, error) {
	return parkedIn(ctx, redisName, func() (system, func(), error) {
		r, err := startRedis(ctx, allCores, dir)
		if err != nil {
			return nil, nil, err
		}
		return r, r.stop, nil
	})
}

func parkedIn(ctx context.Context, name string, start func() (system, func(), error)) (all []fact, err error) {
	for _, p := range parking {
		sys, stop, err := start()
		if err != nil {
			return nil, err
		}
		memory, cpu, err := park(ctx, sys, p.consumers, p.groups)
		stop()
		if err != nil {
			return nil, err
		}
		all = append(all, fact{
			fmt.Sprintf("%s, %s consumers that wait: memory each; CPU of the server", name, thousands(float64(p.consumers))),
			fmt.Sprintf("%.1f KiB; %.2f %%", memory/1024, 100*cpu),
		})
	}
	return all, nil
}

// park lets consumers wait for nothing, and returns what each costs in memory,
// and the share of a core that all cost.
func park(ctx context.Context, sys system, consumers, groups int) (memory, cpu float64, err error) {
	w := the(func(w *work) { w.producers, w.consumers, w.groups, w.parts = 0, consumers, groups, 1 })
	if err := sys.prepare(ctx, &w); err != nil {
		return 0, 0, err
	}
	before, err := resident(sys.pid())
	if err != nil {
		return 0, 0, err
	}
	m := loadgen.NewMeter(w.load(0))
	talks, err := sys.talks(ctx, &w, m)
	if err != nil {
		return 0, 0, err
	}
	l, err := loadgen.NewLoop(time.Now())
	if err != nil {
		return 0, 0, err
	}
	defer l.Close()
	for _, t := range talks {
		if err := l.Add(t.Conn, t.Session); err != nil {
			return 0, 0, err
		}
	}
	parked, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- l.Run(func() bool { return parked.Err() != nil }) }()
	rest(ctx, idle) // until all are parked
	began := time.Now()
	used, err := cpuTime(sys.pid())
	if err == nil {
		rest(ctx, idle)
		var now time.Duration
		now, err = cpuTime(sys.pid())
		cpu = (now - used).Seconds() / time.Since(began).Seconds()
	}
	after, readErr := resident(sys.pid())
	stop()
	return float64(after-before) / float64(consumers), cpu, errors.Join(err, readErr, <-ended)
}
