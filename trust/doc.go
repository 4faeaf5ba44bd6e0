// Package trust says who is who: the cluster's certificate authority, the certificates of nodes, users and instances,
// the line by which a machine joins, and the TLS that all of this is for.
//
// Every identity is a SPIFFE URI in a certificate. Those of nodes and users are signed by the cluster's authority,
// whose key only some nodes hold; those of instances by the key of their own node, which alone takes them. A key
// never leaves the machine that made it, but for the authority's, which a node gets that joins as another holder of
// it, and the next one's from others that hold it when the authority is replaced.
//
// Authorities follow one another: each is signed by one from before it, under the same name, and nodes show all of them
// behind their certificates. Whoever knows one takes those that follow from it.
package trust
