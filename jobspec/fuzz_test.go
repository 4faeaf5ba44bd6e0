package jobspec

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"starling/examples"
	"starling/terms"
	"starling/terms/rules"
	"starling/validate"
)

// FuzzParse wants that Parse never panics, that its errors are ordered and at places in the file, and that what it
// returns has no problems and is read back from what Format writes.
func FuzzParse(f *testing.F) {
	for _, e := range examples.Files() {
		f.Add(e.Data)
	}
	files, err := filepath.Glob("testdata/files/*")
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, one := range strings.Split(string(data), "\n\n") {
			_, body, _ := strings.Cut(one, "\n")
			input, _, _ := strings.Cut(body, "\n----\n")
			f.Add([]byte(input))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		documents, err := Parse("job.yaml", data)
		if err != nil {
			checkErrors(t, err)
			return
		}
		for i := range documents {
			spec := &documents[i].Spec
			if problems := validate.Job(spec, rules.Released); len(problems) > 0 {
				t.Fatalf("got problems %v", problems)
			}
			again, err := Parse("again.yaml", Format(spec))
			if err != nil || len(again) != 1 || !again[0].Spec.Equal(spec) {
				t.Fatalf("got %+v, %v, want %+v", again, err, spec)
			}
		}
	})
}

func checkErrors(t *testing.T, err error) {
	found, ok := err.(Errors)
	if !ok || len(found) == 0 || len(found) > errorsMax {
		t.Fatalf("got %T with %d errors: %v", err, len(found), err)
	}
	for i, e := range found {
		if e.Line < 1 || e.Column < 1 || e.Reason == "" {
			t.Fatalf("got an error without a place or reason: %+v", e)
		}
		if i > 0 && found[i-1].Line > e.Line {
			t.Fatalf("errors are not in order: %v", err)
		}
	}
}

// FuzzQuantities wants that the parsers of quantities take exactly what the schema's patterns do, apart from limits.
func FuzzQuantities(f *testing.F) {
	for _, text := range []string{"", "0", "0.5", "500m", "1.5Gi", "10GB", "256m", "1m30s", "1s1m", "500ms", "0.0001s",
		"-1", "017", "1e3", "1h1m1s1ms"} {
		f.Add(text)
	}
	duration := func(text string) (int64, error) { return ParseDuration(text, terms.DelayMillisMax) }
	forms := []struct {
		pattern *regexp.Regexp
		parse   func(string) (int64, error)
	}{
		{regexp.MustCompile(cpuPattern), ParseCPU}, {regexp.MustCompile(bytesPattern), ParseBytes},
		{regexp.MustCompile(durationPattern), duration},
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, form := range forms {
			matches := text != "" && form.pattern.MatchString(text)
			_, err := form.parse(text)
			limit := err != nil && (strings.Contains(err.Error(), "at most") || strings.Contains(err.Error(), "whole"))
			if (err == nil || limit) != matches {
				t.Errorf("%q: got %v, the pattern %s says %v", text, err, form.pattern, matches)
			}
		}
	})
}
