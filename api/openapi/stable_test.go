package openapi

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	starlingv1 "starling/api/v1"
)

const stable = "../v1/stable.txt"

// TestNamesAreStable holds every name, number and type of the API against those that there were: programs of others
// rely on them. What is new is added with -rewrite; what has gone or is another fails for ever.
func TestNamesAreStable(t *testing.T) {
	now := namesOf(starlingv1.File_v1_starling_proto)
	text, err := os.ReadFile(stable)
	if err != nil {
		t.Fatal(err)
	}
	was := strings.Split(strings.TrimSpace(string(text)), "\n")
	for _, line := range broken(was, now) {
		t.Errorf("%q is not so any more, and programs rely on it: keep it beside what is new", line)
	}
	fresh := broken(now, was)
	if *rewrite {
		all := append(slices.DeleteFunc(was, func(line string) bool { return line == "" }), fresh...)
		slices.Sort(all)
		if err := os.WriteFile(stable, []byte(strings.Join(all, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if len(fresh) > 0 {
		t.Errorf("%q is new: run go test ./api/openapi -rewrite", fresh)
	}
}

// TestStabilityIsHeld plants what breaks programs.
func TestStabilityIsHeld(t *testing.T) {
	was := []string{"Job.name = 1 string", "Job.id = 2 uint32", "rpc Why(WhyRequest) WhyResponse"}
	for _, now := range [][]string{
		{was[0], was[1]},
		{"Job.title = 1 string", was[1], was[2]},
		{"Job.name = 3 string", was[1], was[2]},
		{was[0], "Job.id = 2 uint64", was[2]},
	} {
		if got := broken(was, now); len(got) != 1 {
			t.Errorf("%q: got %q, want one breach", now, got)
		}
	}
	if got := broken(was, append(slices.Clone(was), "Job.state = 3 string")); len(got) > 0 {
		t.Errorf("what is new breaks %q", got)
	}
}

// broken returns the lines that are not kept.
func broken(was, now []string) (gone []string) {
	for _, line := range was {
		if line != "" && !slices.Contains(now, line) {
			gone = append(gone, line)
		}
	}
	return gone
}

// namesOf lists all that a program can rely on, a line each.
func namesOf(file protoreflect.FileDescriptor) (all []string) {
	for i := range file.Services().Len() {
		methods := file.Services().Get(i).Methods()
		for k := range methods.Len() {
			m := methods.Get(k)
			stream := ""
			if m.IsStreamingServer() {
				stream = "stream "
			}
			all = append(all, fmt.Sprintf("rpc %s(%s) %s%s", m.FullName(), m.Input().Name(), stream, m.Output().Name()))
		}
	}
	for i := range file.Messages().Len() {
		m := file.Messages().Get(i)
		for k := range m.Fields().Len() {
			field := m.Fields().Get(k)
			kind := field.Kind().String()
			if field.Message() != nil {
				kind = string(field.Message().FullName())
			}
			all = append(all, fmt.Sprintf("%s.%s = %d %s %s", m.Name(), field.Name(), field.Number(), field.Cardinality(),
				kind))
		}
	}
	slices.Sort(all)
	return all
}
