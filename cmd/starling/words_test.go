package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/cluster"
)

func TestWords(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{span(-time.Second), "0s"}, {span(59 * time.Second), "59s"}, {span(61 * time.Second), "1m01s"},
		{span(25 * time.Hour), "1d01h"}, {span(90 * time.Minute), "1h30m"},
		{cores(2000), "2"}, {cores(1500), "1.5"}, {cores(25), "0.025"}, {cores(0), "0"}, {cores(10000), "10"},
		{size(0), "0B"}, {size(1023), "1023B"}, {size(1536), "1.5KiB"}, {size(1 << 40), "1TiB"},
		{counted(1, "job"), "1 job"}, {counted(uint32(3), "job"), "3 jobs"},
		{tally(nil), "no instances"}, {tally(&starlingv1.Counts{Running: 2, Waiting: 1}), "2 running, 1 waiting"},
		{age(nil), "-"}, {dash(""), "-"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestTable(t *testing.T) {
	rows := newTable("A", "STATE", "LAST")
	rows.row("süß", "running", "x")
	rows.row("longer", "failed", "")
	var plain, coloured bytes.Buffer
	if err := rows.write(&plain); err != nil {
		t.Fatal(err)
	}
	want := "A       STATE    LAST\nsüß     running  x\nlonger  failed   \n"
	if plain.String() != want {
		t.Errorf("got\n%q, want\n%q", plain.String(), want)
	}
	rows.colour = true
	if err := rows.write(&coloured); err != nil {
		t.Fatal(err)
	}
	if got := coloured.String(); !strings.Contains(got, "\x1b[32mrunning\x1b[0m  x") {
		t.Errorf("got %q, want running in green with the padding outside", got)
	}
}

func TestTarget(t *testing.T) {
	for text, want := range map[string][]target{
		"web":                   {{"web", "", -1, ""}},
		"web.server":            {{"web", "server", -1, ""}},
		"web/server":            {{"web/server", "", -1, ""}, {"web", "server", -1, ""}},
		"web/server[3]":         {{"web", "server", 3, ""}},
		"web/server/3":          {{"web/server/3", "", -1, ""}, {"web/server", "3", -1, ""}, {"web", "server", 3, ""}},
		"web.server/3":          {{"web", "server", 3, ""}},
		"web.server[3]":         {{"web", "server", 3, ""}},
		"web.server[3]#4711":    {{"web", "server", 3, "web.server[3]#4711"}},
		"web/server[3]#4711":    {{"web", "server", 3, "web.server[3]#4711"}},
		"a/b/web":               {{"a/b/web", "", -1, ""}, {"a/b", "web", -1, ""}},
		"a/b/web.server":        {{"a/b/web", "server", -1, ""}},
		"a/b/web/server[3]":     {{"a/b/web", "server", 3, ""}},
		"a/b/web.server[3]#1":   {{"a/b/web", "server", 3, "a/b/web.server[3]#1"}},
		"default/web":           {{"web", "", -1, ""}, {"default", "web", -1, ""}},
		"default/web/server":    {{"default/web/server", "", -1, ""}, {"web", "server", -1, ""}},
		"default/web.server[0]": {{"web", "server", 0, ""}},
		"default/web.s[0]#1":    {{"web", "s", 0, "web.s[0]#1"}},
	} {
		got, err := parseTarget(text)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %+v and %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "/", "web/", "/web", "a//b", "web[3]", "web.a.b", "web.server/3/4", "web/server[", "web/server[x]", "web/server[99999999999]", "web server", "web#1"} {
		if got, err := parseTarget(text); err == nil {
			t.Errorf("%q: got %+v, want an error", text, got)
		}
	}
}

func TestJobNames(t *testing.T) {
	for program, want := range map[string]string{
		"echo": "echo-", "/usr/bin/python3.11": "python3-11-", "...": "run-", "../@": "run-", "é": "run-",
		strings.Repeat("x", 80): strings.Repeat("x", 50) + "-",
	} {
		got := jobNameFor(program)
		if !strings.HasPrefix(got, want) || cluster.NameProblem(got, false) != "" {
			t.Errorf("%q: got %q, want a valid name that begins with %q", program, got, want)
		}
	}
}

func TestExitStatus(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, exitOK},
		{errors.New("x"), exitFailed},
		{fmt.Errorf("x: %w", fail(exitNotPlaced, "y")), exitNotPlaced},
		{silent{42}, 42},
		{context.DeadlineExceeded, exitTimeout},
		{&wire.Failure{Code: wire.Invalid}, exitUsage},
		{fmt.Errorf("x: %w", &wire.Failure{Code: wire.Conflict}), exitConflict},
		{&wire.Failure{Code: wire.Unavailable}, exitUnreachable},
		{&wire.Failure{Code: wire.Denied}, exitDenied},
		{&wire.Failure{Code: wire.NotFound}, exitFailed},
		{&wire.Failure{Code: wire.Internal}, exitFailed},
	} {
		if got := statusOf(c.err); got != c.want {
			t.Errorf("%v: got %d, want %d", c.err, got, c.want)
		}
	}
}

func TestAnswersAsText(t *testing.T) {
	answer := &starlingv1.Job{Name: "12", Type: "batch", Id: 3, SubmittedIndex: 7, Counts: &starlingv1.Counts{Running: 1}}
	var out bytes.Buffer
	r := &remote{console: &console{out: &out}, format: formatJSON}
	if err := r.showNext(answer, nil); err != nil {
		t.Fatal(err)
	}
	if want := `{"name":"12","id":3,"type":"batch","status":"","final":false,"version":0,"counts":{"desired":0,`; !strings.HasPrefix(out.String(), want) {
		t.Errorf("got %s, want %s...", out.String(), want)
	}
	out.Reset()
	r.format = formatYAML
	r.documents = 0
	for range 2 {
		if err := r.show(answer, nil); err != nil {
			t.Fatal(err)
		}
	}
	first, second, found := strings.Cut(out.String(), "---\n")
	if !found || first != second || !strings.HasPrefix(first, "name: '12'\nid: 3\ntype: batch\n") {
		t.Errorf("got\n%s", out.String())
	}
}

func TestPanicBecomesOneLine(t *testing.T) {
	var errs bytes.Buffer
	t.Setenv("TMPDIR", t.TempDir())
	c := &console{out: nil, err: &errs, in: strings.NewReader("")} // writing to out panics
	if got := run(context.Background(), []string{"schema"}, c); got != exitFailed {
		t.Errorf("got status %d, want %d", got, exitFailed)
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
