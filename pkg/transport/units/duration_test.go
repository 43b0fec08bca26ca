package units

import (
	"strings"
	"testing"
	"time"
)

func TestDurationsCarryTheirUnit(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "0s": 0, "10s": 10 * time.Second, "250ms": 250 * time.Millisecond, "1h30m": 90 * time.Minute, "1.5s": 1500 * time.Millisecond,
		"+1s": time.Second, "-0": 0,
	} {
		got, err := ParseDuration(text)
		if err != nil || got != want {
			t.Errorf("ParseDuration(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
}

func TestBadDurationsSayWhatToGive(t *testing.T) {
	for text, want := range map[string]string{
		"":         "cannot read an empty duration",
		"30":       "a unit is missing, such as 30s or 30ms",
		"0.5":      "a unit is missing",
		"-5s":      `cannot use duration "-5s": it is negative`,
		"ten":      `cannot read duration "ten"`,
		"10 s":     "give a number and a unit",
		"10S":      "give a number and a unit",
		"1d":       "give a number and a unit",
		"9999999h": "give a number and a unit",
	} {
		if got, err := ParseDuration(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseDuration(%q) = %v, %v; want an error with %q", text, got, err, want)
		}
	}
}

func FuzzDurationsAreReadOrRefused(f *testing.F) {
	for _, seed := range []string{"", "0", "10s", "1h2m3s", "-1s", "5", ".s", "١s", "9223372036854775807ns", "1e9s"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseDuration(text)
		if err != nil {
			if d != 0 || !strings.HasPrefix(err.Error(), "cannot ") || len(err.Error()) > 400 {
				t.Errorf("ParseDuration(%q) = %v, %v", text, d, err)
			}
			return
		}
		if again, err := ParseDuration(d.String()); d < 0 || err != nil || again != d {
			t.Errorf("ParseDuration(%q) = %v, read back as %v, %v", text, d, again, err)
		}
	})
}
