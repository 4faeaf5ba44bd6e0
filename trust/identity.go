package trust

import (
	"crypto/x509"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Kind is what an identity is of.
type Kind uint8

// The kinds. The zero value has shown nothing.
const (
	OfAnyone Kind = iota
	OfNode
	OfUser
	OfInstance
)

// Role is what a user may do; each may do what those before it may.
type Role uint8

// The roles.
const (
	NoRole Role = iota
	Viewer
	Submitter
	Operator
	Admin
)

var roleNames = [...]string{
	NoRole: "none", Viewer: "viewer", Submitter: "submitter", Operator: "operator", Admin: "admin",
}

// String returns the role's name.
func (r Role) String() string { return roleNames[r] }

// RoleNames lists the names of the roles, the least first.
func RoleNames() []string { return slices.Clone(roleNames[Viewer:]) }

// ParseRole reads the name of a role.
func ParseRole(text string) (Role, error) {
	if at := slices.Index(roleNames[:], text); at > int(NoRole) {
		return Role(at), nil
	}
	return NoRole, fmt.Errorf("role %q must be one of %s", text, strings.Join(RoleNames(), ", "))
}

// Identity is who calls, as a certificate or the kernel has proved it.
type Identity struct {
	Kind    Kind
	Cluster string
	// Name is the node's or the user's, and of an instance POOL/JOB/TASK/INDEX.
	Name string
	// Role is a user's.
	Role Role
	// Allocation is an instance's, such as etl/web.server[2]#4711.
	Allocation string
}

// nameForm is what nodes and users may be called.
var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,99}$`)

// Problem tells why there can be no such identity, "" if there can.
func (i Identity) Problem() string {
	switch {
	case i.Cluster == "":
		return "it names no cluster"
	case (i.Kind == OfNode || i.Kind == OfUser) && !nameForm.MatchString(i.Name):
		return fmt.Sprintf("name %q must have 1 to 100 letters, digits, dots, dashes, underscores or @, and begin with a letter or digit", i.Name)
	case i.Kind == OfUser && (i.Role <= NoRole || i.Role > Admin):
		return "a user must have a role"
	case i.Kind == OfInstance && (strings.Count(i.Name, "/") < 2 || i.Allocation == ""):
		return fmt.Sprintf("instance %q must be JOB/TASK/INDEX and have an allocation", i.Name)
	case i.Kind == OfAnyone || i.Kind > OfInstance:
		return "it is of no kind"
	}
	return ""
}

// String says who it is, for messages.
func (i Identity) String() string {
	switch i.Kind {
	case OfNode:
		return "node " + i.Name
	case OfUser:
		return fmt.Sprintf("user %s (%s)", i.Name, i.Role)
	case OfInstance:
		return "instance " + i.Allocation
	}
	return "a client without a certificate"
}

// URI returns the identity as certificates carry it. The role and the allocation stand elsewhere in them.
func (i Identity) URI() *url.URL {
	path := i.Name
	switch i.Kind {
	case OfNode:
		path = "node/" + path
	case OfUser:
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
		who.Kind, who.Name, who.Allocation = OfInstance, path, c.Subject.CommonName
	case first == "node":
		who.Kind, who.Name = OfNode, name
	case first == "user":
		who.Kind, who.Name = OfUser, name
		for _, text := range c.Subject.Organization {
			who.Role, _ = ParseRole(text) // what is no role gives none, which Problem refuses
		}
	}
	if reason := who.Problem(); reason != "" {
		return Identity{}, fmt.Errorf("the certificate for %s: %s", c.URIs[0], reason)
	}
	return who, nil
}
