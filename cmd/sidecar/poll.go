package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/podmq/podmq/pkg/core"
	"github.com/podmq/podmq/pkg/transport/client"
)

// polling is what the flags of poll say.
type polling struct {
	member string
	max    int
	wait   time.Duration
	ack    bool
	follow bool
	format format
}

func newPollCommand(p *process) *cobra.Command {
	o := polling{format: formatText}
	cmd := &cobra.Command{
		Use:   "poll TOPIC GROUP",
		Short: "Take messages of a group",
		Long: `Take messages of a group, as one more member of it, and print them.

With --ack they are acknowledged once they are printed, and the group never gets
them again. Without, they come back at once when the command ends, and nobody's
attempts are counted. While it runs, an ordered group gives it a share of the
partitions; when it ends, it leaves the group, and they go back.

To look at a topic without taking anything from a group, use 'sidecar tail'.`,
		Example: `  sidecar poll orders billing                look at what comes next
  sidecar poll orders billing --ack --max=1  take one
  sidecar poll orders billing --ack --follow be a consumer, until interrupted`,
		Args: cobra.MatchAll(cobra.ExactArgs(2), func(*cobra.Command, []string) error {
			if o.follow && !o.ack {
				return errors.New("cannot follow without --ack: the group would hand out nothing beyond the first batch; use 'sidecar tail' to look on")
			}
			return nil
		}),
	}
	socket := addSocketFlag(cmd)
	f := cmd.Flags()
	f.StringVar(&o.member, "member", "", "name in the group (default: host and process)")
	f.IntVar(&o.max, "max", core.DefaultPollMax, "messages at once, up to 10000")
	f.DurationVar(&o.wait, "wait", 0, "how long to wait for messages when there are none, up to 60s")
	f.BoolVar(&o.ack, "ack", false, "acknowledge what was printed")
	f.BoolVarP(&o.follow, "follow", "f", false, "go on until interrupted; needs --ack")
	f.VarP(&o.format, "output", "o", formatUsage)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if o.member == "" {
			o.member = memberName()
		}
		return p.talk(*socket, dialOnce, func(ctx context.Context, c *client.Client) error {
			return poll(ctx, p, c, args[0], args[1], &o)
		})
	}
	return cmd
}

// poll takes one batch, or follows, and leaves the group whatever happens.
func poll(ctx context.Context, p *process, c *client.Client, topic, group string, o *polling) (err error) {
	defer func() {
		bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbyeTime)
		defer cancel()
		left := c.Leave(bye, topic, group, o.member)
		if err == nil {
			err = left
		}
	}()
	if o.follow {
		return follow(ctx, p, c, topic, group, o)
	}
	b, err := c.Poll(ctx, topic, group, client.PollRequest{Member: o.member, Max: o.max, Wait: o.wait})
	if errors.Is(err, errInterrupted) {
		return nil
	}
	if err != nil || len(b.Messages) == 0 {
		return err
	}
	if err := o.format.write(p.stdout, b.Messages); err != nil || !o.ack {
		return err
	}
	_, err = c.Ack(context.WithoutCancel(ctx), topic, group, b.Receipt)
	return err
}

// followWait is how long each poll of follow parks.
const followWait = 30 * time.Second

// follow prints and acknowledges until ctx ends, which is no error. Each poll
// acknowledges what the one before printed.
func follow(ctx context.Context, p *process, c *client.Client, topic, group string, o *polling) error {
	request := client.PollRequest{Member: o.member, Max: o.max, Wait: followWait}
	for {
		b, err := c.Poll(ctx, topic, group, request)
		if core.CodeOf(err) == core.CodeStaleReceipt {
			// Printing took longer than the lease. They come again, from the first
			// that is not acknowledged.
			request.Acks = nil
			continue
		}
		if err != nil {
			if ctx.Err() != nil {
				return ackLast(ctx, c, topic, group, request.Acks)
			}
			return err
		}
		request.Acks = nil
		if len(b.Messages) == 0 {
			continue
		}
		if err := o.format.write(p.stdout, b.Messages); err != nil {
			return err
		}
		request.Acks = []string{b.Receipt}
	}
}

// ackLast acknowledges what was printed last before the interruption.
func ackLast(ctx context.Context, c *client.Client, topic, group string, receipts []string) error {
	if len(receipts) == 0 {
		return nil
	}
	bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbyeTime)
	defer cancel()
	_, err := c.Ack(bye, topic, group, receipts...)
	if core.CodeOf(err) == core.CodeStaleReceipt {
		return nil // they come again: at least once
	}
	return err
}
