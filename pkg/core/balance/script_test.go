package balance

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/podmq/podmq/pkg/core"
)

var rewrite = flag.Bool("rewrite", false, "write what happens into testdata/*.txt")

// A story is the life of one group as testdata tells it: blocks of commands, and
// below each, after a line of dashes, who moved and who has what then. A
// partition that is assigned but not yet handed over is in brackets where it
// goes, and starred where it still is.
//
//	group PARTITIONS sticky|round-robin       at the start
//	join MEMBER
//	leave MEMBER
//	busy PARTITION…
//	drain PARTITION…
type story struct {
	t *testing.T
	*Group
	busy map[int]bool
	ids  map[string]MemberID
	last MemberID
	out  strings.Builder
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
			s := &story{t: t, busy: map[int]bool{}, ids: map[string]MemberID{}}
			var told []string
			for _, block := range strings.Split(strings.TrimSpace(string(text)), "\n\n") {
				told = append(told, s.tell(block))
			}
			got := strings.Join(told, "\n")
			if *rewrite {
				err = os.WriteFile(file, []byte(got), 0o644)
			} else if got != string(text) {
				t.Errorf("%s went otherwise (compare after go test -run TestStories -rewrite):\n%s", file, got)
			}
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// tell plays a block and returns it with what happened.
func (s *story) tell(block string) string {
	commands, _, _ := strings.Cut(block, "\n----")
	s.out.Reset()
	for _, line := range strings.Split(commands, "\n") {
		if words := strings.Fields(line); words[0] != "#" {
			s.do(words[0], words[1:])
		}
	}
	s.check(s.t)
	fmt.Fprintf(&s.out, "generation %d\n", s.Generation())
	for _, m := range s.Members() {
		s.stand(m)
	}
	return commands + "\n----\n" + s.out.String()
}

func (s *story) do(verb string, args []string) {
	moved := []int{}
	isBusy := func(p int) bool { return s.busy[p] }
	switch verb {
	case "group":
		s.Group = New(s.partition(args[0]), core.Strategy(args[1]))
	case "join":
		s.last++
		s.ids[args[0]] = s.last
		moved = s.Join(s.last, isBusy, moved)
	case "leave":
		moved = s.Leave(s.ids[args[0]], isBusy, moved)
	case "busy":
		for _, p := range args {
			s.busy[s.partition(p)] = true
		}
	case "drain":
		for _, a := range args {
			p := s.partition(a)
			if delete(s.busy, p); s.Release(p) {
				moved = append(moved, p)
			}
		}
	default:
		s.t.Fatalf("no command is called %s", verb)
	}
	if len(moved) > 0 {
		fmt.Fprintf(&s.out, "%s %s moves %v\n", verb, strings.Join(args, " "), moved)
	}
}

// stand writes down what a member has.
func (s *story) stand(m MemberID) {
	for name, id := range s.ids {
		if id == m {
			fmt.Fprintf(&s.out, "%s:", name)
		}
	}
	for p := range s.owner {
		switch mine, assigned := s.Owner(p) == m, s.Assigned(p) == m; {
		case mine && assigned:
			fmt.Fprintf(&s.out, " %d", p)
		case mine:
			fmt.Fprintf(&s.out, " %d*", p)
		case assigned:
			fmt.Fprintf(&s.out, " (%d)", p)
		}
	}
	s.out.WriteByte('\n')
}

func (s *story) partition(text string) int {
	p, err := strconv.Atoi(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}
