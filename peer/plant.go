//go:build !plantedbug

package peer

import "starling/command"

// plant does nothing but in the program that is built to try what follows a bug of the fold.
func plant(*command.Entry) {}
