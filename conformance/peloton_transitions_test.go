package conformance

import (
	"slices"
	"strings"

	"starling/cluster/facts"
	"starling/command"
	"starling/terms"
)

// transitionsCase lists the states of an update and what leads from one to the next.
type transitionsCase struct {
	told     `yaml:",inline"`
	Kind     string
	Rows     []struct{ Source, To, Trigger string }
	Terminal []string
}

func (c *transitionsCase) check(t *trial, differences tally) {
	for _, row := range c.Rows {
		if row.Source == "INITIALIZED" {
			differences.state(t, noInitialized)
		}
		trigger, which, _ := strings.Cut(row.Trigger, ", ")
		if !slices.Contains([]string{"", "no rollback", "rollback_on_failure"}, which) {
			t.Errorf("no rule for the trigger %q", row.Trigger)
		}
		for one := range strings.SplitSeq(trigger, " or ") {
			u := &course{stage: newStage(t, room()), policy: terms.UpdatePolicy{BatchSize: 1, AttemptsMax: 1}}
			u.policy.Rollback = which == "rollback_on_failure" || row.Source == "ROLLING_BACKWARD"
			u.policy.StartPaused = one == "start_paused"
			if one == "failed below the limit" {
				u.policy.FailuresMax = 1
			}
			want := row.To
			if want == "previous state" {
				want = "ROLLING_FORWARD"
			}
			if u.reach(row.Source); !u.trigger(one, want) {
				t.Errorf("no rule for the trigger %q", row.Trigger)
				continue
			}
			if got := u.state(); got != want {
				t.Errorf("%s, %s: got %s (%s), want %s", row.Source, one, got, u.job().Update.Reason, want)
			}
		}
	}
	for _, state := range c.Terminal {
		u := &course{stage: newStage(t, room()),
			policy: terms.UpdatePolicy{BatchSize: 1, AttemptsMax: 1, Rollback: state == "ROLLED_BACK"}}
		u.reach(state)
		for how := command.Pause; how <= command.Abort; how++ {
			if r := u.steer(how); r.Code != facts.Conflict || u.state() != state {
				t.Errorf("%s: %s makes it %s, %+v", state, command.Steerings()[how], u.state(), r)
			}
		}
	}
}

// course is an update from version 1 to version 2 of a job with two instances.
type course struct {
	*stage
	policy terms.UpdatePolicy
}

// state returns how far the update is, or how it ended if a user brought another version.
func (u *course) state() string {
	all := u.job().Versions
	if last := &all[len(all)-1]; last.Number > 2 && last.Kind == facts.Submitted {
		return all[len(all)-2].Outcome.String()
	}
	return u.job().Update.State.String()
}

// reach brings the update to a state.
func (u *course) reach(state string) {
	u.submit(service(2, "old", u.policy))
	if u.job().Update.State == facts.Paused {
		u.t.Fatal("a job that is new starts paused")
	}
	u.play(always(passes))
	u.submit(service(2, "new", u.policy))
	switch state {
	case "INITIALIZED", "ROLLING_FORWARD":
	case "PAUSED":
		u.trigger("user", state)
	case "ROLLING_BACKWARD", "FAILED":
		u.trigger("failure limit", state)
	case "ROLLED_BACK":
		u.trigger("failure limit", state)
		u.trigger("all instances done", state)
	case "SUCCEEDED":
		u.trigger("all instances done", state)
	case "ABORTED":
		u.trigger("user", state)
	default:
		u.t.Fatalf("the state %q is not known", state)
	}
}

// trigger lets happen what leads to a state; it returns false if that is not known.
func (u *course) trigger(what, to string) bool {
	steering := map[string]command.Steering{"PAUSED": command.Pause, "ABORTED": command.Abort}[to]
	switch what {
	case "processing starts", "start_paused":
	case "user":
		if steering == 0 {
			return false
		}
		u.steer(steering)
	case "resume":
		u.steer(command.Resume)
	case "newer update":
		u.submit(service(2, "newer", u.policy))
	case "all instances done":
		u.play(always(passes))
	case "failed below the limit":
		u.play(func(r facts.SlotRef, slot facts.Slot) saying {
			if r.Index == 0 && slot.Phase != facts.Stopping {
				return fails
			}
			return passes
		})
	case "failure limit", "failure limit again":
		u.play(of(u.job().Version, always(fails)))
	default:
		return false
	}
	return true
}
