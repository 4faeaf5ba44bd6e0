package etcd_test

import (
	"syscall"
	"testing"
	"time"

	"starling/journal/etcd"
)

// TestLeaderPaused stops the process of the leader for longer than pulses live. When it goes on it still believes that
// it leads, and that nobody has renewed a lease since: it revokes all that it knows. Only its own pulse may end.
func TestLeaderPaused(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes and waits for elections and pulses")
	}
	t.Parallel()
	members := cluster(t, "a", "b", "c")
	var processes []*process
	for _, m := range members {
		processes = append(processes, launch(t, role{Member: m, Pulse: m.Name}))
	}
	for _, p := range processes {
		p.ready()
	}
	j := opened(t, etcd.ClientConfig{Endpoints: endpoints(members)})
	ended := make(chan string, len(members))
	for _, m := range members {
		dead := died(t, j, m.Name)
		go func() {
			select {
			case <-dead:
				ended <- m.Name
			case <-t.Context().Done():
			}
		}()
	}
	paused := leader(t, members)
	must(t, processes[paused].command.Process.Signal(syscall.SIGSTOP))
	select {
	case got := <-ended:
		if got != members[paused].Name {
			t.Errorf("while the leader %s was paused the pulse of %s ended", members[paused].Name, got)
		}
	case <-time.After(patience):
		t.Fatalf("the pulse of %s, which is paused, does not end", members[paused].Name)
	}
	must(t, processes[paused].command.Process.Signal(syscall.SIGCONT))
	select {
	case got := <-ended:
		t.Errorf("when the leader %s went on the pulse of %s ended", members[paused].Name, got)
	case <-time.After(2 * time.Second): // twice of what the engine takes to revoke
	}
	alive, err := j.Pulses(limited(t))
	must(t, err)
	if len(alive) != len(members)-1 {
		t.Errorf("%v live, want all but %s", alive, members[paused].Name)
	}
}
