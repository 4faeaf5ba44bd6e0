// Package trace answers "how much of these machines would this work use?": it replays machines and tasks that somebody
// recorded, through the same fold as a cluster's, and measures what comes of it under a policy of placement.
//
// Every machine joins and volunteers, and every task arrives as an entry with a job of one instance; nothing ever ends.
// Tasks come in a random order that one seed draws. The journal, the peers and the drivers are left out, so it is the
// fold's own speed that is measured. What is random, timed or a float stays here: the fold sees entries only.
package trace
