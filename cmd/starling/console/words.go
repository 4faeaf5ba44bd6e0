package console

import "fmt"

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
