package units

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// sizes are the units of a size, the longest first where one ends in another.
// Binary ones are written as by the IEC (KiB) or by Kubernetes (Ki), decimal
// ones by SI. KB is absent on purpose: to some it is 1000 and to some 1024.
var sizes = [...]struct {
	unit  string
	bytes int64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"Ki", 1 << 10}, {"Mi", 1 << 20}, {"Gi", 1 << 30}, {"Ti", 1 << 40},
	{"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12},
	{"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12},
	{"B", 1},
}

// ParseSize reads a whole number of bytes with its unit, such as 64KiB, 64Ki,
// 1MiB, 500kB or 100B.
func ParseSize(text string) (int64, error) {
	if text == "0" {
		return 0, nil
	}
	for _, s := range sizes {
		digits, ok := strings.CutSuffix(text, s.unit)
		if !ok || !isDigits(digits) {
			continue
		}
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || n > math.MaxInt64/s.bytes {
			return 0, fmt.Errorf("cannot use size %.40q: it is more than %d bytes", text, int64(math.MaxInt64))
		}
		return n * s.bytes, nil
	}
	if isDigits(text) {
		return 0, fmt.Errorf("cannot read size %.40[1]q: a unit is missing, such as %.20[1]sB or %.20[1]sKiB", text)
	}
	return 0, fmt.Errorf("cannot read size %.40q: give a whole number and a unit (B, KiB, MiB, GiB, or kB, MB, GB), such as 64KiB", text)
}

func isDigits(text string) bool {
	for _, c := range text {
		if c < '0' || c > '9' {
			return false
		}
	}
	return text != ""
}

// FormatSize writes a size with the largest binary unit that loses nothing;
// ParseSize reads it back.
func FormatSize(bytes int64) string {
	if bytes == 0 {
		return "0"
	}
	for i := len(binaryUnits) - 1; i > 0; i-- {
		if one := int64(1) << (10 * i); bytes%one == 0 {
			return strconv.FormatInt(bytes/one, 10) + binaryUnits[i]
		}
	}
	return strconv.FormatInt(bytes, 10) + "B"
}

// binaryUnits is by power of 1024.
var binaryUnits = [...]string{"B", "KiB", "MiB", "GiB", "TiB"}
