// Package api answers requests for a peer: gRPC, gRPC-Web and HTTP/JSON on one port, and the journal as a stream of
// events for plain curl.
//
// Every answer carries the journal index at which it was true, and a request that reads may say which index it wants
// to have seen. Writes answer after the peer's own fold has applied them. What the API needs of a peer is a Backend;
// it holds no state of its own. The service is described in v1/starling.proto; client wraps it for Go.
package api

//go:generate bash generate
