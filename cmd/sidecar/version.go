package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/podmq/podmq/pkg/transport/ops"
)

// version is set by the linker: -X main.version=v1.2.3. Without, the module's
// own version and the commit say which program this is.
var version string

func build() ops.Build {
	b := ops.Build{Version: version, Revision: "unknown", GoVersion: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if ok {
		if b.Version == "" {
			b.Version = info.Main.Version
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				b.Revision = s.Value
			}
		}
	}
	if b.Version == "" {
		b.Version = "(devel)"
	}
	return b
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
