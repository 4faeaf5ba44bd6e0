// Package dns answers the names of instances over DNS, from what its Directory knows.
//
// What a name means says package terms/domain. A and AAAA give the addresses of one instance or of all of a task, SRV
// the ports: _http._tcp.worker.train.ml.starling. A name that is there without what was asked for is answered without
// records, one that is not there with NXDOMAIN; pools, jobs and what else lies above a name are there, since resolvers
// that ask for one label after the other would stop at them. Names of other zones are refused: this server asks nobody
// else.
//
// Of many instances an answer holds some, begun at a place that follows from the number of the question, so that not
// all who ask find the same one first. What does not fit into a datagram is cut off and marked, and is asked for again
// by TCP.
//
// The messages and the servers are those of github.com/miekg/dns, which is in wide use and only repaired any more;
// nothing outside this package knows it, so that its successor can take its place.
package dns
