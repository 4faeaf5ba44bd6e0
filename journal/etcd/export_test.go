package etcd

import "time"

// ErrDamaged is what Follow returns when no reading again would help.
var ErrDamaged = errDamaged

// ClientURL is where clients reach the member, with the port that it listens on.
func (m *Member) ClientURL() string {
	u := m.server.Config().AdvertiseClientUrls[0]
	u.Host = m.gate.clients.Addr().String()
	return u.String()
}

// JournalAt is Journal below a prefix, so that many tests can use one member.
func (m *Member) JournalAt(prefix string) *Journal {
	return newJournal(newEngine(m.way()), newKeyspace(prefix), false)
}

// CheckEvery sets how often a reader that begins later looks whether its watch has gone silent.
func (j *Journal) CheckEvery(d time.Duration) {
	j.checkEvery = d
}
