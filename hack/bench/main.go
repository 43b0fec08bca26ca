// Bench measures PodMQ beside what people would use instead, in one run on one
// machine with the same work: Redis Streams, beanstalkd, NATS JetStream with
// memory storage, and, as the ceiling, a bare Go server that only exchanges as
// many bytes.
//
// All are driven by the same event loops (pkg/transport/loadgen), each in its own
// protocol with no library between. They take short turns, beginning with another
// one each round, so that a noisy machine hits all alike; ratios are of turns of
// the same round, and of everything the median and the spread is shown. A turn
// counts only if every message was delivered, no other was, and the broker itself
// says in the end that all is acknowledged.
//
// It runs in two settings: the server pinned to one core and the load to another,
// and both on all cores. README.md beside it says how each system is used.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// measureCommand is the argument with which this program measures one setting,
// in a process of its own, on the cores that are the load's.
const measureCommand = "measure"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) > 0 {
		switch args[0] {
		case natsCommand:
			return serveNATS(args[1], args[2])
		case pingPongCommand:
			return servePingPong(args[1])
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	one := ""
	if len(args) > 1 && args[0] == measureCommand {
		one, args = args[1], args[2:]
	}
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	o := options{progress: os.Stderr}
	sidecar := f.String("sidecar", "bin/sidecar", "the program to measure")
	out := f.String("out", "dist/bench", "directory for the results")
	only := f.String("only", "", "regular expression: the experiments to make")
	who := f.String("systems", "", "regular expression: the systems to measure")
	settings := f.String("settings", "pinned,all-cores", "the settings to measure in")
	f.IntVar(&o.rounds, "rounds", 5, "turns of each system in each experiment")
	f.DurationVar(&o.turn, "turn", time.Second, "how long producers publish in a turn")
	noFacts := f.Bool("skip-facts", false, "measure no start times and no memory")
	if err := f.Parse(args); err != nil {
		return err
	}
	var err error
	if o.only, err = regexp.Compile("^(" + *only + ".*)$"); err != nil {
		return err
	}
	if o.who, err = regexp.Compile("^(" + *who + ".*)$"); err != nil {
		return err
	}
	if o.sidecar, err = filepath.Abs(*sidecar); err != nil {
		return err
	}
	if one != "" {
		results, err := measure(ctx, setting(one), &o)
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(results)
	}
	r := report{When: time.Now().UTC(), Rounds: o.rounds, Turn: o.turn.String(), Results: make(map[setting][]*result)}
	if r.Machine, err = machine(o.sidecar); err != nil {
		return err
	}
	for name := range strings.SplitSeq(*settings, ",") {
		set := setting(name)
		if r.Results[set], err = measureApart(set, args); err != nil {
			return err
		}
	}
	if !*noFacts {
		if r.Facts, err = facts(ctx, &o); err != nil {
			return err
		}
	}
	return r.write(*out)
}

// measureApart measures one setting in a process of its own.
func measureApart(set setting, args []string) (results []*result, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := set.command(loadCore, self, append([]string{measureCommand, string(set)}, args...)...)
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("cannot measure with %s: %w", set, err)
	}
	return results, json.Unmarshal(out, &results)
}
