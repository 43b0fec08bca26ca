package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/podmq/podmq/pkg/core"
	"github.com/podmq/podmq/pkg/core/memory"
	"github.com/podmq/podmq/pkg/transport"
	"github.com/podmq/podmq/pkg/transport/ops"
)

// Exit codes.
const (
	exitOK       = 0
	exitFailure  = 1
	exitSettings = 2 // settings, or a command line, that cannot be used
)

// process is what the world hands to the program, so that a test can hand over
// another.
type process struct {
	args           []string
	stdin          io.Reader
	stdout, stderr io.Writer
	signals        <-chan os.Signal
	terminationLog string // where the reason of an exit goes as well, if it exists
}

// run carries out one command line and returns the exit code.
func run(p *process) int {
	root, began := newRootCommand(p)
	command, err := root.ExecuteC()
	var bad settingsFaults
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &bad):
		fmt.Fprintln(p.stderr, err)
		return exitSettings
	case !began():
		fmt.Fprintf(p.stderr, "sidecar: %v\nTry '%s --help'.\n", err, command.CommandPath())
		return exitSettings
	case errors.Is(err, errLogged):
		return exitFailure
	}
	fmt.Fprintf(p.stderr, "sidecar: %v\n", err)
	return exitFailure
}

// errLogged ends the program with a failure whose reason stands in the log.
var errLogged = errors.New("cannot go on")

// A broker is all that runs while the program serves. It starts from left to
// right, and ends from right to left:
//
//	signals ─► settings ─► engine ─► topics, ─► health and ─► loopback ─► socket ─► serving
//	(main.go)  (config.go) (memory)  groups     metrics        TCP         (bound)   ready
//
//	engine  ◄─ listeners, health ◄─ answers ◄─ container mode: ◄─ parked calls ◄─ SIGTERM
//	closed     and metrics closed   written    drain.go           answered        not ready
//
// So no client meets a broker without its topics, and nothing of the broker ends
// under a call that still runs.
type broker struct {
	config   config
	logger   *slog.Logger
	health   ops.Health
	engine   core.Engine
	server   *transport.Server
	clients  []net.Listener // of the API
	metrics  net.Listener
	ops      *http.Server
	serving  sync.WaitGroup
	failures chan error // what ended a listener before its time
}

const (
	// shutdownTime is what answers get that are being written when the broker
	// leaves. The kubelet gives a native sidecar two seconds where the app has
	// used up the grace period.
	shutdownTime = 1500 * time.Millisecond
	// headerTime bounds what a silent client costs the port of health and
	// metrics.
	headerTime = 5 * time.Second
)

// startBroker starts everything, or leaves nothing behind.
func startBroker(c config, logger *slog.Logger) (*broker, error) {
	b := &broker{
		config: c,
		logger: logger,
		engine: memory.New(memory.Options{Topic: c.topicSettings(), MaxBytes: int64(c.MaxBytes), Logger: logger}),
	}
	b.server = transport.NewServer(transport.Config{
		Engine:          b.engine,
		Logger:          logger,
		MaxMessageBytes: int(c.MaxMessageBytes),
		TopicAdmin:      bool(c.TopicAdmin),
		InflightBytes:   int64(c.MaxBytes) / 2,
	})
	b.ops = &http.Server{
		Handler: ops.NewHandler(ops.Config{
			Engine:     b.engine.Stats,
			Server:     b.server.Stats,
			Health:     &b.health,
			Build:      build(),
			Start:      time.Now(),
			Logger:     logger,
			Partitions: bool(c.MetricsPartitions),
		}),
		ReadHeaderTimeout: headerTime,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
	err := b.declare()
	if err == nil {
		err = b.listen()
	}
	if err != nil {
		b.close()
		return nil, err
	}
	b.serve()
	return b, nil
}

// declare creates the topics and groups of the settings.
func (b *broker) declare() error {
	ctx := context.Background() // nothing here waits
	for _, d := range b.config.declarations() {
		if _, err := b.engine.CreateTopic(ctx, d.topic, d.spec); err != nil {
			return settingsFaults{fmt.Errorf("PODMQ_TOPICS: topic %s: %s", d.topic, detail(err))}
		}
		for _, g := range d.groups {
			if _, err := b.engine.CreateGroup(ctx, d.topic, g.name, g.spec); err != nil {
				return settingsFaults{fmt.Errorf("PODMQ_GROUPS: group %s/%s: %s", d.topic, g.name, detail(err))}
			}
		}
	}
	b.health.TopicsDeclared()
	return nil
}

// listen binds everything before anything is served. The socket comes last: once
// it is there, nothing can fail any more.
func (b *broker) listen() (err error) {
	c := &b.config
	b.metrics, err = net.Listen("tcp", string(c.MetricsAddr))
	if err != nil {
		return fmt.Errorf("cannot listen for health and metrics on %s: %w", c.MetricsAddr, err)
	}
	if c.HTTPAddr != "" {
		l, err := transport.ListenLoopback(string(c.HTTPAddr))
		if err != nil {
			return err
		}
		b.clients = append(b.clients, l)
	}
	socket, err := transport.Listen(string(c.Socket), os.FileMode(c.SocketMode))
	if err != nil {
		return err
	}
	b.clients = append(b.clients, socket)
	return nil
}

func (b *broker) serve() {
	b.failures = make(chan error, len(b.clients)+1)
	for _, l := range b.clients {
		b.serving.Go(func() {
			if err := b.server.Serve(l); err != nil {
				b.failures <- fmt.Errorf("cannot go on serving %s: %w", l.Addr(), err)
			}
		})
	}
	b.serving.Go(func() {
		if err := b.ops.Serve(b.metrics); !errors.Is(err, http.ErrServerClosed) {
			b.failures <- fmt.Errorf("cannot go on serving health and metrics on %s: %w", b.metrics.Addr(), err)
		}
	})
	b.health.SocketBound()
}

// leave ends the broker as a SIGTERM asks. A second signal cuts a drain short.
func (b *broker) leave(signals <-chan os.Signal) {
	b.health.Draining()
	b.engine.Drain()
	if b.config.SidecarMode == container {
		why := drain(time.Duration(b.config.DrainTimeout), signals, b.engine.Stats, b.server.Stats)
		b.logger.Info("drained", "ended_by", why)
	}
	b.close()
}

// close frees everything that was started; what takes longer than shutdownTime
// is cut off.
func (b *broker) close() {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTime)
	defer cancel()
	if err := b.server.Shutdown(ctx); err != nil {
		b.logger.Warn("some answers were cut off", "error", err)
	}
	for _, l := range b.clients {
		_ = l.Close() // closed already where it was served
	}
	_ = b.ops.Close()
	if b.metrics != nil {
		_ = b.metrics.Close() // likewise
	}
	b.serving.Wait()
	if err := b.engine.Close(); err != nil {
		b.logger.Warn("cannot close the engine", "error", err)
	}
}
