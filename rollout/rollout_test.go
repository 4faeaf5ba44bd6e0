package rollout

import (
	"testing"

	"starling/cluster"
	"starling/command"
	"starling/terms"
)

func TestWave(t *testing.T) {
	cases := []struct {
		batch, underWay uint32
		left, want      Work
	}{
		{0, 9, Work{2, 4, 1}, Work{2, 4, 1}},
		{3, 0, Work{2, 4, 0}, Work{2, 1, 0}},
		{3, 0, Work{5, 4, 2}, Work{3, 0, 0}},
		{3, 3, Work{2, 4, 1}, Work{}},
		{3, 7, Work{2, 4, 1}, Work{}},
		{4, 0, Work{0, 2, 3}, Work{0, 2, 2}},
		{4, 3, Work{0, 0, 3}, Work{0, 0, 1}},
		{100, 0, Work{1, 1, 1}, Work{1, 1, 1}},
	}
	for _, c := range cases {
		if got := Wave(c.batch, c.underWay, c.left); got != c.want {
			t.Errorf("Wave(%d, %d, %v) = %v, want %v", c.batch, c.underWay, c.left, got, c.want)
		}
	}
}

func TestSpare(t *testing.T) {
	task := func(desired, well, failed uint32) *cluster.Task {
		one := &cluster.Task{TaskFacts: cluster.TaskFacts{Desired: desired}}
		one.Old[cluster.Healthy], one.New[cluster.Unhealthy] = well, failed
		return one
	}
	cases := []struct {
		task                     *cluster.Task
		batch, failuresMax, want uint32
	}{
		{task(5, 5, 0), 0, 0, 5},
		{task(5, 5, 0), 2, 0, 2},
		{task(5, 4, 0), 2, 0, 1},
		{task(5, 3, 0), 2, 0, 0},
		{task(5, 1, 0), 2, 0, 0},
		{task(5, 4, 1), 2, 0, 1},
		{task(5, 4, 1), 2, 1, 2},
		{task(5, 3, 2), 2, 1, 1},
		{task(5, 3, 2), 2, terms.RestartsUnlimited, 2},
	}
	for _, c := range cases {
		if got := Spare(c.task, c.batch, c.failuresMax); got != c.want {
			t.Errorf("of %d desired, %d well and %d failed a batch of %d that bears %d spares %d, want %d",
				c.task.Desired, c.task.Old[cluster.Healthy], c.task.New[cluster.Unhealthy], c.batch, c.failuresMax, got, c.want)
		}
	}
}

func TestLimits(t *testing.T) {
	for _, c := range []struct{ got, want bool }{
		{InstanceFailed(100, 0), false}, {InstanceFailed(2, 1), true}, {InstanceFailed(1, 2), false}, {InstanceFailed(2, 2), true},
		{Failed(0, 0), false}, {Failed(1, 0), true}, {Failed(3, 3), false}, {Failed(4, 3), true}, {Failed(9, terms.RestartsUnlimited), false},
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
			command.Pause: cluster.Paused, command.Abort: cluster.UpdateAborted, command.Promote: cluster.RollingForward, command.Fail: cluster.RollingForward,
		},
		cluster.RollingBackward: {
			command.Pause: cluster.Paused, command.Abort: cluster.UpdateAborted, command.Promote: cluster.RollingBackward, command.Fail: cluster.RollingBackward,
		},
		cluster.Paused: {
			command.Resume: cluster.RollingBackward, command.Abort: cluster.UpdateAborted, command.Promote: cluster.Paused, command.Fail: cluster.Paused,
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
	if _, reason := Steer(cluster.Update{State: cluster.RollingForward, Promoted: true}, command.Promote, 7); reason == "" {
		t.Error("an update whose canaries were promoted is promoted again")
	}
}
