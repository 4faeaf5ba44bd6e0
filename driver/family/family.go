// Package family names processes of this machine for good, and ends all of a task, as far as the system lets its
// supervisor.
package family

// Identity names one process for good: its number may be another's later, but not with the same start.
type Identity struct {
	PID   int
	Start string
}
