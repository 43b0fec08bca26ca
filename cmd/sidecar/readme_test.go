package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func readme(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// An example is one command of the README and what stands behind it as its
// answer, with … for what may be anything.
type example struct{ command, answer string }

// examples are the commands of the README's tested part. A comment right behind
// a command is its answer.
func examples(t *testing.T) (all []example) {
	t.Helper()
	_, part, ok := strings.Cut(readme(t), "<!-- tested:")
	part, _, end := strings.Cut(part, "<!-- end of what is tested -->")
	if !ok || !end {
		t.Fatal("the README does not mark what is tested")
	}
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(part, -1) {
		answers := false // whether a comment is the answer of the command before it
		for _, line := range strings.Split(strings.ReplaceAll(block[1], "\\\n", ""), "\n") {
			text, comment := strings.CutPrefix(line, "# ")
			switch {
			case comment && answers:
				all[len(all)-1].answer = text
				answers = false
			case comment || line == "":
				answers = false
			default:
				all = append(all, example{command: line})
				answers = true
			}
		}
	}
	return all
}

func TestTheReadmesExamplesRunAsTheyStand(t *testing.T) {
	for _, program := range []string{"curl", "sh"} {
		if _, err := exec.LookPath(program); err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatal(err)
			}
			t.Skip("NOT TESTED: ", err)
		}
	}
	startLocal(t, nil)
	all := examples(t)
	if len(all) < 15 {
		t.Fatalf("only %d examples were found: %q", len(all), all)
	}
	const end = "\n<<end>>\n"
	var script strings.Builder
	for _, e := range all {
		script.WriteString(e.command + "\nprintf '%s' '" + end + "'\n")
	}
	cmd := exec.Command("sh", "-eu")
	cmd.Stdin = strings.NewReader(script.String())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("the script failed: %v", err)
	}
	answers := strings.Split(string(out), end)
	for i, e := range all {
		if i >= len(answers) {
			t.Fatalf("%s\nwas not reached", e.command)
		}
		want := "(?s)^" + strings.ReplaceAll(regexp.QuoteMeta(e.answer), "…", ".*")
		if !strings.HasSuffix(e.answer, "…") {
			want += "\\s*$"
		}
		if !regexp.MustCompile(want).MatchString(answers[i]) {
			t.Errorf("%s\nanswers %s\nthe README says %s", e.command, answers[i], e.answer)
		}
	}
}

func TestTheReadmeListsEverySettingWithItsDefault(t *testing.T) {
	text := readme(t)
	c := defaults()
	for _, v := range c.variables() {
		value := v.value
		if value == "" {
			value = "none"
		}
		if row := "| `" + v.name + "` | " + value + " |"; !strings.Contains(text, row) {
			t.Errorf("the README has no row %s", row)
		}
	}
}
