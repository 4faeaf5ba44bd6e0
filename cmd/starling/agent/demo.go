package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"starling/api/words"
	"starling/cmd/starling/host"
	"starling/examples"
	"starling/jobspec"
)

// What a demo shows.
const (
	demoPeers = 20
	// demoRackSize is how many machines are in a rack.
	demoRackSize = 5
	// demoWaits is a job for which there is no room.
	demoWaits = "research/language/finetune"
	// demoFirst is when the first machine dies, demoPause how long after the return of one the next does, and demoAway how
	// long a machine is dead: more than its pulse lives on, or nobody would notice.
	demoFirst, demoPause, demoAway = 15 * time.Second, 45 * time.Second, 20 * time.Second
	// demoFillMax is how long it may take until the work of the teams is submitted.
	demoFillMax = 20 * time.Second
)

// demoRack is the rack of a machine.
func demoRack(i int) string { return fmt.Sprintf("r%d", i/demoRackSize+1) }

// checkDemo puts the number of peers, unless one was asked for.
func (d *dev) checkDemo(command *cobra.Command) error {
	if d.data != "" {
		return errors.New("--demo keeps nothing: leave out --data")
	}
	if !command.Flags().Changed("peers") {
		d.peers = demoPeers
	}
	return nil
}

// fill submits the pools and the jobs of the demo, as users do.
func (d *dev) fill(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, demoFillMax)
	defer cancel()
	peer := d.peersHere()
	defer peer.Close()
	pools, files := examples.Demo()
	tree, err := jobspec.ParsePools(pools.Name, pools.Data)
	if err != nil {
		return err
	}
	if _, err := peer.ChangePools(ctx, 0, tree, nil); err != nil {
		return err
	}
	for _, file := range files {
		documents, err := jobspec.Parse(file.Name, file.Data)
		if err != nil {
			return err
		}
		for i := range documents {
			if _, err := peer.SubmitJob(ctx, &documents[i].Spec, 0); err != nil {
				return fmt.Errorf("%s:%d: %w", file.Name, documents[i].Line, err)
			}
		}
	}
	return nil
}

// deaths lets one machine after another die and come back: its peer stops without a word, and its tasks are killed.
type deaths struct {
	*dev
	// watch begins to watch a peer; leave ends that, for each peer.
	watch func(*host.Host) context.CancelFunc
	leave []context.CancelFunc
	// dead is the place of the machine that is dead, 0 for none: the first one does not die, for it is asked.
	dead int
}

// first tells when the first machine dies, which is never if this is no demo.
func (s *deaths) first() <-chan time.Time {
	if !s.demo || len(s.hosts) < 2 {
		return nil
	}
	return time.After(demoFirst)
}

// goOn lets a machine die or come back, and tells when to go on.
func (s *deaths) goOn(ctx context.Context) (<-chan time.Time, error) {
	if s.dead == 0 {
		return time.After(demoAway), s.die(ctx)
	}
	return time.After(demoPause), s.comeBack(ctx)
}

// die kills the machine that runs the most.
func (s *deaths) die(ctx context.Context) error {
	most := 0
	for i, h := range s.hosts[1:] {
		if n := h.Running(); s.dead == 0 || n > most {
			s.dead, most = i+1, n
		}
	}
	victim := s.hosts[s.dead]
	s.leave[s.dead]()
	s.hosts = slices.Delete(s.hosts, s.dead, s.dead+1)
	fmt.Fprintf(s.Out, "%s dies, and %s with it\n", victim.Node(), words.Counted(most, "task"))
	return victim.StopWithTasks(ctx, 0)
}

// comeBack starts the machine again.
func (s *deaths) comeBack(ctx context.Context) error {
	h, err := s.startHost(ctx, s.dead)
	if err != nil {
		return err
	}
	s.hosts = slices.Insert(s.hosts, s.dead, h)
	s.leave[s.dead] = s.watch(h)
	s.dead = 0
	fmt.Fprintf(s.Out, "%s is back\n", h.Node())
	return nil
}
