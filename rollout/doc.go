// Package rollout answers what becomes of the record of a job's update: when it has failed or succeeded, by when it
// must get on, and what a user may do to it. Which instances it changes is for package reconcile.
package rollout
