package clock

import (
	"testing"
	"time"
)

// machine is a clock that a test sets.
type machine struct {
	wall time.Time
	runs time.Duration
}

func (m *machine) read() (time.Time, time.Duration) { return m.wall, m.runs }

// pass lets time pass, and sets the clock ahead beside that.
func (m *machine) pass(time, set time.Duration) {
	m.runs += time
	m.wall = m.wall.Add(time + set)
}

func TestWall(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		name   string
		set    []time.Duration   // ahead, a second after each other
		others [][]time.Duration // after each; nil is not asked
		ahead  []time.Duration
	}{
		{"nothing is wrong", []time.Duration{0, time.Second}, [][]time.Duration{{0, 0}, nil}, []time.Duration{0, 0}},
		{"set ahead", []time.Duration{31 * day}, [][]time.Duration{nil}, []time.Duration{31 * day}},
		{"set ahead and back", []time.Duration{31 * day, -31 * day}, [][]time.Duration{nil, nil},
			[]time.Duration{31 * day, 0}},
		{"ahead from the beginning", []time.Duration{0}, [][]time.Duration{{-day, -day - time.Second}}, []time.Duration{day}},
		{"ahead of one other", []time.Duration{0, 0}, [][]time.Duration{{-day}, nil}, []time.Duration{day, day}},
		{"behind one other", []time.Duration{0}, [][]time.Duration{{day}}, []time.Duration{0}},
		{"another is ahead of all", []time.Duration{0}, [][]time.Duration{{day, 0, 0}}, []time.Duration{0}},
		{"others agree at last", []time.Duration{day, 0}, [][]time.Duration{nil, {0, 0}}, []time.Duration{day, 0}},
		{"alone", []time.Duration{day, 0}, [][]time.Duration{nil, {}}, []time.Duration{day, 0}},
		{"set back alone", []time.Duration{-day}, [][]time.Duration{nil}, []time.Duration{0}},
		{"little differs", []time.Duration{0}, [][]time.Duration{{-9 * time.Second, -9 * time.Second}}, []time.Duration{0}},
	} {
		m := &machine{wall: time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)}
		w := newWall(m.read)
		for i, set := range c.set {
			m.pass(time.Second, set)
			now := w.Now()
			if c.others[i] != nil {
				w.Compare(c.others[i])
				now = w.Now()
			}
			if got := m.wall.Sub(now); got != c.ahead[i] || w.Ahead() != got {
				t.Errorf("%s: %v of the clock do not count after step %d, want %v", c.name, got, i, c.ahead[i])
			}
		}
	}
}
