package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/podmq/podmq/pkg/core"
	"github.com/podmq/podmq/pkg/transport/client"
)

// publishing is what the flags of publish say.
type publishing struct {
	key         string
	headers     []string
	contentType string
	sender      string
	id          string
	wait        time.Duration
	partition   int
	lines       bool
	quiet       bool

	hasKey       bool
	hasPartition bool
}

func newPublishCommand(p *process) *cobra.Command {
	var o publishing
	cmd := &cobra.Command{
		Use:   "publish TOPIC [PAYLOAD...]",
		Short: "Publish messages",
		Long: `Publish each PAYLOAD as one message. Without one, the payload is what comes on
standard input, to its end; with --lines, each line of it is one message.

Prints where each message was stored. Where the topic is full and stays so for
--wait, it says so and exits 1: then that message is not stored, nor are those
behind it.`,
		Example: `  sidecar publish orders 'hello' --key=user-a
  sidecar publish orders --header=source=cli --content-type=application/json <order.json
  tail -f app.log | sidecar publish logs --lines --wait=30s`,
		Args: cobra.MatchAll(cobra.MinimumNArgs(1), func(_ *cobra.Command, args []string) error {
			if o.lines && len(args) > 1 {
				return errors.New("cannot publish PAYLOAD and --lines at once: lines come on standard input")
			}
			_, err := o.message()
			return err
		}),
	}
	socket := addSocketFlag(cmd)
	f := cmd.Flags()
	f.StringVar(&o.key, "key", "", "key: messages of one key stay in order")
	f.StringArrayVar(&o.headers, "header", nil, "header of the message, name=value; may be repeated")
	f.StringVar(&o.contentType, "content-type", "", "content type of the payload")
	f.StringVar(&o.sender, "sender", "", "who publishes")
	f.StringVar(&o.id, "id", "", "id of the message")
	f.DurationVar(&o.wait, "wait", 0, "how long to wait for room, up to 60s")
	f.IntVar(&o.partition, "partition", 0, "partition, instead of the key's")
	f.BoolVar(&o.lines, "lines", false, "each line of standard input is one message")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "do not print where messages were stored")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		o.hasKey, o.hasPartition = f.Changed("key"), f.Changed("partition")
		like, err := o.message()
		if err != nil {
			return err
		}
		return p.talk(*socket, dialOnce, func(ctx context.Context, c *client.Client) error {
			return publish(ctx, p, c, &o, args[0], like, args[1:])
		})
	}
	return cmd
}

// message is what the flags say of each message.
func (o *publishing) message() (m client.Message, err error) {
	m = client.Message{ContentType: o.contentType, Sender: o.sender, ID: o.id}
	if o.hasKey {
		m.Key = []byte(o.key)
	}
	for _, h := range o.headers {
		name, value, ok := strings.Cut(h, "=")
		if !ok {
			return m, fmt.Errorf("cannot read --header=%.80q: it is name=value", h)
		}
		m.Headers = append(m.Headers, client.Header{Name: strings.ToLower(name), Value: value})
	}
	return m, nil
}

func publish(ctx context.Context, p *process, c *client.Client, o *publishing, topic string, like client.Message, payloads []string) error {
	stored := 0
	send := func(payloads [][]byte) error {
		n, err := o.send(ctx, p.stdout, c, topic, like, payloads)
		stored += n
		if err != nil && stored > 0 {
			return fmt.Errorf("%w; %d messages before it were stored", sentence(err, c.Address()), stored)
		}
		return err
	}
	switch {
	case o.lines:
		return eachLines(p.stdin, send)
	case len(payloads) == 0:
		body, err := io.ReadAll(io.LimitReader(p.stdin, core.MaxBatchBytes+1))
		if err != nil {
			return fmt.Errorf("cannot read the payload from standard input: %w", err)
		}
		return send([][]byte{body})
	}
	for _, payload := range payloads {
		if err := send([][]byte{[]byte(payload)}); err != nil {
			return err
		}
	}
	return nil
}

// send publishes the payloads as one batch, stored whole or not at all.
func (o *publishing) send(ctx context.Context, out io.Writer, c *client.Client, topic string, like client.Message, payloads [][]byte) (stored int, err error) {
	options := []client.PublishOption{client.Wait(o.wait)}
	var placed []client.Placement
	if o.hasPartition {
		options = append(options, client.ToPartition(o.partition))
		for _, payload := range payloads {
			like.Payload = payload
			at, err := c.Publish(ctx, topic, like, options...)
			if err != nil {
				return len(placed), err
			}
			placed = append(placed, at)
		}
	} else {
		batch := make([]client.Message, len(payloads))
		for i, payload := range payloads {
			batch[i] = like
			batch[i].Payload = payload
		}
		if placed, err = c.PublishBatch(ctx, topic, batch, options...); err != nil {
			return 0, err
		}
	}
	if o.quiet {
		return len(placed), nil
	}
	for _, at := range placed {
		if _, err := fmt.Fprintf(out, "partition %d offset %d\n", at.Partition, at.Offset); err != nil {
			return len(placed), err
		}
	}
	return len(placed), nil
}

const (
	// linesAtOnce and lineBytesAtOnce bound a batch of lines.
	linesAtOnce     = 1000
	lineBytesAtOnce = 1 << 20
)

// eachLines calls send with the lines of in, as many at once as are there
// without waiting: a file goes in batches, a typed line at once.
func eachLines(in io.Reader, send func([][]byte) error) error {
	r := bufio.NewReaderSize(in, 64<<10)
	var lines [][]byte
	size := 0
	for {
		line, err := r.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("cannot read a line from standard input: %w", err)
		}
		if len(line) > 0 {
			lines = append(lines, bytes.TrimSuffix(line, []byte("\n")))
			size += len(line)
		}
		more := err == nil && hasLine(r) && len(lines) < linesAtOnce && size < lineBytesAtOnce
		if len(lines) > 0 && !more {
			if err := send(lines); err != nil {
				return err
			}
			lines, size = lines[:0], 0
		}
		if err != nil {
			return nil
		}
	}
}

// hasLine reports whether r can give a whole line without waiting.
func hasLine(r *bufio.Reader) bool {
	waiting, _ := r.Peek(r.Buffered())
	return bytes.IndexByte(waiting, '\n') >= 0
}
