package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/podmq/podmq/pkg/transport/client"
	"github.com/podmq/podmq/pkg/transport/units"
)

// clearScreen moves a terminal's cursor home and clears what is below (ECMA-48).
const clearScreen = "\x1b[H\x1b[2J"

func newTopicsCommand(p *process) *cobra.Command {
	var watch bool
	var every time.Duration
	cmd := &cobra.Command{
		Use:   "topics [TOPIC...]",
		Short: "Show partitions, groups and lag",
		Long: `Show the topics of a broker, a line for each partition and group.

START and END are the offsets that the partition holds, [START, END). BACKLOG is
what its slowest group has not acknowledged, of what the partition can hold; a
publisher has to wait when it is full. COMMITTED is where the group's
acknowledged messages end, NEXT what it gets next, LAG what it has not
acknowledged. OWNER has the partition; LEASE is what is left of the lease on what
was handed out.`,
		Example: `  sidecar topics
  sidecar topics orders --watch`,
	}
	socket := addSocketFlag(cmd)
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "show them again and again, until interrupted")
	cmd.Flags().DurationVar(&every, "every", time.Second, "how often, with --watch")
	cmd.RunE = func(_ *cobra.Command, names []string) error {
		show := func(ctx context.Context, c *client.Client) error {
			topics, err := fetchTopics(ctx, c, names)
			if err != nil {
				return err
			}
			return writeTopics(p.stdout, topics)
		}
		if !watch {
			return p.talk(*socket, dialOnce, show)
		}
		return p.talk(*socket, dialOnce, func(ctx context.Context, c *client.Client) error {
			return repeat(ctx, every, func() error {
				if _, err := io.WriteString(p.stdout, clearScreen); err != nil {
					return err
				}
				return show(ctx, c)
			})
		})
	}
	return cmd
}

// repeat calls f at once and then every so often, until it fails or ctx ends,
// which is no failure.
func repeat(ctx context.Context, every time.Duration, f func() error) error {
	tick := time.NewTicker(max(every, 50*time.Millisecond))
	defer tick.Stop()
	for {
		if err := f(); err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// fetchTopics looks at the topics named, or at all.
func fetchTopics(ctx context.Context, c *client.Client, names []string) ([]client.Topic, error) {
	if len(names) == 0 {
		return c.Topics(ctx)
	}
	var topics []client.Topic
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		t, err := c.Topic(ctx, name)
		if err != nil {
			return nil, err
		}
		topics = append(topics, t)
	}
	return topics, nil
}

func writeTopics(to io.Writer, topics []client.Topic) error {
	if len(topics) == 0 {
		_, err := fmt.Fprintln(to, "no topics; create one with PODMQ_TOPICS or PUT /v1/topics/NAME")
		return err
	}
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TOPIC\tPARTITION\tSTART\tEND\tBACKLOG\tBYTES\tGROUP\tCOMMITTED\tNEXT\tLAG\tOWNER\tLEASE")
	for i := range topics {
		t := &topics[i]
		for j := range t.Partitions {
			writePartition(w, t, &t.Partitions[j])
		}
	}
	return w.Flush()
}

func writePartition(w io.Writer, t *client.Topic, p *client.Partition) {
	left := fmt.Sprintf("%s\t%d\t%d\t%d\t%d/%d\t%s", t.Name, p.Partition, p.Start, p.End, p.Backlog, t.Settings.Capacity, units.FormatSize(p.Bytes))
	if len(p.Groups) == 0 {
		fmt.Fprintf(w, "%s\t-\t-\t-\t-\t-\t-\n", left)
	}
	for _, g := range p.Groups {
		owner, lease := "-", "-"
		if g.Owner != "" {
			owner = g.Owner
		}
		if g.Lease > 0 {
			lease = g.Lease.Truncate(time.Second / 10).String()
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%s\t%s\n", left, g.Group, g.Committed, g.Next, g.Lag, owner, lease)
	}
}
