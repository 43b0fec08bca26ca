package main

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/spf13/cobra"

	"github.com/podmq/podmq/pkg/core"
	"github.com/podmq/podmq/pkg/transport/client"
)

// tailExpires is how long the group of a tail that was killed goes on holding
// messages back.
const tailExpires = 10 * time.Second

func newTailCommand(p *process) *cobra.Command {
	o := polling{max: 100, ack: true, follow: true, format: formatText}
	var fromStart bool
	cmd := &cobra.Command{
		Use:   "tail TOPIC",
		Short: "See what is published",
		Long: `Print what is published to a topic from now on, until interrupted.

It reads through a group of its own, so it takes nothing from other groups. The
group is deleted when the command ends, and expires by itself when it was killed.
While it runs it is a group like any other: one that is too slow holds publishers
back.`,
		Example: `  sidecar tail orders
  sidecar tail orders --from-start -o json`,
		Args: cobra.ExactArgs(1),
	}
	socket := addSocketFlag(cmd)
	cmd.Flags().BoolVar(&fromStart, "from-start", false, "begin with what is still held for other groups")
	cmd.Flags().VarP(&o.format, "output", "o", formatUsage)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		spec := core.GroupSpec{Expires: core.Some(tailExpires)}
		if fromStart {
			spec.Start = core.Some(core.Earliest)
		}
		o.member = memberName()
		return p.talk(*socket, dialOnce, func(ctx context.Context, c *client.Client) error {
			return tail(ctx, p, c, args[0], spec, &o)
		})
	}
	return cmd
}

func tail(ctx context.Context, p *process, c *client.Client, topic string, spec core.GroupSpec, o *polling) (err error) {
	group := "tail-" + rand.Text()[:8] // never one that is there
	if _, err := c.CreateGroup(ctx, topic, group, spec); err != nil {
		return err
	}
	defer func() {
		bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbyeTime)
		defer cancel()
		deleted := c.DeleteGroup(bye, topic, group)
		if err == nil {
			err = deleted
		}
	}()
	return follow(ctx, p, c, topic, group, o)
}
