package jobspec

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"
	"pgregory.net/rapid"

	"starling/examples"
)

const draft7 = "http://json-schema.org/draft-07/schema"

// compiled checks that the schema is one of draft-07 and returns it.
func compiled(t testing.TB) *jsonschema.Schema { return compiledOf(t, Schema()) }

func compiledOf(t testing.TB, data []byte) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	meta, err := compiler.Compile(draft7)
	if err != nil {
		t.Fatal(err)
	}
	if err := meta.Validate(document); err != nil {
		t.Fatalf("the schema is none of draft-07: %v", err)
	}
	if err := compiler.AddResource("job.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("job.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// judged tells whether the schema accepts every document of a file; ok is false for what an editor could not read.
func judged(schema *jsonschema.Schema, data []byte) (accepted, ok bool) {
	var documents []any
	if err := yaml.Load(data, &documents, yaml.WithAllDocuments()); err != nil {
		return false, false
	}
	accepted = true
	for _, d := range documents {
		text, err := json.Marshal(d)
		if err != nil {
			return false, false
		}
		instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			return false, false
		}
		empty := instance == nil && len(documents) > 1
		accepted = accepted && (empty || schema.Validate(instance) == nil)
	}
	return accepted, true
}

func TestSchemaAcceptsExamples(t *testing.T) {
	schema := compiled(t)
	for _, e := range examples.Files() {
		if accepted, ok := judged(schema, e.Data); !accepted || !ok {
			t.Errorf("the schema refuses %s", e.Name)
		}
	}
}

// meaning are the complaints about values whose shape is right: the schema need not know them.
func meaning(err error) bool {
	for line := range strings.Lines(err.Error()) {
		known := false
		for _, reason := range []string{
			"is also the", "must be at least delay", "must have exactly one value", "must have at least one value",
			"must be absent for",
			"must be an integer for", "must name a program", "must be of letters", "must be an absolute path", "must be a path",
			"must be a share of", "must be in whole",
			"must be a whole number of bytes", "must be at most", "must not hold a zero byte", "must have at most",
			"need a stateless job", "need a stateful job", "must be above", "must be 100 to", "must be 1 to",
			"must be the name of one of", "must be false in",
			"excludes lost_after", "excludes min_available", "there is no task", ": argument ", "is in a cycle",
			"in a daemon job", "daemon excludes", "needs a batch job", "needs a job that is preemptible",
			"needs preemptible: true",
			"must be at least the sum",
			"must have at most 127 characters", "must be the job's own name", "must say within", "would set the same variable",
			"must be 10 to", ".hosts_env: must be true or false", "does nothing without", "must not ask for",
			"is the job itself",
		} {
			known = known || strings.Contains(line, reason)
		}
		if !known {
			return false
		}
	}
	return true
}

// agree compares the judgement of the schema on a file with that of Parse.
func agree(t interface{ Errorf(string, ...any) }, schema *jsonschema.Schema, data []byte) (accepted bool) {
	accepted, ok := judged(schema, data)
	_, err := Parse("job.yaml", data)
	switch {
	case err == nil && !(accepted && ok):
		t.Errorf("Parse accepts and the schema refuses:\n%s", data)
	case err != nil && accepted && ok && !meaning(err):
		t.Errorf("the schema accepts and Parse refuses:\n%s\n%v", data, err)
	}
	return err == nil
}

// TestSchemaAgreesOnFiles holds the files of TestFiles against the schema. Where only the notation is wrong, or what an
// editor's own reader of YAML takes away, the schema accepts what Parse refuses.
func TestSchemaAgreesOnFiles(t *testing.T) {
	schema := compiled(t)
	files, err := filepath.Glob("testdata/files/*")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
			_, err := Parse("job.yaml", []byte(d.Input))
			accepted, ok := judged(schema, []byte(d.Input))
			if err == nil && ok && !accepted {
				t.Errorf("%s: Parse accepts and the schema refuses", d.Pos)
			}
			return d.Expected
		})
	}
}

// TestSchemaAgreesWithParse draws jobs, spoils most of them in one place, and wants the same judgement from both.
func TestSchemaAgreesWithParse(t *testing.T) {
	schema := compiled(t)
	taken, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		spec := jobs().Draw(t, "job")
		var tree any
		if err := yaml.Load(Format(&spec), &tree); err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(0, 2).Draw(t, "changes") {
			tree = spoil(t, tree)
		}
		data, err := json.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		if agree(t, schema, data) {
			taken++
		} else {
			refused++
		}
	})
	if taken == 0 || refused == 0 {
		t.Errorf("got %d accepted and %d refused, want some of both", taken, refused)
	}
}

// spoil changes one place of a tree: a value, the presence of a key, the number of elements.
func spoil(t *rapid.T, tree any) any {
	if rapid.IntRange(0, 3).Draw(t, "here") == 0 {
		return junk().Draw(t, "junk")
	}
	switch tree := tree.(type) {
	case map[string]any:
		keys := []string{"unknown"}
		for key := range tree {
			keys = append(keys, key)
		}
		key := rapid.SampledFrom(sorted(keys)).Draw(t, "key")
		value, there := tree[key]
		switch rapid.IntRange(0, 4).Draw(t, "how") {
		case 0:
			delete(tree, key)
		default:
			if !there {
				value = "x"
			}
			tree[key] = spoil(t, value)
		}
		return tree
	case []any:
		if len(tree) == 0 {
			return []any{junk().Draw(t, "junk")}
		}
		i := rapid.IntRange(0, len(tree)-1).Draw(t, "i")
		if rapid.IntRange(0, 4).Draw(t, "how") == 0 {
			return tree[:i]
		}
		tree[i] = spoil(t, tree[i])
		return tree
	}
	return junk().Draw(t, "junk")
}

func junk() *rapid.Generator[any] {
	return rapid.SampledFrom([]any{
		nil, true, 0, 1, 3, -1, 1.5, 70000, 5_000_000, "", "x", "a b", "3", "1.5", "500m", "256Mi", "5s", "1m30s", "auto",
		"unlimited", "batch",
		"spread", "in", "exists", ">=", "/srv", "STARLING_X", []any{}, []any{"a"}, []any{1, 2}, []any{nil}, []any{[]any{}},
		map[string]any{}, map[string]any{"a": 1}, map[string]any{"A": "x"}, map[string]any{"a b": 1},
		map[string]any{"STARLING_X": "1"},
		map[string]any{"command": "x"}, map[string]any{"value": "x"},
	})
}
