package together

import (
	"slices"
	"testing"

	"starling/terms"
)

// TestOrder has each job behind those that it comes after, and otherwise as it stands.
func TestOrder(t *testing.T) {
	job := func(name string, after ...terms.JobName) Job { return Job{Name: terms.JobName(name), After: after} }
	for _, c := range []struct {
		jobs  []Job
		want  []int
		found string
	}{
		{[]Job{job("a"), job("b"), job("c")}, []int{0, 1, 2}, ""},
		{[]Job{job("b", "a"), job("a")}, []int{1, 0}, ""},
		{[]Job{job("x"), job("c", "b", "elsewhere"), job("b", "a"), job("a"), job("y", "x")}, []int{0, 3, 2, 1, 4}, ""},
		{[]Job{job("top", "left", "right"), job("left", "low"), job("right", "low"), job("low")}, []int{3, 1, 2, 0}, ""},
		{[]Job{job("x"), job("b", "c"), job("c", "d"), job("d", "c")}, nil,
			"none of these could ever begin: c comes after d comes after c"},
	} {
		order, found := Order(c.jobs)
		switch {
		case c.found == "" && (len(found) > 0 || !slices.Equal(order, c.want)):
			t.Errorf("%v: got %v %v, want %v", c.jobs, order, found, c.want)
		case c.found != "" && (len(found) != 1 || found[0].Reason != c.found || found[0].Path != "after"):
			t.Errorf("%v: got %v, want %q", c.jobs, found, c.found)
		}
	}
}
