// Package door is how a peer is reached: TCP with mutual TLS, and a socket for the users of its own machine. It finds
// out who calls, and what that one may call; it admits nodes to the cluster, renews their certificates, and makes
// those of users. It answers before there is a peer behind it, so that a cluster can form.
package door
