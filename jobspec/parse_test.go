package jobspec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"starling/examples"
	"starling/terms"
	"starling/terms/rules"
	"starling/validate"
)

// TestFiles reads the job files in testdata: parse shows what is understood, or all that is wrong. In the input ¶ ends
// a line that a test file could not hold (an empty one), → is a tab.
func TestFiles(t *testing.T) {
	datadriven.Walk(t, "testdata/files", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			data := []byte(strings.NewReplacer("¶", "", "→", "\t").Replace(d.Input))
			documents, err := Parse("job.yaml", data)
			if err != nil {
				return err.Error() + "\n"
			}
			var b strings.Builder
			for i, document := range documents {
				if i > 0 {
					b.WriteString("---\n")
				}
				switch d.Cmd {
				case "parse":
					b.Write(Format(&document.Spec))
				case "values":
					values(&b, &document.Spec)
				default:
					t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
				}
			}
			return b.String()
		})
	})
}

// values writes what Format has no need to tell apart.
func values(b *strings.Builder, spec *terms.Job) {
	for _, task := range spec.Tasks {
		fmt.Fprintf(b, "%s: command=%q env=%q\n", task.Name, task.Command, task.Env)
	}
}

func TestQuantities(t *testing.T) {
	duration := func(text string) (int64, error) { return ParseDuration(text, terms.DelayMillisMax) }
	for _, c := range []struct {
		parse func(string) (int64, error)
		text  string
		want  int64
	}{
		{ParseCPU, "2", 2000}, {ParseCPU, "0.5", 500}, {ParseCPU, "500m", 500}, {ParseCPU, "0", 0}, {ParseCPU, "0.001", 1},
		{ParseCPU, "1000000", 1e9}, {ParseCPU, "1.500", 1500},
		{ParseBytes, "0", 0}, {ParseBytes, "1.5Gi", 3 << 29}, {ParseBytes, "256MiB", 256 << 20}, {ParseBytes, "10G", 1e10},
		{ParseBytes, "10GB", 1e10}, {ParseBytes, "4096B", 4096}, {ParseBytes, "1k", 1000}, {ParseBytes, "1024Pi", 1 << 60},
		{ParseBytes, "0.5Ki", 512}, {ParseBytes, "0.0009765625Ki", 1},
		{duration, "0", 0}, {duration, "5s", 5000}, {duration, "1m30s", 90_000}, {duration, "500ms", 500},
		{duration, "1.5h", 5_400_000},
		{duration, "24h", 86_400_000}, {duration, "1h1m1s1ms", 3_661_001}, {duration, "0.5s", 500}, {duration, "90s", 90_000},
	} {
		if got, err := c.parse(c.text); err != nil || got != c.want {
			t.Errorf("%s: got %d, %v, want %d", c.text, got, err, c.want)
		}
	}
	for _, c := range []struct {
		parse func(string) (int64, error)
		texts string
	}{
		{ParseCPU, "-1 1,5 0.0001 0.5m 1e3 1_000 017 0x10 +1 1000000.001 1000001 m .5 5. 2cores NaN inf " +
			strings.Repeat("9", 100)},
		{ParseBytes, "-1Gi 1 256m 256mi 1KB 1Kb 1gb 0.3B 1025Pi 1EB 1.1.1Mi Mi 1e3Mi 01Mi +1Mi " + strings.Repeat("9", 100) +
			"B"},
		{duration, "-5s 5 5S 5sec 1s1m 1s1s 1d 0.0001s 24h1ms 25h s 1.h 5s5 1ms1s " + strings.Repeat("9", 100) + "s"},
	} {
		for _, text := range append(strings.Fields(c.texts), "", " ", "1 s", "1 Mi") {
			if got, err := c.parse(text); err == nil {
				t.Errorf("%q: got %d, want an error", text, got)
			}
		}
	}
}

func TestQuantityFormats(t *testing.T) {
	for _, n := range []int64{0, 1, 999, 1000, 1001, 1023, 1024, 1536, 90_000, 1<<20 + 1, 3 << 29, 86_400_000} {
		if got, err := ParseBytes(FormatBytes(n)); err != nil || got != n {
			t.Errorf("%d bytes are %s, which reads as %d, %v", n, FormatBytes(n), got, err)
		}
		if got, err := ParseCPU(FormatCPU(n)); n <= terms.CPUMillicoresMax && (err != nil || got != n) {
			t.Errorf("%d millicores are %s, which reads as %d, %v", n, FormatCPU(n), got, err)
		}
		if got, err := ParseDuration(terms.FormatDuration(n), 1<<40); err != nil || got != n {
			t.Errorf("%d ms are %s, which reads as %d, %v", n, terms.FormatDuration(n), got, err)
		}
	}
}

func TestCommand(t *testing.T) {
	spec := Command("hi", []string{"echo", "hi"})
	if problems := validate.Job(&spec, rules.Released); len(problems) > 0 {
		t.Errorf("got problems %v", problems)
	}
	task := spec.Tasks[0]
	if spec.Type != terms.Batch || task.Instances != 1 || task.Restart.AttemptsMax != 0 || task.StopGraceMillis != 5000 ||
		task.Resources != (terms.Resources{500, 256 << 20, 0}) || task.Placement != terms.Pack {
		t.Errorf("got %+v", spec)
	}
}

func TestExamples(t *testing.T) {
	jobs := map[terms.JobName]bool{}
	_, demo := examples.Demo()
	for _, e := range append(examples.Files(), demo...) {
		documents, err := Parse(e.Name, e.Data)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, d := range documents {
			if jobs[d.Spec.Name] {
				t.Errorf("%s: two examples have a job %s", e.Name, d.Spec.Name)
			}
			jobs[d.Spec.Name] = true
		}
		if e.Data[0] != '#' {
			t.Errorf("%s does not begin with a comment that explains it", e.Name)
		}
	}
	if len(jobs) < 5 {
		t.Errorf("got %d examples, want all", len(jobs))
	}
}

// TestJSON reads what a program would write.
func TestJSON(t *testing.T) {
	job := map[string]any{"job": "j", "tasks": []any{map[string]any{
		"command": []any{"a", 1, true, "x/y\u2028\"\\ é 😀"}, "env": map[string]any{"A": "", "B": 1.5}, "instances": 3,
	}}}
	for _, indent := range []string{"", "\t", "    "} {
		data, err := json.MarshalIndent(job, "", indent)
		if err != nil {
			t.Fatal(err)
		}
		documents, err := Parse("job.json", data)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		values(&b, &documents[0].Spec)
		want := "main: command=[\"a\" \"1\" \"true\" \"x/y\\u2028\\\"\\\\ é 😀\"] env=[{\"A\" \"\"} {\"B\" \"1.5\"}]\n"
		if b.String() != want {
			t.Errorf("indent %q: got %s, want %s", indent, b.String(), want)
		}
	}
}

// processorTime is what this process has taken so far.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		t.Fatal(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// TestHostileFiles wants an error for files that were made to cost much, in not much more time than honest work of that
// size takes of the processor.
func TestHostileFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c <= 'z'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s*%c]\n", c, c, strings.Repeat(fmt.Sprintf("*%c,", c-1), 8), c-1)
	}
	const half = FileBytesMax / 2
	var honest bytes.Buffer
	for i := 0; honest.Len() < FileBytesMax/8; i++ {
		fmt.Fprintf(&honest, "---\njob: a%d\ntasks: [{command: a}]\n", i)
	}
	start := processorTime(t)
	if _, err := Parse("job.yaml", honest.Bytes()); err != nil {
		t.Fatal(err)
	}
	most := 24 * (processorTime(t) - start)
	unknown := bytes.NewBufferString("job: a\n")
	for i := range half / 8 {
		fmt.Fprintf(unknown, "k%05x: 1\n", i)
	}
	for name, data := range map[string]string{
		"aliases":       bomb,
		"deep flow":     strings.Repeat("[", half),
		"deep mapping":  strings.Repeat("{a: ", half/4),
		"deep block":    strings.Repeat("- ", half),
		"many elements": "[" + strings.Repeat("a,", half-2) + "]",
		"many keys":     "{" + strings.Repeat("a,", half-2) + "}",
		"many errors":   "job: a\ntasks:\n" + strings.Repeat("- {}\n", half/5),
		"documents":     strings.Repeat("---\nx\n", half/6),
		"same jobs":     strings.Repeat("---\njob: a\ntasks: [{command: a}]\n", FileBytesMax/33),
		"unknown keys":  unknown.String(),
		"one line":      strings.Repeat("a", FileBytesMax),
		"one key":       strings.Repeat("a", FileBytesMax-4) + ": 1",
		"quotes":        strings.Repeat(`"`, FileBytesMax),
		"anchors":       strings.Repeat("&a ", FileBytesMax/3),
		"questions":     strings.Repeat("? ", half),
		"comments":      strings.Repeat("#\n", half),
		"colons":        strings.Repeat(":", FileBytesMax),
		"too large":     strings.Repeat("a", FileBytesMax+1),
		"long number":   "job: a\ntasks: [{command: a, instances: " + strings.Repeat("1", half) + "}]",
		"long quantity": "job: a\ntasks: [{command: a, resources: {cpu: 0." + strings.Repeat("1", half) + "}}]",
	} {
		start := processorTime(t)
		_, err := Parse("job.yaml", []byte(data))
		took := processorTime(t) - start
		switch {
		case err == nil:
			t.Errorf("%s: got no error", name)
		case len(err.Error()) > 64<<10:
			t.Errorf("%s: the error has %d bytes", name, len(err.Error()))
		case took > most:
			t.Errorf("%s: took %v, at most %v are wanted", name, took, most)
		}
		t.Logf("%s: %v", name, took)
	}
}
