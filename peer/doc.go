// Package peer is the runtime: it reads the journal into the inbox, folds, and performs the reactions.
//
// Core is the part without clock, goroutine or I/O: it takes events and returns what is to be done, so that the
// simulator steps the same code. Peer drives one Core with a real journal, driver and clock, in one loop.
package peer
