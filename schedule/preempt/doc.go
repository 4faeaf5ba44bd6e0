// Package preempt answers "what gives way?": it chooses which instances are ended for work that is entitled to room and
// finds none.
//
// What may be ended, and by which rule:
//   - revocable instances, for any work that is not revocable;
//   - those of other pools, of the same class, as far as their pool holds more than it is entitled to;
//   - those of the same pool and class, of lower priority.
//
// First go the revocable, then what does not run yet, then lower priority, then what has run for the shortest time.
// What a gang can spare goes before any gang is broken, and a gang is broken only if nothing else helps; then all of it
// goes. Nothing is ended in vain: what is wanted fits on the machines afterwards, machine by machine, and would not
// if any one of the chosen stayed.
//
// The choice is made step by step, not among all sets of victims. What is wanted may be found impossible, rarely, where
// gangs and what others are entitled to leave only one way; and with several wants a victim may go that could have
// stayed if all had other seats.
package preempt
