package main

import (
	"github.com/spf13/cobra"
)

// newRootCommand makes the command line. began tells whether it could be read,
// and a command has begun.
func newRootCommand(p *process) (root *cobra.Command, began func() bool) {
	begun := false
	root = &cobra.Command{
		Use:   "sidecar",
		Short: "A message broker inside one pod",
		Long: `PodMQ keeps topics in memory and serves publish, poll and ack over a Unix
socket to the containers of one pod.

Without a command, sidecar runs the broker. The other commands talk to a running
one over its socket: --socket says where it is, else the variable PODMQ_SOCKET,
else /run/podmq/podmq.sock.

Exit codes: 0 all is well, 1 it could not be done, 2 it could not be understood.`,
		Example: `  sidecar                                  run a broker
  sidecar topics --watch                   look at topics, groups and lag
  sidecar publish orders 'hello' --key=a   publish a message
  sidecar tail orders                      see what is published
  kubectl exec POD -c podmq -- /sidecar topics`,
		Args:              cobra.NoArgs,
		RunE:              func(*cobra.Command, []string) error { return serve(p) },
		PersistentPreRun:  func(*cobra.Command, []string) { begun = true },
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SetArgs(p.args)
	root.SetIn(p.stdin)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	root.AddCommand(
		newServeCommand(p),
		newEnvCommand(p),
		newVersionCommand(p),
		newProbeCommand(p),
		newTopicsCommand(p),
		newPublishCommand(p),
		newPollCommand(p),
		newTailCommand(p),
		newBenchCommand(p),
	)
	return root, func() bool { return begun }
}
