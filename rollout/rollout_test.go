package rollout

import (
	"testing"

	"starling/cluster"
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
	becomes := map[cluster.UpdateState]map[command.Steering]cluster.UpdateState{
		cluster.RollingForward: {
			command.Pause: cluster.Paused, command.Abort: cluster.UpdateAborted, command.Promote: cluster.RollingForward,
			command.Fail: cluster.RollingForward,
		},
		cluster.RollingBackward: {
			command.Pause: cluster.Paused, command.Abort: cluster.UpdateAborted, command.Promote: cluster.RollingBackward,
			command.Fail: cluster.RollingBackward,
		},
		cluster.Paused: {
			command.Resume: cluster.RollingBackward, command.Abort: cluster.UpdateAborted, command.Promote: cluster.Paused,
			command.Fail: cluster.Paused,
		},
	}
	for state := range cluster.UpdateStateCount {
		for how := command.Pause; how <= command.Abort; how++ {
			u := cluster.Update{State: state}
			if state == cluster.Paused {
				u.Before = cluster.RollingBackward
			}
			got, reason := Steer(u, how, 7)
			want, allowed := becomes[state][how]
			if (reason == "") != allowed || allowed && got.State != want {
				t.Errorf("%s in state %q: %q, %q; want %q, allowed %v", how, state, got.State, reason, want, allowed)
			}
		}
	}
	if _, reason := Steer(cluster.Update{State: cluster.RollingForward, Promoted: true}, command.Promote,
		7); reason == "" {
		t.Error("an update whose canaries were promoted is promoted again")
	}
}
