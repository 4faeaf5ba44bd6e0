package etcd

import "go.etcd.io/etcd/server/v3/etcdserver/api/v3client"

// JournalAt is Journal below a prefix, so that many tests can use one member.
func (m *Member) JournalAt(prefix string) *Journal {
	return newJournal(v3client.New(m.server.Server), "embedded etcd member "+m.name, prefix)
}
