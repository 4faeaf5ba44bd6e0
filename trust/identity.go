package trust

import (
	"crypto/x509"
	"fmt"
	"net/url"
	"strings"

	"starling/terms/access"
)

// Identity is who calls, as a certificate or the kernel has proved it.
type Identity struct {
	Kind    access.Kind
	Cluster string
	// Name is the node's or the user's, and of an instance POOL/JOB/TASK/INDEX.
	Name string
	// Role is a user's in the whole cluster, as the certificate has it, or the cluster's registry if that has one.
	Role access.Role
	// Allocation is an instance's, such as etl/web.server[2]#4711.
	Allocation string
}

// Problem tells why there can be no such identity, "" if there can.
func (i Identity) Problem() string {
	switch {
	case i.Cluster == "":
		return "it names no cluster"
	case (i.Kind == access.OfNode || i.Kind == access.OfUser) && access.NameProblem(i.Name) != "":
		return access.NameProblem(i.Name)
	case i.Kind == access.OfInstance && (strings.Count(i.Name, "/") < 2 || i.Allocation == ""):
		return fmt.Sprintf("instance %q must be JOB/TASK/INDEX and have an allocation", i.Name)
	case i.Kind == access.OfAnyone || i.Kind > access.OfInstance:
		return "it is of no kind"
	}
	return ""
}

// String says who it is, for messages.
func (i Identity) String() string {
	if i.Kind == access.OfUser || i.Kind == access.OfLocal {
		return fmt.Sprintf("user %s (%s)", i.Name, i.Role)
	}
	return i.Subject().String()
}

// Subject is the identity as the journal names it.
func (i Identity) Subject() access.Subject {
	if i.Kind == access.OfInstance {
		return access.Subject{Kind: i.Kind, Name: i.Allocation}
	}
	return access.Subject{Kind: i.Kind, Name: i.Name}
}

// IsUser tells whether it is a user, of the machine or elsewhere.
func (i Identity) IsUser() bool { return i.Kind == access.OfUser || i.Kind == access.OfLocal }

// URI returns the identity as certificates carry it. The role and the allocation stand elsewhere in them.
func (i Identity) URI() *url.URL {
	path := i.Name
	switch i.Kind {
	case access.OfNode:
		path = "node/" + path
	case access.OfUser:
		path = "user/" + path
	}
	return &url.URL{Scheme: "spiffe", Host: i.Cluster, Path: "/" + path}
}

// IdentityOf returns what a certificate says that its owner is. That it is signed is for others to verify.
func IdentityOf(c *x509.Certificate) (Identity, error) {
	if len(c.URIs) != 1 || c.URIs[0].Scheme != "spiffe" {
		return Identity{}, fmt.Errorf("the certificate must have one URI, which begins with spiffe://")
	}
	who := Identity{Cluster: c.URIs[0].Host}
	path := strings.TrimPrefix(c.URIs[0].Path, "/")
	first, name, _ := strings.Cut(path, "/")
	switch {
	case strings.Count(path, "/") > 1:
		who.Kind, who.Name, who.Allocation = access.OfInstance, path, c.Subject.CommonName
	case first == "node":
		who.Kind, who.Name = access.OfNode, name
	case first == "user":
		who.Kind, who.Name = access.OfUser, name
		for _, text := range c.Subject.Organization {
			who.Role, _ = access.ParseRole(text) // what is no role gives none
		}
	}
	if reason := who.Problem(); reason != "" {
		return Identity{}, fmt.Errorf("the certificate for %s: %s", c.URIs[0], reason)
	}
	return who, nil
}
