package units

import (
	"math"
	"strings"
	"testing"
)

func TestSizesCarryTheirUnit(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "0B": 0, "100B": 100, "64KiB": 64 << 10, "64Ki": 64 << 10, "1MiB": 1 << 20, "2Gi": 2 << 30, "1TiB": 1 << 40,
		"500kB": 500_000, "500k": 500_000, "64M": 64_000_000, "1GB": 1e9, "007B": 7, "9223372036854775807B": math.MaxInt64,
	} {
		got, err := ParseSize(text)
		if err != nil || got != want {
			t.Errorf("ParseSize(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
}

func TestBadSizesSayWhatToGive(t *testing.T) {
	for text, want := range map[string]string{
		"":                     "give a whole number and a unit",
		"64":                   "a unit is missing, such as 64B or 64KiB",
		"KiB":                  "give a whole number and a unit",
		"1.5MiB":               "give a whole number and a unit",
		"-1MiB":                "give a whole number and a unit",
		"64KB":                 "give a whole number and a unit",
		"64kib":                "give a whole number and a unit",
		"64 KiB":               "give a whole number and a unit",
		"8388608TiB":           "it is more than 9223372036854775807 bytes",
		"9223372036854775808B": "it is more than 9223372036854775807 bytes",
	} {
		if got, err := ParseSize(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseSize(%q) = %v, %v; want an error with %q", text, got, err, want)
		}
	}
}

func TestFormattedSizesAreShort(t *testing.T) {
	for size, want := range map[int64]string{0: "0", 1: "1B", 1023: "1023B", 1024: "1KiB", 1536: "1536B", 3 << 19: "1536KiB", 64 << 20: "64MiB", 1 << 50: "1024TiB"} {
		if got := FormatSize(size); got != want {
			t.Errorf("FormatSize(%d) = %q, want %q", size, got, want)
		}
	}
}

func FuzzSizesAreReadOrRefused(f *testing.F) {
	for _, seed := range []string{"", "0", "64KiB", "64Ki", "1MiB", "5", "B", "-1B", "99999999999999999999TiB", "٣B"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := ParseSize(text)
		if err != nil {
			if n != 0 || !strings.HasPrefix(err.Error(), "cannot ") || len(err.Error()) > 400 {
				t.Errorf("ParseSize(%q) = %v, %v", text, n, err)
			}
			return
		}
		if again, err := ParseSize(FormatSize(n)); n < 0 || err != nil || again != n {
			t.Errorf("ParseSize(%q) = %d, written %q and read back as %d, %v", text, n, FormatSize(n), again, err)
		}
	})
}
