package slack

import (
	"fmt"
	"os"
	"path/filepath"
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
			got, known := m.Read(map[string]int64{"a": 4000, "b": 2000}, now)
			if got != one.want || known != (second >= 3) {
				t.Errorf("got %d cores, known %t, want %d: %s", got, known, one.want, one.why)
			}
		})
	}
	if got, known := m.Read(map[string]int64{"a": 4000}, driver.Usage{At: begin}); got != 0 || known {
		t.Errorf("a clock that goes back gives %d cores", got)
	}
}

// TestRemembered goes on with what was offered before, and with nothing where no file says it.
func TestRemembered(t *testing.T) {
	file := filepath.Join(t.TempDir(), "slack")
	if got := Remembered(file); got != 0 {
		t.Errorf("no file says %d", got)
	}
	if err := Remember(file, 7); err != nil || Remembered(file) != 7 {
		t.Errorf("7 is remembered as %d (%v)", Remembered(file), err)
	}
	if err := os.WriteFile(file, []byte("7 or 8"), 0o600); err != nil || Remembered(file) != 0 {
		t.Errorf("what is no number is read as %d (%v)", Remembered(file), err)
	}
}
