package main

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"starling/api/draft"
)

// bytesMax bounds what a browser loads at first, and what it loads later, as it is sent.
const bytesMax = 150 << 10

// TestCommitted holds that the page is what its sources say, and small.
func TestCommitted(t *testing.T) {
	files, err := bundle("..")
	if err != nil {
		t.Fatal(err)
	}
	there, err := os.ReadDir("../page")
	if err != nil {
		t.Fatal(err)
	}
	if len(there) != len(files) {
		t.Errorf("../page has %d files, the sources make %d: run go generate ./web, and remove what is left over", len(there), len(files))
	}
	first, later := bytes.Buffer{}, bytes.Buffer{}
	for name, want := range files {
		sent := &first
		if strings.HasPrefix(name, "terminal.") { // it is loaded with the first shell
			sent = &later
		}
		got, err := os.ReadFile(filepath.Join("../page", name))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("../page/%s differs from what its sources make (%v): run go generate ./web", name, err)
		}
		w := gzip.NewWriter(sent)
		if _, err := w.Write(want); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for name, sent := range map[string]*bytes.Buffer{"the page": &first, "the terminal": &later} {
		if sent.Len() >= bytesMax || sent.Len() == 0 {
			t.Errorf("%s has %d bytes as it is sent, must have less than %d", name, sent.Len(), bytesMax)
		}
	}
}

// TestSources holds the sources to the house's sizes, and to what makes text of the cluster safe to show.
func TestSources(t *testing.T) {
	all, err := filepath.Glob("../src/*")
	if err != nil || len(all) == 0 {
		t.Fatal(all, err)
	}
	for _, name := range all {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(text), "\n")
		if len(lines) > 400 {
			t.Errorf("%s: %d lines, at most 400: divide it by concept", name, len(lines))
		}
		for i, line := range lines {
			if utf8.RuneCountInString(line) > 120 {
				t.Errorf("%s:%d: over 120 columns", name, i+1)
			}
			for _, bad := range []string{"dangerouslySetInnerHTML", "innerHTML", "eval(", "new Function", "document.write"} {
				if strings.Contains(line, bad) {
					t.Errorf("%s:%d: %s: text becomes markup only by components", name, i+1, bad)
				}
			}
		}
	}
}

// TestWords holds that the page asks before a change in the words of the command line.
func TestWords(t *testing.T) {
	text, err := os.ReadFile("../src/acts.js")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{draft.SuspendWords, draft.ResumeWords, draft.RevertWords}
	for _, one := range draft.Steerings() {
		want = append(want, one.How.String()+": '"+one.Words+"'")
	}
	for _, words := range want {
		if !strings.Contains(string(text), words) {
			t.Errorf("../src/acts.js does not say %q", words)
		}
	}
}
