package rollout

import (
	"testing"

	"starling/cluster/facts"
	"starling/command"
	"starling/terms"
)

func TestLimits(t *testing.T) {
	for _, c := range []struct{ got, want bool }{
		{InstanceFailed(100, 0), false}, {InstanceFailed(2, 1), true}, {InstanceFailed(1, 2), false},
		{InstanceFailed(2, 2), true},
		{Failed(0, 0), false}, {Failed(1, 0), true}, {Failed(3, 3), false}, {Failed(4, 3), true},
		{Failed(9, terms.RestartsUnlimited), false},
	} {
		if c.got != c.want {
			t.Errorf("got %v, want %v", c.got, c.want)
		}
	}
}

// TestSteer tries every way to steer in every state.
func TestSteer(t *testing.T) {
	becomes := map[facts.UpdateState]map[command.Steering]facts.UpdateState{
		facts.RollingForward: {
			command.Pause: facts.Paused, command.Abort: facts.UpdateAborted, command.Promote: facts.RollingForward,
			command.Fail: facts.RollingForward,
		},
		facts.RollingBackward: {
			command.Pause: facts.Paused, command.Abort: facts.UpdateAborted, command.Promote: facts.RollingBackward,
			command.Fail: facts.RollingBackward,
		},
		facts.Paused: {
			command.Resume: facts.RollingBackward, command.Abort: facts.UpdateAborted, command.Promote: facts.Paused,
			command.Fail: facts.Paused,
		},
	}
	for state := range facts.UpdateStateCount {
		for how := command.Pause; how <= command.Abort; how++ {
			u := facts.Update{State: state}
			if state == facts.Paused {
				u.Before = facts.RollingBackward
			}
			got, reason := Steer(u, how, 7)
			want, allowed := becomes[state][how]
			if (reason == "") != allowed || allowed && got.State != want {
				t.Errorf("%s in state %q: %q, %q; want %q, allowed %v", how, state, got.State, reason, want, allowed)
			}
		}
	}
	if _, reason := Steer(facts.Update{State: facts.RollingForward, Promoted: true}, command.Promote,
		7); reason == "" {
		t.Error("an update whose canaries were promoted is promoted again")
	}
}
