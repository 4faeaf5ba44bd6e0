// Package reaction tells what a peer does because of the value. React compares levels, not edges: what the value asks
// of one node with what is there. A restart, a lost notification or one that comes twice needs no case of its own.
package reaction
