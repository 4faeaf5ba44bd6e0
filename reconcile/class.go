package reconcile

import "starling/terms"

// Class is what a candidate's node and marks mean for it.
type Class uint8

// The classes.
const (
	// Untouched candidates are judged by their own state alone.
	Untouched Class = iota
	// Ignored candidates take no part.
	Ignored
	// Reconnecting candidates were out of reach and are seen again.
	Reconnecting
	// Expiring candidates were out of reach for too long.
	Expiring
	// Lost candidates are on a node that does not come back.
	Lost
	// Disconnecting candidates are on a node that went out of reach and may come back.
	Disconnecting
	// Migrating candidates must leave their node.
	Migrating
)

// Classify returns the class of a candidate under its own disconnect policy. The first rule that matches decides.
func Classify(c *Candidate, policy *terms.Disconnect, now terms.Time) Class {
	returns := c.returns()
	switch {
	case c.Told:
		return Ignored
	case returns && c.Client == FailedClient:
		return Reconnecting
	case c.ended():
		return Untouched
	case c.expired(policy, now):
		return Expiring
	case c.Node == NodeDisconnected:
		return classOutOfReach(c, policy)
	case c.Migrate:
		return Migrating
	case c.Node == NodeGone:
		return Lost
	case returns:
		return Reconnecting
	}
	return Untouched
}

func classOutOfReach(c *Candidate, policy *terms.Disconnect) Class {
	switch {
	case c.Client == UnknownClient:
		return Untouched
	case c.Client == PendingClient || policy.LostAfterMillis == 0:
		return Lost
	}
	return Disconnecting
}

// expired tells whether it is out of reach for longer than its policy bears.
func (c *Candidate) expired(policy *terms.Disconnect, now terms.Time) bool {
	return c.Client == UnknownClient && c.UnknownSince != 0 && c.expires(policy) <= now
}

// expires returns when it counts as lost if it stays out of reach.
func (c *Candidate) expires(policy *terms.Disconnect) terms.Time {
	return c.UnknownSince + terms.Time(policy.LostAfterMillis)
}

// Occupancy tells whether a candidate that is not to be moved keeps its seat.
type Occupancy uint8

// The values of Occupancy.
const (
	// Vacates: the seat is empty, as far as this candidate is concerned.
	Vacates Occupancy = iota
	// Occupies: it keeps the seat.
	Occupies
	// Retries: it keeps the seat unless its retry policy says otherwise.
	Retries
)

// Occupation returns whether the candidate keeps its seat. In batch work what ended well keeps it for ever; a service
// that ended leaves it.
func Occupation(c *Candidate, batch bool) Occupancy {
	switch {
	case c.Told || c.Client == LostClient || c.Client == CompleteClient && !batch:
		return Vacates
	case batch && c.Client != FailedClient:
		return Occupies
	}
	return Retries
}
