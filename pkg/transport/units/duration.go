package units

import (
	"errors"
	"fmt"
	"time"
)

// ParseDuration reads a duration of Go's syntax, such as 250ms, 10s or 1h30m. It
// is never negative.
func ParseDuration(text string) (time.Duration, error) {
	if text == "" {
		return 0, errors.New("cannot read an empty duration: give a number and a unit, such as 10s or 250ms")
	}
	d, err := time.ParseDuration(text)
	switch {
	case err != nil && isNumber(text):
		return 0, fmt.Errorf("cannot read duration %.40[1]q: a unit is missing, such as %.20[1]ss or %.20[1]sms", text)
	case err != nil:
		return 0, fmt.Errorf("cannot read duration %.40q: give a number and a unit (h, m, s, ms, us), such as 10s or 250ms", text)
	case d < 0:
		return 0, fmt.Errorf("cannot use duration %.40q: it is negative", text)
	}
	return d, nil
}

func isNumber(text string) bool {
	for _, c := range text {
		if (c < '0' || c > '9') && c != '.' {
			return false
		}
	}
	return text != ""
}
