// Package terms is the vocabulary: how users state what they want and machines what they give, and what both are
// called.
//
// Jobs, their tasks and pools stand here as their authors wrote them, offers as machines made them, with the names,
// amounts and limits in them. What is stated is compared here with its next version, and never changed. What a job may
// be, package validate says; what becomes of it stands in package cluster, of which nothing here knows.
//
// The package is pure: no clock, no randomness, no I/O, integers only.
package terms
