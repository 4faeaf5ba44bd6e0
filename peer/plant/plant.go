//go:build !plantedbug

// Package plant is where a program that is built to try it has a bug in its fold.
package plant

import "starling/command"

// Bug does nothing but in the program that is built to try what follows a bug of the fold.
func Bug(*command.Entry) {}
