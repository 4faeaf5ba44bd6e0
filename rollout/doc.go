// Package rollout answers "what may an update do now?": how many instances it may touch, when it has succeeded or failed,
// and what a user may do to it.
//
// It counts from the slots each time, so that there is no counter of healthy or failed instances that could drift from
// them. An update keeps one promise: of the instances that a task is to have, it leaves without health at most as many as
// a batch has, and as many more as are allowed to fail; whatever else fails meanwhile is counted before it takes more.
package rollout
