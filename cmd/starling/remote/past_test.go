package remote

import (
	"testing"
	"time"
)

func TestMoment(t *testing.T) {
	now := time.Date(2026, 11, 24, 7, 30, 0, 0, time.FixedZone("CET", 3600))
	for text, want := range map[string]string{
		"4711": "4711", "0": "0", "2026-11-24T06:00:00Z": "2026-11-24T06:00:00Z",
		"2026-11-24T06:00:00.25+02:00": "2026-11-24T04:00:00.25Z",
		"-10m":                         "2026-11-24T06:20:00Z", "-36h": "2026-11-22T18:30:00Z",
		"07:00": "2026-11-24T06:00:00Z", "07:30": "2026-11-24T06:30:00Z", "07:31": "2026-11-23T06:31:00Z",
		"06:01:02": "2026-11-24T05:01:02Z", "2026-11-20": "2026-11-19T23:00:00Z",
		"": "", "x": "", "10m": "", "-": "", "-1": "", "25:00": "", "07:61": "", "12345678901234567890": "", "2026-13-01": "",
	} {
		got, at, err := Moment(text, now)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q and %v, want %q", text, got, err, want)
		}
		if isIndex := text == "4711" || text == "0"; err == nil && at.IsZero() != isIndex {
			t.Errorf("%q: it is at %v", text, at)
		}
	}
}
