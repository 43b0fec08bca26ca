package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/podmq/podmq/pkg/core"
	"github.com/podmq/podmq/pkg/transport/client"
)

// dialOnce makes a command say at once that nobody is there. A person who wants
// to wait says so with probe --wait.
const dialOnce = -1

// goodbyeTime is what a command gives its last words to the broker.
const goodbyeTime = 2 * time.Second

// addSocketFlag gives a command the flag that says where the broker is.
func addSocketFlag(cmd *cobra.Command) *string {
	return cmd.Flags().String("socket", "", "path of the broker's socket, or http://127.0.0.1:port (default $PODMQ_SOCKET, else "+client.DefaultSocket+")")
}

// A call is one command's work with a broker.
type call func(ctx context.Context, c *client.Client) error

// talk runs a command's work, until it ends or a signal comes, and makes a
// sentence of what went wrong.
func (p *process) talk(socket string, dialRetry time.Duration, work call) error {
	c, err := client.New(client.Config{Address: socket, DialRetry: dialRetry})
	if err != nil {
		return sentence(err, socket)
	}
	defer c.Close()
	ctx, cancel := p.untilSignal()
	defer cancel()
	return sentence(work(ctx, c), c.Address())
}

// errInterrupted is why a context of untilSignal ended.
var errInterrupted = errors.New("interrupted")

// untilSignal is a context that a signal ends. The function that comes with it
// must be called.
func (p *process) untilSignal() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-p.signals:
			cancel(errInterrupted)
		case <-ctx.Done():
		}
	})
	return ctx, func() {
		cancel(nil)
		watch.Wait()
	}
}

// sentence is err as a person should read it.
func sentence(err error, address string) error {
	var refused *core.Error
	var dial *net.OpError
	switch {
	case errors.As(err, &refused):
		return fmt.Errorf("%s (%s)", refused.Detail, refused.Code)
	case errors.As(err, &dial) && dial.Op == "dial":
		return fmt.Errorf("cannot reach a broker at %s: %w; is it running, and is PODMQ_SOCKET or --socket right?", address, dial.Err)
	}
	return err
}

// memberName is how a command names itself in a group.
func memberName() string {
	host, err := os.Hostname()
	if err != nil || core.CheckMember(host) != nil || len(host) > 100 {
		host = "cli"
	}
	return host + ":" + strconv.Itoa(os.Getpid())
}
