package e2e

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	"go.yaml.in/yaml/v4"
)

// value parses stdout as JSON or YAML and wants a value in it to match; a path that leads nowhere is "absent":
// value json jobs.0.name hello.
func value(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: [!] value json|yaml PATH PATTERN")
	}
	text := ts.ReadFile("stdout")
	var answer any
	var err error
	switch args[0] {
	case "json":
		err = json.NewDecoder(strings.NewReader(text)).Decode(&answer)
	case "yaml":
		err = yaml.Load([]byte(text), &answer)
	default:
		ts.Fatalf("unknown format %q", args[0])
	}
	if err != nil {
		ts.Fatalf("stdout is no %s: %v", args[0], err)
	}
	got := at(answer, strings.Split(args[1], "."))
	matched, err := regexp.MatchString("^(?:"+args[2]+")$", got)
	ts.Check(err)
	if matched == neg {
		ts.Fatalf("%s: got %q, want it to match %q: %t", args[1], got, args[2], !neg)
	}
}

// at returns the value that a path of keys and numbers leads to, as text.
func at(answer any, path []string) string {
	for _, step := range path {
		switch inner := answer.(type) {
		case map[string]any:
			answer = inner[step]
		case []any:
			if step == "length" {
				return strconv.Itoa(len(inner))
			}
			number, err := strconv.Atoi(step)
			if err != nil || number >= len(inner) {
				return "absent"
			}
			answer = inner[number]
		default:
			return "absent"
		}
	}
	if answer == nil {
		return "absent"
	}
	return fmt.Sprint(answer)
}
