package console

import (
	"fmt"
	"strconv"
	"strings"
)

// Dash stands in tables for what is absent.
func Dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// Counted writes "1 job" or "2 jobs".
func Counted[N ~uint32 | ~int](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Bytes writes bytes with the unit that leaves one to four digits.
func Bytes(bytes int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	unit, value := 0, float64(bytes)
	for value >= 1024 && unit < len(units)-1 {
		value /= 1024
		unit++
	}
	text := strconv.FormatFloat(value, 'f', 1, 64)
	return strings.TrimSuffix(text, ".0") + units[unit]
}
