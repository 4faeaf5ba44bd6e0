// Package snapshot writes the facts of a value as bytes, and reads them back. Equal facts have equal bytes, on every
// peer, so that peers agree about a snapshot when they agree about its hash.
//
// The bytes begin with the format. A spec that several versions of jobs have is written once.
package snapshot
