package dialog

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestEscape(t *testing.T) {
	for typed, want := range map[string]string{
		"":             "",
		"ls\r":         "ls\r",
		"~.":           "DETACHED",
		"ls\r~.rest":   "ls\rDETACHED",
		"ls\n~.":       "ls\nDETACHED",
		"cd ~.\r":      "cd ~.\r",
		"~/bin\r":      "~/bin\r",
		"a\r~~.\r":     "a\r~.\r",
		"a\r~b\r~.":    "a\r~b\rDETACHED",
		"a\r~\r~.":     "a\r~\rDETACHED",
		"\r~~~.\r~.":   "\r~~.\rDETACHED",
		"vi\rx~.\r\r~": "vi\rx~.\r\r",
	} {
		for name, from := range map[string]io.Reader{
			"at once": strings.NewReader(typed), "key by key": iotest.OneByteReader(strings.NewReader(typed)),
		} {
			detached := ""
			got, err := io.ReadAll(&escaping{from: from, detach: func() { detached = "DETACHED" }})
			if string(got)+detached != want || err != nil {
				t.Errorf("%q, %s: %q, %v, want %q", typed, name, string(got)+detached, err, want)
			}
		}
	}
}
