package stream

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/podmq/podmq/pkg/core"
)

var rewrite = flag.Bool("rewrite", false, "write what happens into testdata/*.txt")

// A story is the life of one partition as testdata tells it: blocks of commands,
// and below each, after a line of dashes, what they answered and where the
// partition stood then. Times are those since the story began, b1, b2 and so on
// are what polls got.
//
//	partition capacity=3              at the start
//	group NAME ordered|queue [earliest]
//	drop NAME
//	publish o-1 o-2 …
//	poll NAME MEMBER [max=10] [bytes=N] [runs=N] [lease=30s]
//	ack B [OFFSET]…                   all of it; of an ordered group up to an offset, of a queue those
//	nack B [OFFSET] [delay=5s]
//	extend B by=30s
//	unsent B
//	leave NAME MEMBER
//	fence NAME
//	pass DURATION                     step by step, as things become due
//	again N COMMAND                   so many times, each a millisecond later
type story struct {
	*driver
	t     *testing.T
	names map[string]*reader
	got   map[string]*delivery
	out   strings.Builder
}

func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are %d stories in testdata: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s := &story{t: t, names: map[string]*reader{}, got: map[string]*delivery{}}
			var told strings.Builder
			for i, block := range strings.Split(strings.TrimSpace(string(text)), "\n\n") {
				if i > 0 {
					told.WriteString("\n")
				}
				s.tell(&told, block)
			}
			if *rewrite {
				err = os.WriteFile(file, []byte(told.String()), 0o644)
			} else if told.String() != string(text) {
				t.Errorf("%s went otherwise (compare after go test -run TestStories -rewrite):\n%s", file, told.String())
			}
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// tell plays a block and writes it down with what happened.
func (s *story) tell(told *strings.Builder, block string) {
	commands, _, _ := strings.Cut(block, "\n----")
	fmt.Fprintln(told, commands)
	played := false
	for _, line := range strings.Split(commands, "\n") {
		if words := strings.Fields(line); len(words) > 0 && words[0] != "#" {
			s.do(words)
			played = true
		}
	}
	if !played {
		return
	}
	if err := check(s.part); err != nil {
		s.t.Fatalf("%s\n%v", commands, err)
	}
	if got, want := snapshot(s.replayed(), s.now), snapshot(s.part, s.now); got != want {
		s.t.Fatalf("%s\napplied again:\n%s\nwant\n%s", commands, got, want)
	}
	fmt.Fprintf(told, "----\n%s", s.out.String())
	s.out.Reset()
	s.stand(told)
}

func (s *story) do(words []string) {
	args, opts := []string{}, map[string]string{}
	for _, w := range words[1:] {
		if name, value, ok := strings.Cut(w, "="); ok {
			opts[name] = value
		} else {
			args = append(args, w)
		}
	}
	switch words[0] {
	case "partition":
		s.driver = newDriver(s.number(opts["capacity"]))
	case "group":
		start := core.Latest
		if slices.Contains(args, "earliest") {
			start = core.Earliest
		}
		s.names[args[0]] = s.addGroup(core.GroupType(args[1]), start)
	case "drop":
		s.removeGroup(slices.Index(s.readers, s.names[args[0]]))
	case "publish":
		s.publishAll(args)
	case "poll":
		s.pollAs(args[0], args[1], opts)
	case "leave":
		s.left(s.names[args[0]], uint64(s.number(strings.TrimPrefix(args[1], "c"))))
	case "fence":
		s.fence(s.names[args[0]])
	case "again":
		for range s.number(args[0]) {
			s.out.Reset()
			s.now = s.now.Add(time.Millisecond)
			s.do(words[2:])
		}
	case "pass":
		s.pass(s.now.Add(s.duration(args[0])))
	default:
		s.settle(words[0], s.got[args[0]], args, opts)
	}
}

func (s *story) settle(verb string, got *delivery, args []string, opts map[string]string) {
	if got == nil {
		s.t.Fatalf("nobody got %s", args[0])
	}
	var offsets []int64
	for _, a := range args[1:] {
		offsets = append(offsets, int64(s.number(a)))
	}
	var parts []Part
	switch verb {
	case "ack":
		runs := got.runs
		for i, offset := range offsets {
			if i == 0 {
				runs = nil
			}
			if got.of.typ == core.Ordered {
				runs = append(runs, Run{got.runs[0].From, offset + 1})
			} else {
				runs = append(runs, Run{offset, offset + 1})
			}
		}
		parts, _ = s.ack(got, runs...)
	case "nack":
		failed, delay := int64(-1), core.Opt[time.Duration]{}
		if len(offsets) > 0 {
			failed = offsets[0]
		}
		if d, ok := opts["delay"]; ok {
			delay = core.Some(s.duration(d))
		}
		parts, _ = s.nack(got, failed, delay)
	case "extend":
		parts, _ = s.extend(got, s.duration(opts["by"]))
	case "unsent":
		parts, _ = s.unsent(got)
	default:
		s.t.Fatalf("no command is called %s", verb)
	}
	fmt.Fprintf(&s.out, "%s %s:", verb, args[0])
	for _, p := range parts {
		fmt.Fprintf(&s.out, " %v %s", p.Run, [...]string{Done: "done", Current: "current", Late: "late", Stale: "stale"}[p.Verdict])
	}
	s.out.WriteByte('\n')
}

func (s *story) publishAll(payloads []string) {
	for _, payload := range payloads {
		if s.part.Room() == 0 {
			fmt.Fprintf(&s.out, "%s: full\n", payload)
			continue
		}
		fmt.Fprintf(&s.out, "%s: offset %d\n", payload, s.publish(textMessage(s.t, payload)))
	}
}

func (s *story) pollAs(group, member string, opts map[string]string) {
	want := Want{Messages: 10, Bytes: 1 << 20, Runs: 24}
	for name, field := range map[string]*int{"max": &want.Messages, "bytes": &want.Bytes, "runs": &want.Runs} {
		if n, ok := opts[name]; ok {
			*field = s.number(n)
		}
	}
	lease := 30 * time.Second
	if d, ok := opts["lease"]; ok {
		lease = s.duration(d)
	}
	r := s.names[group]
	got := s.poll(r, uint64(s.number(strings.TrimPrefix(member, "c"))), want, lease)
	if got == nil {
		fmt.Fprintf(&s.out, "%s gets nothing\n", member)
		return
	}
	name := fmt.Sprint("b", got.number)
	s.got[name] = got
	fmt.Fprintf(&s.out, "%s gets %s:", member, name)
	for _, run := range got.runs {
		for offset := run.From; offset < run.To; offset++ {
			fmt.Fprintf(&s.out, " %d:%s", offset, s.part.Log().At(offset).Payload())
			if failures, _, _ := r.cursor.History(offset); failures > 0 {
				fmt.Fprintf(&s.out, " (attempt %d)", failures+1)
			}
		}
	}
	s.out.WriteByte('\n')
}

// pass lets time pass until then, and stops at each moment at which something is
// due.
func (s *story) pass(then Instant) {
	for {
		due := then
		for _, r := range s.readers {
			due = min(due, r.cursor.Due(s.now))
		}
		s.now = due
		for name, r := range s.byName() {
			changes, _ := s.expire(r)
			for _, ch := range changes {
				fmt.Fprintf(&s.out, "at %v the lease of %v ends for c%d of %s\n", time.Duration(s.now), Run{ch.From, ch.To}, ch.Member, name)
			}
		}
		if due == then {
			return
		}
	}
}

// byName yields the groups in the order of their coming.
func (s *story) byName() func(yield func(string, *reader) bool) {
	return func(yield func(string, *reader) bool) {
		for _, r := range s.readers {
			for name, other := range s.names {
				if other == r && !yield(name, r) {
					return
				}
			}
		}
	}
}

// stand writes down where the partition stands.
func (s *story) stand(told *strings.Builder) {
	fmt.Fprintf(told, "log %v backlog %d/%d\n", Run{s.part.log.start, s.part.log.end}, s.part.Backlog(), s.capacity)
	for name, r := range s.byName() {
		c := r.cursor
		fmt.Fprintf(told, "%s: committed %d next %d lag %d", name, c.Committed(), c.Next(), c.Unacked(s.part.log.end))
		switch c := c.(type) {
		case *ordered:
			c.stand(told, s.now)
		case *queue:
			c.stand(told, s.now)
		}
		if failed := c.Next(); failed < s.part.log.end || c.InFlight() < c.Next()-c.Committed() {
			for offset := c.Committed(); offset < s.part.log.end; offset++ {
				if n, _, _ := c.History(offset); n > 0 {
					fmt.Fprintf(told, "; %d failed %d", offset, n)
				}
			}
		}
		told.WriteByte('\n')
	}
}

func (c *ordered) stand(told *strings.Builder, now Instant) {
	if c.out {
		fmt.Fprintf(told, "; %v out as b%d until %v", Run{c.committed, c.next}, c.delivery, time.Duration(c.until))
	} else if c.notBefore > now {
		fmt.Fprintf(told, "; waits until %v", time.Duration(c.notBefore))
	}
}

func (c *queue) stand(told *strings.Builder, now Instant) {
	text := func(m *handed) string {
		switch {
		case m.state == acked:
			return "acked"
		case m.state == leased:
			return fmt.Sprintf("out as b%d until %v", m.delivery, time.Duration(m.until))
		case m.until > now:
			return fmt.Sprintf("waits until %v", time.Duration(m.until))
		}
		return "back"
	}
	for from := c.committed; from < c.next; {
		to := from + 1
		for to < c.next && text(c.at(to)) == text(c.at(from)) {
			to++
		}
		fmt.Fprintf(told, "; %v %s", Run{from, to}, text(c.at(from)))
		from = to
	}
	if n := len(c.leases); n > 20 {
		fmt.Fprintf(told, "; %d reminders", n)
	}
}

func (r Run) String() string { return fmt.Sprintf("[%d, %d)", r.From, r.To) }

func (s *story) number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (s *story) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}
