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
	o, err := parse(args)
	if err != nil {
		return err
	}
	if one != "" {
		results, err := measure(ctx, setting(one), o)
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(results)
	}
	r := report{When: time.Now().UTC(), Rounds: o.rounds, Turn: o.turn.String(), Results: make(map[setting][]*result)}
	if r.Machine, err = machine(o.sidecar); err != nil {
		return err
	}
	for _, set := range o.settings {
		if r.Results[set], err = measureApart(set, args); err != nil {
			return err
		}
	}
	if o.facts {
		if r.Facts, err = facts(ctx, o); err != nil {
			return err
		}
	}
	return r.write(o.out)
}

// parse reads the command line.
func parse(args []string) (*options, error) {
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	o := options{progress: os.Stderr}
	f.StringVar(&o.sidecar, "sidecar", "bin/sidecar", "the program to measure")
	f.StringVar(&o.out, "out", "dist/bench", "directory for the results")
	f.IntVar(&o.rounds, "rounds", 5, "turns of each system in each experiment")
	f.DurationVar(&o.turn, "turn", time.Second, "how long producers publish in a turn")
	f.BoolVar(&o.facts, "facts", true, "measure start and memory too")
	only := f.String("only", "", "regular expression: the experiments to make")
	who := f.String("systems", "", "regular expression: the systems to measure")
	settings := f.String("settings", string(pinned)+","+string(allCores), "the settings to measure in")
	err := f.Parse(args)
	if err != nil {
		return nil, err
	}
	for name := range strings.SplitSeq(*settings, ",") {
		if name != string(pinned) && name != string(allCores) {
			return nil, fmt.Errorf("cannot measure in %q: the settings are %s and %s", name, pinned, allCores)
		}
		o.settings = append(o.settings, setting(name))
	}
	if o.rounds < 1 || o.turn <= 0 {
		return nil, fmt.Errorf("cannot make %d rounds of turns of %v", o.rounds, o.turn)
	}
	if o.only, err = regexp.Compile("^(?:" + *only + ")"); err != nil {
		return nil, err
	}
	if o.who, err = regexp.Compile("^(?:" + *who + ")"); err != nil {
		return nil, err
	}
	o.sidecar, err = filepath.Abs(o.sidecar)
	return &o, err
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
