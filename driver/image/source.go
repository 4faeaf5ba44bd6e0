package image

import (
	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/remotes"
)

// Source is where an image may come from. What it sends counts only when its size and digest are right.
type Source struct {
	// Name is how users are told of it, as in "node b".
	Name string
	remotes.Resolver
}

// Blob is a part of an image that is on this machine.
type Blob struct {
	content.ReaderAt
	MediaType string
}
