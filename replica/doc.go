// Package replica is the fold: Apply takes the value from one entry to the next.
package replica
