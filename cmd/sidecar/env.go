package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newEnvCommand(p *process) *cobra.Command {
	return &cobra.Command{
		Use:   "env",
		Short: "Print every variable with its default and meaning",
		Long: `Print every variable that the broker reads, with its default and its meaning.

An empty variable counts as absent. Durations carry their unit (250ms, 30s, 2m),
sizes too (64KiB, 1MiB). The broker logs the settings in force when it starts.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			c := defaults()
			for _, v := range c.variables() {
				if v.value == "" {
					v.value = "none"
				}
				if _, err := fmt.Fprintf(p.stdout, "%s\n    %s\n    default: %s\n", v.name, v.meaning, v.value); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
