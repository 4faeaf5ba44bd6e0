// Package replica is the fold: Apply takes the value from one entry to the next, and React lists what one peer must
// do because of the value.
package replica
