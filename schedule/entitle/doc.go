// Package entitle tells how much each resource pool may use now.
//
// Entitlements is a function of the capacity, the tree of pools, and what the leaves hold and ask for; nothing else.
// It goes up the tree once, to learn what each pool needs, and down once. Every pool divides what it was given among
// those directly below it, each kind by itself:
//
//  1. The reservation, as far as it is needed. A static one is given whole, needed or not, as far as the parent's own
//     reservation covers it. If the pool has less than that, reservations are scaled down, in proportion.
//  2. What is left, by share, until all needs are met.
//  3. What is left then, by share, up to the limits: room for what comes next.
//
// A need ends at the pool's limit, so that nothing is given that could not be used. What a need or a limit cuts off
// goes to the others by share. So everything is given away, unless all are at their limits or have no share.
//
// Division is exact: the sum of the parts is what was divided. Units that do not divide go to the largest fractions,
// and among equal ones to those that stand first in the tree.
//
// Of each entitlement a part is slack, which only revocable work may use; all else may use the rest. In a kind that is
// overcommitted the slack is another, beyond the entitlement: what is reserved in the cluster and lies idle. It is
// divided by share: what is held first, then what is asked for, then the rest.
package entitle
