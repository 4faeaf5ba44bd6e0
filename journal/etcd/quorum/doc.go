// Package quorum lets machines keep the etcd that Starling embeds: the first one starts alone, others become its
// members by a rule, a member that stays away is replaced, and the survivor of a lost majority begins anew.
//
// A Node is one machine's part in that. It reaches the engine as a client, or through a member of its own; its journal
// is the same one all the time. Each machine that runs says so by a key that ends with it (package journal's pulses,
// below "machine/"), and with it where its member would be. The machine on which the engine's leader runs decides:
// Next is the rule, a function of the engine's list of members, of the machines and of the time. It is applied one
// change at a time.
//
// Beside the journal the engine keeps, below "quorum/":
//
//	away/ID       since when the machine of a member has not run
//	barred/NODE   a machine that was removed by hand, which the rule leaves alone
//	changed       is written after each change, so that the others look
package quorum
