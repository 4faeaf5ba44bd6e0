// Package reconcile holds what a task should have against what it has: which slots must change, how, and why.
//
// A slot is the place of one instance: job, task, index below the task's count. It has a main seat and, while
// an update tries itself out, a canary seat. Its candidates are all its allocations, in any state. Each slot is decided
// once, from all its candidates together (Decide): at most one of them keeps a seat, and the seat gets one action or
// none, with a reason that its owner understands. The slots of a daemon are nodes, which may be closed.
//
// What concerns the whole task cannot be decided in a slot. Slots ask, and Reconcile grants, lowest index first:
// permits to place, and tokens to replace what is outdated. What it must know of all slots is summed up in a Tally, so
// there is no counter that could drift: health, progress and attempts are the slots' own.
//
// Invariants, held by random tasks:
//
//  1. After a result was applied, a seat has at most one instance that is meant to run and within reach.
//  2. A seat has one action at most, an allocation one fate, an empty slot an action or a reason.
//  3. The order of candidates has no influence.
//  4. A result that was applied leaves nothing to do at the same time, but waiting.
//  5. Slots about which nothing is done may be left out of the input if their weights are in the rest: the result is
//     the same. Who keeps the tally lists the slots that changed or whose Until has come, and the lowest of those that
//     ask for what they were not granted, whenever that may be granted now.
//
// A weight holds until the slot's candidates, their nodes or the task change, or Until has come.
//
// To choose machines, to store what is decided, and to judge health is left to the caller.
package reconcile
