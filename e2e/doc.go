// Package e2e tries the binary from outside: scripts that run it as its users do, and the demo.
package e2e
