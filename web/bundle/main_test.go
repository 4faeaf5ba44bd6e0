package main

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/reflect/protoreflect"

	"starling/api/draft"
	starlingv1 "starling/api/v1"
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

var (
	comments   = regexp.MustCompile(`//.*`)
	fieldNames = regexp.MustCompile(`\b[a-z][a-z0-9]*(?:_[a-z0-9]+)+\b`)
	procedures = regexp.MustCompile(`\b(?:call|callAll|stream|useAsk)\('([A-Z]\w+)'`)
)

// TestNamesOfTheAPI holds that the sources, which have no types, name only fields, codes and procedures that the API
// has: no other name in them has an underscore.
func TestNamesOfTheAPI(t *testing.T) {
	file := starlingv1.File_v1_starling_proto
	known := map[string]bool{"signed_out": true} // a code of the page's own server
	for code := connect.CodeCanceled; code <= connect.CodeUnauthenticated; code++ {
		known[code.String()] = true
	}
	addFields(known, file.Messages())
	sources, err := filepath.Glob("../src/*.js*")
	if err != nil || len(sources) == 0 {
		t.Fatal(sources, err)
	}
	asked := 0
	for _, path := range sources {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text = comments.ReplaceAll(text, nil)
		for _, name := range fieldNames.FindAllString(string(text), -1) {
			if !known[name] {
				t.Errorf("%s: no message of the API has a field %s", path, name)
			}
		}
		for _, found := range procedures.FindAllSubmatch(text, -1) {
			asked++
			if file.Services().Get(0).Methods().ByName(protoreflect.Name(found[1])) == nil {
				t.Errorf("%s: the API has no procedure %s", path, found[1])
			}
		}
	}
	if asked < 10 {
		t.Errorf("the sources ask for %d procedures, want many", asked)
	}
}

func addFields(known map[string]bool, all protoreflect.MessageDescriptors) {
	for i := range all.Len() {
		for k := range all.Get(i).Fields().Len() {
			known[string(all.Get(i).Fields().Get(k).Name())] = true
		}
		addFields(known, all.Get(i).Messages())
	}
}
