package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"

	"starling/cmd/starling/console"
	"starling/cmd/starling/exit"
)

func TestPanicBecomesOneLine(t *testing.T) {
	var errs bytes.Buffer
	t.Setenv("TMPDIR", t.TempDir())
	c := &console.Console{Out: nil, Err: &errs, In: strings.NewReader("")} // writing to out panics
	if got := run(context.Background(), []string{"schema"}, c); got != exit.Failed {
		t.Errorf("got status %d, want %d", got, exit.Failed)
	}
	line, rest, _ := strings.Cut(errs.String(), "\n")
	_, file, found := strings.Cut(line, "details: ")
	if !strings.HasPrefix(line, "starling: internal error: ") || rest != "" || !found {
		t.Fatalf("got %q, want one line", errs.String())
	}
	stack, err := os.ReadFile(strings.TrimSuffix(file, ")"))
	if err != nil || !strings.Contains(string(stack), "schema.go") {
		t.Errorf("got %q and %v, want the stack", stack, err)
	}
}
