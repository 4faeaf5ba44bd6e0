// Package clock has the time of the cluster.
package clock

import "starling/terms"

// Clock is the cluster's time as this peer knows it: its own clock, or what the journal told if that is ahead, going
// on from there as its own clock does. One peer's jump ahead moves everybody once and stops no deadline, and neither
// does a jump back of its own clock.
type Clock struct{ told, own terms.Time }

// Now returns that time, by the own clock.
func (c *Clock) Now(own terms.Time) terms.Time {
	c.own = min(c.own, own)
	return max(own, c.told+own-c.own)
}

// Heard takes note of a time in the journal, and of the own clock then.
func (c *Clock) Heard(told, own terms.Time) {
	if told > c.told {
		c.told, c.own = told, own
	}
}
