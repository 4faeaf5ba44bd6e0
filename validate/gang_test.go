package validate

import (
	"testing"

	"starling/terms"
	"starling/terms/rules"
)

// TestIdleGang scales a gang to nothing and back: it keeps what it says.
func TestIdleGang(t *testing.T) {
	gang := terms.Job{Name: "train", Type: terms.Stateless, Priority: 50, Within: "rack", Grow: terms.GrowWhole,
		Tasks: []terms.Task{{Name: "main", Command: []string{"train"}, Placement: terms.Pack}}}
	for _, c := range []struct {
		in        rules.Number
		instances uint32
		want      int
	}{{rules.IdleGangs - 1, 0, 2}, {rules.IdleGangs, 0, 0}, {rules.IdleGangs, 4, 2}} {
		gang.Tasks[0].Instances = c.instances
		if got := Job(&gang, c.in); len(got) != c.want {
			t.Errorf("%d instances under number %d: got the problems %v, want %d", c.instances, c.in, got, c.want)
		}
	}
}
