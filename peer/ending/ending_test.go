package ending_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"starling/cluster/facts"
	"starling/peer/ending"
)

// TestClipped cuts what is too long out of the middle of a reason, and no letter in two.
func TestClipped(t *testing.T) {
	t.Parallel()
	for _, middle := range []string{"", "short", strings.Repeat("x", 300), strings.Repeat("é", 300),
		strings.Repeat("xé", 300), strings.Repeat("…", 300)} {
		text := "image app: " + middle + ": connection refused"
		got := ending.Clipped(text)
		whole := len(text) <= facts.FailureDetailBytesMax
		if whole != (got == text) || len(got) > facts.FailureDetailBytesMax || len(got) < min(len(text), 240) ||
			!utf8.ValidString(got) || !strings.HasPrefix(got, "image app: ") || !strings.HasSuffix(got, ": connection refused") {
			t.Errorf("of %q it is %q", text, got)
		}
	}
}
