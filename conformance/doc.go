// Package conformance checks what the four designs promise, as data: every file below testdata is run against the
// pure core. It holds tests only; the READMEs beside the data describe the formats.
//
// A file that no runner knows fails. What is not checked is listed with its reason, counted and printed.
package conformance
