package facts

import "starling/terms"

// Request is the outcome of a request that carried an id, kept so that its repetition is answered alike.
type Request struct {
	Index   terms.Index
	Refusal Refusal
	// Job is the job that the request was about.
	Job terms.JobName
}

// Code classifies a refusal; the edges map it once.
type Code uint8

// The codes. OK is no refusal.
const (
	OK Code = iota
	Invalid
	NotFound
	Conflict
	Denied
	Exhausted
	Unavailable
)

// String returns the code as the API writes it.
func (c Code) String() string {
	return [...]string{"ok", "invalid", "not_found", "conflict", "denied", "exhausted", "unavailable"}[c]
}

// Refusal says why a command changed nothing; it is the same on every peer. The zero Refusal is none.
type Refusal struct {
	Code   Code
	Reason string
}
