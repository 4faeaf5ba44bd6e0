// Package jobspec is the job file: what users write, and the specification that the cluster takes.
package jobspec
