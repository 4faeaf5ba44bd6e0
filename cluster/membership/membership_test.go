package membership

import (
	"strings"
	"testing"
)

// TestAuditFindsPlantedFaults plants a fault of each kind into a sound membership.
func TestAuditFindsPlantedFaults(t *testing.T) {
	for _, c := range []struct {
		name, want string
		plant      func(*Membership)
	}{
		{"digest of members", "the digest of the membership", func(m *Membership) { m.digest++ }},
		{"a member more", "is not a single cycle", func(m *Membership) { m.members.Insert("c~1") }},
		{"an open ring", "is not a single cycle", func(m *Membership) { m.watched.Delete("b~1") }},
		{"a ring of one of two", "is not a single cycle", func(m *Membership) { m.watched.Set("a~1", "a~1") }},
		{"watched by two", "is not a single cycle", func(m *Membership) { m.watchers.Delete("a~1") }},
		{"an open member", "is open", func(m *Membership) { m.open.Insert("a~1") }},
		{"an observer without a joiner", "which takes in", func(m *Membership) { m.handshakes.Delete("a~1") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := Membership{}
			m.AddMember("a~1")
			m.AddMember("b~1")
			m.SetWatched("a~1", "b~1")
			m.SetWatched("b~1", "a~1")
			m.SetAttempt("c~1", Attempt{Number: 1, Phase: Prepared, Observer: "a~1"})
			if found := m.Audit(); len(found) > 0 {
				t.Fatalf("the sound membership has faults: %q", found)
			}
			c.plant(&m)
			if found := strings.Join(m.Audit(), "\n"); !strings.Contains(found, c.want) {
				t.Errorf("Audit() finds %q, want %q", found, c.want)
			}
		})
	}
}
