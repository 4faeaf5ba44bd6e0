// Package report holds what the fold of an entry came to, and what a peer tells of it and of itself.
package report
