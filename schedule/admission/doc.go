// Package admission decides which waiting gangs a leaf pool admits.
//
// Gangs are asked in the order of their turns (see workload.QueueEntry). One that fits within all its bounds is
// admitted, whole. For one that does not fit, the pool keeps what it needs, as it comes free, and those behind get what
// is left beside it. So nothing that is admitted later makes a gang wait longer, whatever the one asks for and however
// long it runs; and what needs other kinds, or less than is left over, goes past. It takes no estimate of run times.
//
// The pool keeps nothing for a gang that would not fit even if all work were done that ends by itself: nothing waits
// for what may never come. It is asked again whenever there is more.
//
// Besides its own bounds a leaf has an ancestor limit, what the limits of the pools above it leave. Others below those
// share it.
//
// The pool waits for one gang of each class, the first: what bounds the non-preemptible does not hold up the others.
// When the first has been admitted, the next one of its class is the first.
//
// The state of the decision is small, so the fold goes through as many waiting gangs as an entry may cost and leaves
// the others for the next.
package admission
