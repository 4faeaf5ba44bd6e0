package console

import "time"

// Time writes a time for people, by the clock of this machine.
func Time(t time.Time) string { return t.Local().Format(time.DateTime) }

// Clock is Time without the date of today.
func Clock(t, now time.Time) string {
	if text := Time(t); text[:len(time.DateOnly)] != Time(now)[:len(time.DateOnly)] {
		return text
	}
	return t.Local().Format(time.TimeOnly)
}

// Dash stands in tables for what is absent.
func Dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
