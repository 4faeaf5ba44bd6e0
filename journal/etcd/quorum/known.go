package quorum

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"syscall"
)

// known is what a machine remembers of the quorum, to find it again when those that it was told first are gone.
type known struct {
	path string
	// Endpoints are the client URLs of the members that had a vote last.
	Endpoints []string `json:"endpoints"`
	// Client and Peer are the URLs of this machine's member, "" if it had none.
	Client string `json:"client,omitempty"`
	Peer   string `json:"peer,omitempty"`
}

func loadKnown(path string) (*known, error) {
	k := &known{path: path}
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return k, nil
	}
	if err == nil {
		err = json.Unmarshal(data, k)
	}
	if err != nil {
		return nil, fmt.Errorf("where the quorum was last: %w\nhint: delete %s, and say with --join where a machine of the cluster is",
			err, path)
	}
	return k, nil
}

// Endpoints returns the client URLs of the members that had a vote last, as a machine's file says.
func Endpoints(path string) ([]string, error) {
	k, err := loadKnown(path)
	if err == nil && len(k.Endpoints) == 0 {
		err = fmt.Errorf("%s does not say where the quorum is", path)
	}
	if err != nil {
		return nil, err
	}
	return k.Endpoints, nil
}

// remember keeps the URLs if they are new.
func (k *known) remember(urls []string) error {
	slices.Sort(urls)
	if slices.Equal(urls, k.Endpoints) {
		return nil
	}
	last := *k
	last.Endpoints = urls
	if err := last.keep(); err != nil {
		return err
	}
	k.Endpoints = urls
	return nil
}

// rememberMember keeps where this machine's member answers, if that is new.
func (k *known) rememberMember(client, peer string) error {
	if k.Client == client && k.Peer == peer {
		return nil
	}
	k.Client, k.Peer = client, peer
	return k.keep()
}

// keep replaces the file.
func (k *known) keep() error {
	data, err := json.Marshal(k)
	if err == nil {
		err = os.WriteFile(k.path+".new", data, 0o600)
	}
	if err == nil {
		err = os.Rename(k.path+".new", k.path)
	}
	if err != nil {
		return fmt.Errorf("remember where the quorum is: %w", err)
	}
	return nil
}

// MemberURLs returns where this machine's member answers clients and other members, as its file says.
func MemberURLs(path string) (client, peer string, err error) {
	k, err := loadKnown(path)
	if err == nil && k.Client == "" {
		err = fmt.Errorf("%s does not say where this machine's member answers", path)
	}
	if err != nil {
		return "", "", err
	}
	return k.Client, k.Peer, nil
}

// except returns the URLs but one.
func (k *known) except(own string) []string {
	return slices.DeleteFunc(slices.Clone(k.Endpoints), func(u string) bool { return u == own })
}

// canListen tells in our words when a port of the engine is taken; the engine's own are long.
func canListen(at string) error {
	u, err := url.Parse(at)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", u.Host)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("another program listens on %s, where this node's etcd member must\n"+
			"hint: stop it, or change etcd.listen or etcd.peer; a second machine of a cluster needs --join", u.Host)
	case err != nil:
		return fmt.Errorf("listen for the etcd member: %w", err)
	}
	return listener.Close()
}
