package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/podmq/podmq/pkg/core"
	"github.com/podmq/podmq/pkg/transport/client"
	"github.com/podmq/podmq/pkg/transport/loadgen"
	"github.com/podmq/podmq/pkg/transport/units"
)

// benching is what the flags of bench say.
type benching struct {
	producers, consumers, groups int
	groupType                    string
	partitions, batch, threads   int
	payload                      string
	duration                     time.Duration
	rate                         float64
	format                       string
	inFlight                     int
	json                         bool

	size int // of payload
}

func newBenchCommand(p *process) *cobra.Command {
	o := benching{}
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure what a broker does",
		Long: `Put load on a running broker, over raw connections, and measure it.

It makes a topic of its own, named bench-…, and deletes it in the end. Each
producer sends one request at a time and waits for its answer. Each consumer
acknowledges what it got with its next poll. Every message is delivered and
acknowledged once in each group, or the run fails.

With --rate, producers keep to a schedule, and latencies count from when a message
was due: a broker that stalls shows all of it. Without, they send as fast as they
are answered, the latency is that of the calls made, and what a message waits for
in the backlog is not shown.

The broker does its other work meanwhile, and shares its memory with the bench.`,
		Example: `  sidecar bench                                      one message a request
  sidecar bench --batch=100 --duration=10s           batches, in binary frames
  sidecar bench --rate=1000 --producers=1 --json     latency at a steady rate`,
		Args: cobra.MatchAll(cobra.NoArgs, func(*cobra.Command, []string) error { return o.check() }),
	}
	socket := addSocketFlag(cmd)
	f := cmd.Flags()
	f.IntVar(&o.producers, "producers", 8, "producers, each with a connection")
	f.IntVar(&o.consumers, "consumers", 4, "consumers of each group, each with a connection; 0: publish alone")
	f.IntVar(&o.groups, "groups", 1, "groups, each of which gets every message")
	f.StringVar(&o.groupType, "type", string(core.Ordered), "ordered or queue: how the consumers of a group share its messages")
	f.IntVar(&o.partitions, "partitions", 4, "partitions of the topic; an ordered group has no more consumers at work")
	f.StringVar(&o.payload, "payload", "256B", "size of a payload")
	f.IntVar(&o.batch, "batch", 1, "messages in a publish request, and at most in a poll's answer")
	f.DurationVar(&o.duration, "duration", 5*time.Second, "how long to publish")
	f.Float64Var(&o.rate, "rate", 0, "messages a second, of all producers together (default: as fast as the broker answers)")
	f.StringVar(&o.format, "format", string(loadgen.Frames), "frames or json: how batches travel")
	f.IntVar(&o.inFlight, "in-flight", 0, "messages published and not yet delivered, at most (default: what 8MiB hold)")
	f.IntVar(&o.threads, "threads", 1, "threads of the load")
	f.BoolVar(&o.json, "json", false, "print the result as JSON, and no progress")
	cmd.RunE = func(*cobra.Command, []string) error {
		return p.talk(*socket, dialOnce, func(ctx context.Context, c *client.Client) error {
			return o.run(ctx, p, c)
		})
	}
	return cmd
}

// check finds flags that cannot be used, and completes o.
func (o *benching) check() error {
	size, err := units.ParseSize(o.payload)
	if err != nil {
		return err
	}
	o.size = int(size)
	for _, f := range []struct {
		name        string
		value       int
		least, most int
	}{
		{"producers", o.producers, 1, 1000},
		{"consumers", o.consumers, 0, core.MaxMembers},
		{"groups", o.groups, 1, core.MaxGroups},
		{"partitions", o.partitions, 1, core.MaxPartitions},
		{"payload", o.size, loadgen.MinPayload, core.MaxBatchBytes},
		{"batch", o.batch, 1, core.MaxBatchMessages},
		{"threads", o.threads, 1, 64},
		{"in-flight", o.inFlight, 0, core.MaxCapacity},
	} {
		if f.value < f.least || f.value > f.most {
			return fmt.Errorf("cannot use --%s=%d: it is %d to %d", f.name, f.value, f.least, f.most)
		}
	}
	switch {
	case o.groupType != string(core.Ordered) && o.groupType != string(core.Queue):
		return fmt.Errorf("cannot use --type=%s: it is ordered or queue", o.groupType)
	case o.format != string(loadgen.Frames) && o.format != string(loadgen.JSON):
		return fmt.Errorf("cannot use --format=%s: it is frames or json", o.format)
	case o.rate < 0:
		return fmt.Errorf("cannot use --rate=%v: it is 0 or more", o.rate)
	case o.duration <= 0:
		return fmt.Errorf("cannot use --duration=%v: it is more than 0", o.duration)
	}
	if o.inFlight > 0 && o.inFlight < o.batch {
		return fmt.Errorf("cannot use --in-flight=%d: it is %d, a batch, at least", o.inFlight, o.batch)
	}
	if o.inFlight == 0 {
		const room = 8 << 20 // half of what a broker has in a pod with the least memory
		o.inFlight = max(room/(o.size+core.MessageOverhead), 2*o.producers*o.batch)
	}
	return nil
}

func (o *benching) work() loadgen.Work {
	return loadgen.Work{
		Producers: o.producers, Consumers: o.consumers * o.groups, Groups: o.groups,
		Batch: o.batch, Size: o.size, Rate: o.rate, Duration: o.duration, Window: o.inFlight,
	}
}

// run makes the topic, puts the load on it, and shows what came of it.
func (o *benching) run(ctx context.Context, p *process, c *client.Client) (err error) {
	topic := "bench-" + strconv.Itoa(os.Getpid()) + "-" + strconv.FormatInt(time.Now().UnixMilli(), 36)
	if err := o.prepare(ctx, c, topic); err != nil {
		return err
	}
	defer func() {
		bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbyeTime)
		defer cancel()
		deleted := c.DeleteTopic(bye, topic)
		if err == nil {
			err = deleted
		}
	}()
	b := loadgen.Broker{Network: "unix", Address: c.Address(), Topic: topic, Format: loadgen.Format(o.format)}
	if strings.HasPrefix(b.Address, "http://") {
		u, err := url.Parse(b.Address)
		if err != nil {
			return err
		}
		b.Network, b.Address = "tcp", u.Host
	}
	m := loadgen.NewMeter(o.work())
	talks, err := b.Talks(ctx, m)
	if err != nil {
		return err
	}
	stop := func() {}
	if !o.json {
		stop = showProgress(p.stderr, m.Tally)
	}
	err = loadgen.Drive(ctx, m.Tally, o.threads, talks, func() error { return acknowledged(ctx, c, topic) })
	stop()
	if err != nil {
		return err
	}
	return newBenchResult(o, m).write(p.stdout, o.json)
}

// prepare makes the topic, its groups, and their members, so that nothing is
// handed over between members during the run.
func (o *benching) prepare(ctx context.Context, c *client.Client, topic string) error {
	spec := core.TopicSpec{Partitions: core.Some(o.partitions), Capacity: core.Some(core.MaxCapacity)}
	if _, err := c.CreateTopic(ctx, topic, spec); err != nil || o.consumers == 0 {
		return err
	}
	for i := range o.groups {
		g := core.GroupSpec{Type: core.Some(core.GroupType(o.groupType))}
		if _, err := c.CreateGroup(ctx, topic, loadgen.Group(i), g); err != nil {
			return err
		}
	}
	for i := range o.consumers * o.groups {
		if _, _, err := c.Join(ctx, topic, loadgen.Group(i%o.groups), loadgen.Member(i)); err != nil {
			return err
		}
	}
	return nil
}

// acknowledged waits until the broker says that all is acknowledged.
func acknowledged(ctx context.Context, c *client.Client, topic string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbyeTime)
	defer cancel()
	for {
		t, err := c.Topic(ctx, topic)
		if err != nil {
			return fmt.Errorf("cannot see all messages acknowledged: %w", err)
		}
		var lag int64
		for _, part := range t.Partitions {
			for _, g := range part.Groups {
				lag += g.Lag
			}
		}
		if lag == 0 {
			return nil
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("cannot trust this run: %d messages were delivered and never acknowledged", lag)
		}
	}
}
