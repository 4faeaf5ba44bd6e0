//go:build !plantedbug

// Package plant is where a program that is built to try it has bugs in its fold.
package plant

import (
	"starling/cluster"
	"starling/command"
	"starling/terms"
)

// Bug does nothing but in the program that is built to try what follows bugs of the fold.
func Bug(terms.PeerID, *cluster.State, *command.Entry) {}
