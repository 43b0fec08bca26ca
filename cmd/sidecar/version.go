package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/podmq/podmq/pkg/transport/ops"
)

// version and revision are set by the linker: -X main.version=v1.2.3. Without,
// what Go itself knows of the module and the commit says which program this is.
var version, revision string

func build() ops.Build {
	var module, commit string
	if info, ok := debug.ReadBuildInfo(); ok {
		module = info.Main.Version
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				commit = s.Value
			}
		}
	}
	return ops.Build{
		Version:   cmp.Or(version, module, "(devel)"),
		Revision:  cmp.Or(revision, commit, "unknown"),
		GoVersion: runtime.Version(),
	}
}

func newVersionCommand(p *process) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print which program this is",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			b := build()
			_, err := fmt.Fprintf(p.stdout, "sidecar %s (commit %s, %s, %s/%s)\n", b.Version, b.Revision, b.GoVersion, runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
