// Package jobspec is the job file: what users write, and the specification that the cluster takes.
//
// One table of fields (fields.go) says of every key how it is read, written, defaulted and explained. Parse, Schema and
// the reference in docs are views of it, so that they cannot differ. Parse works on the tree of the YAML document
// and never lets the YAML library decide what a scalar means: the field decides, by one rule for texts (letter by
// letter) and one for numbers (plain decimal digits). What a job may be, package validate says; here its complaints
// only get the position in the file.
//
//	data ──▶ YAML tree ──▶ fields: shape, types, quantities, defaults ──▶ Problems: limits, names ──▶ Document
//	                                    │                                        │
//	                                    └───────▶ Errors: file:line:column: path: reason ◀──┘
package jobspec
