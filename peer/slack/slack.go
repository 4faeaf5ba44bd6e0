// Package slack finds what the instances of a machine were promised of its processors and leave alone, so that others
// may have it for as long as that is so.
package slack

import (
	"math"
	"os"
	"strconv"
	"time"

	"starling/driver"
	"starling/terms"
)

// Meter holds readings of what instances use against what they were promised. The zero Meter has read nothing.
type Meter struct {
	// Window is for how long a core must have been left alone before it counts.
	Window time.Duration
	last   driver.Usage
	seen   []sample
}

// sample is how much was left alone between two readings, in millicores.
type sample struct {
	from, to time.Time
	idle     int64
}

// Every is how often to read, for a window: ten times in it, a second at least.
func Every(window time.Duration) time.Duration { return max(window/10, time.Second) }

// Read takes what instances use now, and what each of those was promised that may lend it, in millicores. It returns
// the whole cores that were left alone at each time within the window; of an instance that was not there at the
// reading before, nothing is known. What is less counts at once, what is more after a window. Known is false as long as
// it has not read for a window.
func (m *Meter) Read(promised map[string]int64, now driver.Usage) (cores uint32, known bool) {
	elapsed := now.At.Sub(m.last.At)
	if elapsed <= 0 {
		return m.cores(now.At)
	}
	idle := int64(0)
	for id, millicores := range promised {
		was, before := m.last.Tasks[id]
		is, runs := now.Tasks[id]
		if before && runs {
			used := float64(is.CPU-was.CPU) / float64(elapsed) * 1000
			idle += max(millicores-int64(math.Ceil(used)), 0)
		}
	}
	if !m.last.At.IsZero() {
		m.seen = append(m.seen, sample{m.last.At, now.At, idle})
	}
	m.last = now
	return m.cores(now.At)
}

// cores returns what was left alone in all of the window before a time, and forgets what was before it.
func (m *Meter) cores(now time.Time) (cores uint32, known bool) {
	begin := now.Add(-m.Window)
	for len(m.seen) > 0 && m.seen[0].to.Before(begin) {
		m.seen = m.seen[1:]
	}
	if len(m.seen) == 0 || m.seen[0].from.After(begin) {
		return 0, false
	}
	least := m.seen[0].idle
	for _, one := range m.seen {
		least = min(least, one.idle)
	}
	return uint32(min(least/1000, terms.DevicesMax)), true
}

// Remember notes in a file how many cores are offered, for who reads for less than a window.
func Remember(file string, cores uint32) error {
	return os.WriteFile(file, []byte(strconv.FormatUint(uint64(cores), 10)), 0o600)
}

// Remembered returns what a file says, 0 if that is nothing.
func Remembered(file string) uint32 {
	text, err := os.ReadFile(file)
	cores, wrong := strconv.ParseUint(string(text), 10, 32)
	if err != nil || wrong != nil {
		return 0
	}
	return uint32(min(cores, terms.DevicesMax))
}
