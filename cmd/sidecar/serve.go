package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
)

func newServeCommand(p *process) *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Run the broker (what sidecar does without a command)",
		Long: `Run the broker until SIGTERM or SIGINT.

All settings come from the environment; 'sidecar env' lists them.

Exit codes: 0 after SIGTERM, 2 when a setting cannot be used, 1 for anything else.`,
		Example: `  sidecar serve
  PODMQ_SOCKET=/tmp/podmq.sock PODMQ_TOPICS='orders?partitions=2&groups=billing,email' sidecar`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return serve(p) },
	}
}

// settingsFaults are all that is wrong with the settings.
type settingsFaults []error

func (f settingsFaults) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = "sidecar: cannot start: " + fault.Error()
	}
	return strings.Join(lines, "\n")
}

// serve runs the broker until a signal comes, which is no error.
func serve(p *process) error {
	limit := memoryLimit(os.DirFS("/"))
	c, faults := loadConfig(limit)
	if len(faults) > 0 {
		err := settingsFaults(faults)
		writeTermination(p.terminationLog, err.Error())
		return err
	}
	logger := newLogger(p, &c)
	tuneRuntime(limit, int64(c.MaxBytes))
	b := build()
	logger.Info("starting", "version", b.Version, "revision", b.Revision, "go", b.GoVersion, "pid", os.Getpid(), "memory_limit", limit, "gomaxprocs", runtime.GOMAXPROCS(0))
	logger.Info("settings in force", "settings", &c)
	warnUnknown(logger, &c)

	err := serveUntilSignal(p, c, logger)
	if err == nil {
		return nil
	}
	writeTermination(p.terminationLog, err.Error())
	if errors.As(err, new(settingsFaults)) {
		return err
	}
	logger.Error("cannot serve", "error", err)
	return errLogged
}

func serveUntilSignal(p *process, c config, logger *slog.Logger) error {
	b, err := startBroker(c, logger)
	if err != nil {
		return err
	}
	addresses := make([]string, len(b.clients))
	for i, l := range b.clients {
		addresses[i] = l.Addr().String()
	}
	logger.Info("serving", "epoch", b.engine.Epoch(), "addresses", addresses, "metrics", b.metrics.Addr().String(), "topics", len(c.Topics.topics))
	select {
	case s := <-p.signals:
		logger.Info("leaving", "signal", s.String(), "mode", string(c.SidecarMode))
		b.leave(p.signals)
		logger.Info("left")
		return nil
	case err := <-b.failures:
		b.health.Draining()
		b.close()
		return err
	}
}

func newLogger(p *process, c *config) *slog.Logger {
	o := &slog.HandlerOptions{Level: slog.Level(c.LogLevel)}
	if c.LogFormat == "text" {
		return slog.New(slog.NewTextHandler(p.stderr, o))
	}
	return slog.New(slog.NewJSONHandler(p.stderr, o))
}

func warnUnknown(logger *slog.Logger, c *config) {
	var known []string
	for _, v := range c.variables() {
		known = append(known, v.name)
	}
	for _, u := range unknownVariables(os.Environ(), known) {
		logger.Warn("unknown variable ignored", "variable", u.name, "nearest", u.nearest,
			"hint", fmt.Sprintf("did you mean %s? 'sidecar env' lists all", u.nearest))
	}
}
