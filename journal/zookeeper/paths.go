package zookeeper

import (
	"fmt"
	"iter"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"starling/journal"
)

// ChrootDefault is where the journal is kept if nothing else is said.
const ChrootDefault = "/starling"

// Parse reads how an ensemble is written: "10.0.0.1:2181,10.0.0.2:2181/starling".
func Parse(text string) (servers []string, chroot string, err error) {
	list, below, found := strings.Cut(text, "/")
	if chroot = ChrootDefault; found {
		chroot = "/" + below
	}
	for name := range strings.SplitSeq(chroot[1:], "/") {
		if name == "" || name == "." || name == ".." || name != unprintable.ReplaceAllString(name, "") {
			return nil, "", fmt.Errorf("chroot %q must be names such as /starling, each without space", chroot)
		}
	}
	if chroot == "/zookeeper" || strings.HasPrefix(chroot, "/zookeeper/") {
		return nil, "", fmt.Errorf("chroot %q is ZooKeeper's own", chroot)
	}
	for server := range strings.SplitSeq(list, ",") {
		host, port, err := net.SplitHostPort(server)
		if err != nil || host == "" || port == "" {
			return nil, "", fmt.Errorf("server %q must be HOST:PORT, such as 10.0.0.1:2181", server)
		}
		servers = append(servers, server)
	}
	return servers, chroot, nil
}

// unprintable is what ZooKeeper does not take in a name, or people would not see there.
var unprintable = regexp.MustCompile(`[^[:graph:]]`)

// quotaRoot is where the ensemble keeps quotas, each below it at the path that it bounds.
const quotaRoot = "/zookeeper/quota"

// paths names the nodes.
type paths struct {
	chroot   string // "" for none
	shards   string
	writers  string
	snapshot string
	pulses   string
	owners   string
	cluster  string
	// The ensemble's own, of the chroot: what is below it, and what may be.
	quotaUsed, quotaLimits string
}

func newPaths(chroot string) paths {
	chroot = strings.TrimSuffix(chroot, "/")
	return paths{
		chroot: chroot, shards: chroot + "/shard", writers: chroot + "/writer", snapshot: chroot + "/snapshot",
		pulses: chroot + "/pulse", owners: chroot + "/owner",
		cluster:   chroot + "/cluster",
		quotaUsed: quotaRoot + chroot + "/zookeeper_stats", quotaLimits: quotaRoot + chroot + "/zookeeper_limits",
	}
}

// parents are the nodes that are there for others, in the order in which they can be made.
func (p paths) parents() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := 1; i <= len(p.chroot); i++ {
			if (i == len(p.chroot) || p.chroot[i] == '/') && !yield(p.chroot[:i]) {
				return
			}
		}
		for _, at := range []string{p.shards, p.writers, p.snapshot, p.pulses, p.owners} {
			if !yield(at) {
				return
			}
		}
	}
}

// shardNode names a shard. Names are in the order of the numbers.
func shardNode(number uint64) string { return fmt.Sprintf("%010d", number) }

func (p paths) shard(number uint64) string { return p.shards + "/" + shardNode(number) }

func (p paths) records(shard uint64) string { return p.shard(shard) + "/record" }

func (p paths) parts(shard uint64) string { return p.shard(shard) + "/part" }

func (p paths) record(shard uint64, sequence int) string {
	return p.records(shard) + "/" + recordNode(sequence)
}

// recordPrefix begins the names of records; the ensemble appends ten digits.
const recordPrefix = "r"

func recordNode(sequence int) string { return fmt.Sprintf("%s%010d", recordPrefix, sequence) }

// sequenceOf returns the number that the ensemble has given to a record.
func sequenceOf(path string) (int, error) {
	name := path[strings.LastIndexByte(path, '/')+1:]
	sequence, err := strconv.Atoi(strings.TrimPrefix(name, recordPrefix))
	if err != nil {
		return 0, fmt.Errorf("node %s is not a record: %w", path, errDamaged)
	}
	return sequence, nil
}

func (p paths) writer(name string) string { return p.writers + "/" + escaped(name) }

// appended names the node that tells of a record that it was appended.
func (p paths) appended(writer string, seq uint64) string {
	return fmt.Sprintf("%s/%016x", p.writer(writer), seq)
}

// chunks names the node of a snapshot. Names are in the order of the indexes.
func (p paths) chunks(s journal.Snapshot) string {
	return fmt.Sprintf("%s/%016x-%x", p.snapshot, uint64(s.Index), s.Sum)
}

func (p paths) chunk(s journal.Snapshot, number uint32) string {
	return fmt.Sprintf("%s/%08x", p.chunks(s), number)
}

func (p paths) pulse(id string) string { return p.pulses + "/" + escaped(id) }

func (p paths) owner(session int64) string {
	return fmt.Sprintf("%s/%016x", p.owners, uint64(session))
}

// escaped makes a node's name of any name: ZooKeeper takes no control characters and neither "." nor "..".
func escaped(name string) string {
	return strings.ReplaceAll(url.QueryEscape(name), ".", "%2E")
}

func unescaped(node string) (string, error) {
	name, err := url.QueryUnescape(node)
	if err != nil {
		return "", fmt.Errorf("node %q has not the name of a pulse: %w", node, errDamaged)
	}
	return name, nil
}
