package slack

import (
	"fmt"
	"testing"
	"time"

	"starling/driver"
)

// TestMeter reads every second what two instances use that were promised four cores and two.
func TestMeter(t *testing.T) {
	begin := time.Unix(1000, 0)
	m, used := Meter{Window: 3 * time.Second}, map[string]time.Duration{}
	for second, one := range []struct {
		// cores is what they use until then, in millicores; below 0 they do not run.
		a, b int64
		want uint32
		why  string
	}{
		{0, 0, 0, "nothing is known before the second reading"},
		{500, 0, 0, "a second is no window"},
		{500, 0, 0, "nor are two"},
		{500, 0, 5, "5.5 cores were left alone for all of it"},
		{3100, 0, 2, "what is less counts at once"},
		{0, 0, 2, "what is more does not"},
		{0, 0, 2, "nor before a window is over"},
		{0, 0, 2, "of which the first reading began before"},
		{0, 0, 6, "then it does"},
		{9000, 0, 2, "who uses more than was promised takes nothing of others"},
		{-1, 0, 2, "who has ended lends nothing"},
		{-1, 1999, 0, "a part of a core is none"},
	} {
		now := driver.Usage{At: begin.Add(time.Duration(second) * time.Second), Tasks: map[string]driver.Use{}}
		for id, millicores := range map[string]int64{"a": one.a, "b": one.b} {
			if used[id] += time.Duration(millicores) * time.Millisecond; millicores >= 0 {
				now.Tasks[id] = driver.Use{CPU: used[id]}
			}
		}
		t.Run(fmt.Sprint(second), func(t *testing.T) {
			if got := m.Read(map[string]int64{"a": 4000, "b": 2000}, now); got != one.want {
				t.Errorf("got %d cores, want %d: %s", got, one.want, one.why)
			}
		})
	}
	if got := m.Read(map[string]int64{"a": 4000}, driver.Usage{At: begin}); got != 0 {
		t.Errorf("a clock that goes back gives %d cores", got)
	}
}
