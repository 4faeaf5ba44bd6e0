package host

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"starling/driver/record"
	"starling/journal"
	"starling/peer/identity"
	"starling/terms"
	"starling/trust"
)

// Belonging is the cluster and the node that a data directory belongs to; the zero value is of a new one.
type Belonging struct {
	Cluster string         `json:"cluster"`
	Node    terms.NodeName `json:"node"`
}

// The files of a data directory that say whose it is: of which cluster and node, and which life that leads.
const (
	belongingName = "cluster.json"
	identityName  = "identity.json"
)

// Belongs reads whose the directory is, and refuses what cannot be read, or is another node's.
func (f *Folder) Belongs(node terms.NodeName) (Belonging, error) {
	path := filepath.Join(f.Path, belongingName)
	known := Belonging{}
	data, err := os.ReadFile(path)
	if err == nil {
		if err = json.Unmarshal(data, &known); err == nil && (known.Cluster == "" || known.Node == "") {
			err = errors.New("it names no cluster or no node")
		}
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return known, fmt.Errorf("%s says which cluster and node this data directory belongs to, and is damaged: %w\n"+
			"hint: put it back; if you know that the directory is of this cluster and of node %s, delete it", path, err, node)
	}
	if known.Node != "" && known.Node != node {
		return known, fmt.Errorf("the data directory %s belongs to node %s of cluster %s, not to node %s: nothing was touched\n"+
			"hint: start it with --node %s, or choose an empty directory with --data DIR", f.Path, known.Node, known.Cluster, node, known.Node)
	}
	return known, checkIdentity(f.Path)
}

// checkIdentity refuses a damaged file of the life that a node leads.
func checkIdentity(folder string) error {
	if _, err := (identity.File{Path: filepath.Join(folder, identityName)}).Load(); err != nil {
		return fmt.Errorf("%w: this node joins as a new incarnation then, and what ran here is placed again", err)
	}
	return nil
}

// enterWithin bounds how long the journal, which has answered just before, may take to tell whose it is: its engine may
// choose another leader meanwhile.
const enterWithin = 30 * time.Second

// Enter compares the directory's cluster with the one whose journal this is. A new directory belongs to that from now
// on, and a journal that is no cluster's yet becomes that of the machine's own, whose authority has signed for it.
func (f *Folder) Enter(ctx context.Context, j journal.Journal, known, own Belonging) error {
	proposed := ""
	if known.Cluster == "" {
		proposed = own.Cluster
	}
	id, err := j.Cluster(ctx, proposed)
	for end := time.Now().Add(enterWithin); err != nil && ctx.Err() == nil && time.Now().Before(end); {
		select {
		case <-time.After(enterWithin / 100):
		case <-ctx.Done():
		}
		id, err = j.Cluster(ctx, proposed)
	}
	switch {
	case err != nil:
		return err
	case known.Cluster == "" && id != own.Cluster:
		return fmt.Errorf("this journal is of cluster %s, and this machine's certificate of %s: nothing was touched\n"+
			"hint: start it with an empty directory --data DIR and the line of `starling token create` on a machine of that cluster as --join",
			id, own.Cluster)
	case known.Cluster == "":
		return f.keep(own)
	case id == "":
		return fmt.Errorf("this journal is new, but the data directory %s belongs to cluster %s: nothing was touched\n"+
			"hint: if the journal of that cluster is to move here, start this agent with its old settings until `starling journal copy` "+
			"has done so; otherwise say where that cluster is", f.Path, known.Cluster)
	case id != known.Cluster:
		return fmt.Errorf("this journal is of cluster %s, but the data directory %s belongs to cluster %s: nothing was touched\n"+
			"hint: is the address of another cluster in join or etcd.endpoints? To leave the old one for good, choose an empty "+
			"directory with --data DIR", id, f.Path, known.Cluster)
	}
	return nil
}

// keep writes whose the directory is; it is durable then.
func (f *Folder) keep(b Belonging) error {
	data, err := json.Marshal(b)
	if err != nil {
		return err
	}
	path := filepath.Join(f.Path, belongingName)
	file, err := os.Create(path + ".new")
	if err == nil {
		_, err = file.Write(append(data, '\n'))
		err = errors.Join(err, file.Sync(), file.Close())
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return fmt.Errorf("keep whose the data directory is: %w", err)
	}
	return nil
}

// ID tells the directory on this machine from a copy of it, here or elsewhere.
func (f *Folder) ID() (string, error) {
	machine, err := os.ReadFile("/etc/machine-id")
	if err != nil {
		name, err := os.Hostname()
		if err != nil {
			return "", fmt.Errorf("find the host's name: %w", err)
		}
		machine = []byte(name)
	}
	info, err := f.lock.Stat()
	if err != nil {
		return "", fmt.Errorf("look at the data directory: %w", err)
	}
	file, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", errors.New("look at the data directory: this system tells no numbers of files")
	}
	return fmt.Sprintf("%s:%d:%d", bytes.TrimSpace(machine), file.Dev, file.Ino), nil
}

// place is where a data directory was used last: which directory it was, and where its agent answered.
type place struct {
	ID      string `json:"id"`
	Address string `json:"address"`
}

// placeName is the file of a data directory that has it.
const placeName = "place.json"

// askMax bounds the question whether the agent of another directory answers.
const askMax = 2 * time.Second

// RefuseCopy refuses a directory that is a copy of one whose agent runs: before anything of it runs twice, such as a
// member of the quorum. One that was moved, or whose machine was replaced, is taken.
func (f *Folder) RefuseCopy(ctx context.Context, keys *trust.Keys) error {
	id, err := f.ID()
	if err != nil {
		return err
	}
	last := place{}
	if found, err := record.Read(f.Path, placeName, &last); !found || err != nil || last.ID == id || last.Address == "" {
		return nil // it is new, or used where it was
	}
	ctx, cancel := context.WithTimeout(ctx, askMax)
	defer cancel()
	dialer := &tls.Dialer{NetDialer: &net.Dialer{}, Config: trust.ClientTLS(keys.Shows)}
	dialed, err := dialer.DialContext(ctx, "tcp", last.Address)
	if err != nil {
		return nil // nobody of this cluster answers there
	}
	defer dialed.Close()
	shown := dialed.(*tls.Conn).ConnectionState().PeerCertificates // tls.Dialer returns nothing else
	if who, err := trust.IdentityOf(shown[0]); err != nil || who.Name != keys.Node() {
		return nil
	}
	return fmt.Errorf("the data directory %s is a copy of one whose agent runs, and answers at %s: nothing was touched\n"+
		"hint: a machine of its own joins with an empty --data and a line of `starling token create`; to move a machine stop its "+
		"agent first", f.Path, last.Address)
}

// Settle notes where the directory is used now.
func (f *Folder) Settle(address string) error {
	id, err := f.ID()
	if err != nil {
		return err
	}
	if err := record.Write(f.Path, placeName, place{id, address}); err != nil {
		return fmt.Errorf("note where the data directory is used: %w", err)
	}
	return nil
}
