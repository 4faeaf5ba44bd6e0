package console

import (
	"regexp"
	"time"
)

// Time writes a time for people, by the clock of this machine.
func Time(t time.Time) string { return t.Local().Format(time.DateTime) }

// Clock is Time without the date of today.
func Clock(t, now time.Time) string {
	if text := Time(t); text[:len(time.DateOnly)] != Time(now)[:len(time.DateOnly)] {
		return text
	}
	return t.Local().Format(time.TimeOnly)
}

// written is a time as answers of peers have it within sentences.
var written = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\b`)

// Times returns a sentence of a peer with its times as Clock has them.
func Times(text string, now time.Time) string {
	return written.ReplaceAllStringFunc(text, func(one string) string {
		t, err := time.Parse(time.RFC3339, one)
		if err != nil {
			return one
		}
		return Clock(t, now)
	})
}

// Dash stands in tables for what is absent.
func Dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
