package kill

import (
	"context"
	"crypto/tls"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"starling/api/client"
	"starling/api/door"
	starlingv1 "starling/api/v1"
	"starling/e2e/agents"
	"starling/terms"
	"starling/trust"
)

// rotations is how often the authority is replaced under load.
const rotations = 10

// TestAuthorityIsReplaced replaces the cluster's authority again and again while jobs are submitted and listed at all
// machines, and once more while one is away. No request fails and no task is restarted, what the first authority has
// signed is refused, and the machine comes back although the only authority that it knows has ended.
func TestAuthorityIsReplaced(t *testing.T) {
	t.Parallel()
	tr := prepare(t, 3*time.Second, []string{"a", "b", "c"})
	tr.must(tr.Start(tr.soon()))
	tr.must(tr.AwaitQuorum(tr.soon(), tr.Agents...))
	first, away := tr.Agents[0], tr.Agents[2]
	old, err := trust.Load(filepath.Join(away.Folder(), trust.Folder))
	tr.must(err)
	tr.submit(tr.job("web", terms.Stateless, serverRole, 4))
	before := allocations(tr.awaitRunning(first, "web"))
	user, err := tr.asked(first).AddUser(tr.soon(), door.UserRequest{Name: "alice", Role: "operator", LifeSeconds: 3600})
	tr.must(err)
	asked := *tr.job("more", terms.Stateless, serverRole, 1)
	asked.Tasks[0].User = ""                   // alice may name none
	asked.Tasks[0].Resources[terms.CPU] = 4000 // it waits: what runs is not the question

	loaded, stop := context.WithCancel(tr.Context())
	failed := make(chan error, 1)
	go func() {
		var err error
		for n := 0; err == nil && loaded.Err() == nil; n++ {
			err = tr.ask(n, asked, user)
		}
		failed <- err
	}()
	for range rotations {
		tr.must(tr.rotate(first, tr.Agents))
	}
	stop()
	if err := <-failed; err != nil {
		t.Errorf("a request failed while the authority was replaced: %v", err)
	}
	if after := allocations(tr.awaitRunning(first, "web")); !slices.Equal(before, after) {
		t.Errorf("tasks were restarted: %v became %v", before, after)
	}
	dialed, err := tls.Dial("tcp", first.Address, trust.ClientTLS(old.Shows))
	if err == nil { // a server's refusal comes with what is read first
		_, err = dialed.Read(make([]byte, 1))
		dialed.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a certificate of the first authority got %v", err)
	}

	tr.must(away.Terminate(tr.soon()))
	for range 2 {
		tr.must(tr.rotate(first, tr.Agents[:2]))
	}
	tr.must(away.Start())
	tr.must(away.Ready(tr.soon()))
	tr.must(tr.AwaitQuorum(tr.soon(), tr.Agents...))
}

func allocations(slots []*starlingv1.Slot) (all []uint64) {
	for _, s := range slots {
		all = append(all, s.GetOrder())
	}
	return all
}

// ask asks one of the machines for all jobs, as a user over TLS, and brings it another.
func (tr *trial) ask(n int, one terms.Job, user *trust.Credentials) error {
	api := client.New([]string{tr.Agents[n%len(tr.Agents)].Address}, user)
	defer api.Close()
	if _, err := api.AllJobs(tr.Context(), ""); err != nil {
		return fmt.Errorf("list jobs: %w", err)
	}
	one.Name = terms.JobName(fmt.Sprint("more-", n))
	if _, err := api.SubmitJob(tr.Context(), &one, 0); err != nil {
		return fmt.Errorf("submit a job: %w", err)
	}
	return nil
}

// rotate replaces the authority, and ends the old ones when these machines have certificates of the new one.
func (tr *trial) rotate(at *agents.Agent, machines []*agents.Agent) error {
	api := tr.Client(at)
	defer api.Close()
	id, err := api.Rotate(tr.Context())
	if err != nil {
		return err
	}
	for ctx := tr.soon(); ; {
		answer, err := api.Authorities(ctx)
		if err != nil {
			return err
		}
		list := answer.Authorities
		if newest := list[len(list)-1]; len(newest.Machines) == len(machines) {
			for _, one := range list[:len(list)-1] {
				if one.State == "counts" {
					err = api.RemoveAuthority(ctx, one.ID)
				}
				if err != nil {
					return err
				}
			}
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not all machines have a certificate of authority %s: %+v", id, answer)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
