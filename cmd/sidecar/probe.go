package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/podmq/podmq/pkg/transport/client"
)

// probeTime is what an answer may take. The liveness probes of Kubernetes have a
// second by default.
const probeTime = time.Second

func newProbeCommand(p *process) *cobra.Command {
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "probe",
		Short: "Exit 0 when a broker answers on the socket",
		Long: `Exit 0 when a broker answers on the socket, 1 when none does.

With --wait it keeps trying that long, for a container that must not start
before its broker.`,
		Example: `  sidecar probe
  sidecar probe --wait=10s && exec worker`,
		Args: cobra.NoArgs,
	}
	socket := addSocketFlag(cmd)
	cmd.Flags().DurationVar(&wait, "wait", 0, "keep trying this long, such as 10s")
	cmd.RunE = func(*cobra.Command, []string) error {
		dialRetry := wait
		if wait <= 0 {
			dialRetry = dialOnce
		}
		return p.talk(*socket, dialRetry, func(ctx context.Context, c *client.Client) error {
			ctx, cancel := context.WithTimeout(ctx, max(wait, 0)+probeTime)
			defer cancel()
			topics, err := c.Topics(ctx)
			if err == nil {
				_, err = fmt.Fprintf(p.stdout, "a broker answers at %s: epoch %s, %d topics\n", c.Address(), c.Epoch(), len(topics))
			}
			return err
		})
	}
	return cmd
}
