package etcd_test

import (
	"testing"
	"time"

	"starling/journal"
	"starling/journal/etcd"
	"starling/journal/journaltest"
)

// TestHistory checks the answers of writers and readers at once while one leader after another is killed.
func TestHistory(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes and waits for elections")
	}
	t.Parallel()
	members := cluster(t, "a", "b", "c")
	processes := make([]*process, len(members))
	launchAll := func() {
		for i, m := range members {
			if processes[i] == nil || processes[i].command.ProcessState != nil {
				processes[i] = launch(t, role{Member: m})
			}
		}
		for _, p := range processes {
			p.ready()
		}
	}
	launchAll()
	h := journaltest.Harness{PulseTTL: pulseTTL, PulseSlack: time.Second, Open: func(t testing.TB) journal.Journal {
		return open(t, etcd.ClientConfig{Endpoints: endpoints(members)})
	}}
	journaltest.History(t, h, func() {
		for range 3 {
			processes[leader(t, members)].kill()
			launchAll()
		}
	})
}
