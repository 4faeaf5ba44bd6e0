// Package reconcile holds what a task should have against what it has: which slots must change, how, and why.
//
// A slot is the place of one instance: job instance, task, index below the task's count. It has a main seat and, while
// an update tries itself out, a canary seat. Its candidates are all its allocations, in any state. Each slot is decided
// once, from all its candidates together (Decide): at most one of them keeps a seat, and the seat gets one action or
// none, with a reason that its owner understands.
//
// What concerns the whole task cannot be decided in a slot. Slots ask, and Reconcile grants, lowest index first:
// permits to place, and tokens to replace what is outdated. What stands in the slots is summed up in a Tally, so the
// sums cannot drift: health, progress and attempts are the slots' own.
//
// Invariants:
//
//  1. After a result was applied, a seat has at most one instance that is meant to run.
//  2. An empty slot has an action or a reason.
//  3. The order of candidates has no influence.
//  4. A result that was applied leaves nothing to do at the same time, but waiting.
//  5. A slot that rests may be left out of the input if its weight (Decision.Weight) is in the Rest: the result is the
//     same. Slots rest whose action is Keep, but of those that are outdated or empty the lowest must be listed.
//
// To choose machines, to store what is decided, and to say when a follow-up is due is left to the caller.
package reconcile
