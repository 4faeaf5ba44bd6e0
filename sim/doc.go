// Package sim runs many peers in one goroutine under one seed: the real cores, with a journal, pulses, drivers, clocks
// and clients that fail as the seed draws. What it finds is replayed by the seed alone.
//
// After every entry it checks that replicas are equal at equal indexes, and that the books of the value are right; when
// the faults have stopped, that there is one ring, that nothing is left half done, and that all work that can run runs.
package sim
