package replica

import (
	"fmt"
	"strings"
	"testing"

	"starling/command"
	"starling/terms"
	"starling/terms/rules"
)

// TestJobsHaveUsersOfTheirOwn takes two names with which jobs run as the same user, as anybody can find them: the
// second is refused as long as the first is known.
func TestJobsHaveUsersOfTheirOwn(t *testing.T) {
	var one, other string
	seen := map[uint32]string{}
	for i := 0; other == ""; i++ {
		name := fmt.Sprint("job", i)
		user := terms.JobName(name).OwnUser()
		if first, taken := seen[user]; taken {
			one, other = first, name
		}
		seen[user] = name
	}
	for _, c := range []struct {
		rules rules.Number
		want  string
	}{
		{rules.UsersApart - 1, ""},
		{rules.UsersApart, "job " + other + " would run as the same user as " + one},
	} {
		s := limited(func(l *terms.Limits) { l.FinishedJobs = 0 })
		s.Rules = c.rules
		first := batchOf(one, 1)
		first.Spec.Tasks[0].Resources[terms.CPU] = 2000 // more than the node has: it ends as soon as it is stopped
		apply(s, 3, first)
		refusal := apply(s, 4, batchOf(other, 1)).Results[0].Refusal
		if !strings.HasPrefix(refusal.Reason, c.want) || (c.want == "") != (refusal.Reason == "") {
			t.Errorf("rules %d: got %+v, want %q", c.rules, refusal, c.want)
		}
		if apply(s, 5, &command.KillJob{Job: first.Spec.Name}); s.JobOf(first.Spec.Name) != nil {
			t.Fatalf("%s is not forgotten", one)
		}
		if c.want == "" {
			continue
		}
		if again := apply(s, 6, batchOf(other, 1)).Results[0].Refusal; again.Reason != "" {
			t.Errorf("%s is forgotten, and the name is refused: %+v", one, again)
		}
	}
}
