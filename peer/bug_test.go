package peer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"starling/cluster"
	"starling/command"
	"starling/driver"
	"starling/driver/fake"
	"starling/peer/outbox"
	"starling/terms"
	"starling/terms/rules"
)

// TestPanicOfTheFoldEndsThePeer makes the value of one peer wrong, so that it cannot fold the next entry. The peer
// ends, with a report, and nobody is given the value that it was changing.
func TestPanicOfTheFoldEndsThePeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlock(t, "a", "b")
		defer f.stop()
		f.submit("a", job("web", terms.Stateless, 2, "run"))
		f.await("a", "it runs", running("web", 2))
		a, reports := f.peers["a"], t.TempDir()
		done := make(chan *cluster.State, 1)
		a.post(context.Background(), func() {
			a.config.Reports, a.config.Version = reports, "v1.2.3"
			done <- a.core.state.Copy()
			a.core.state.Index--
		})
		before := <-done
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		waits := make(chan error, 1)
		go func() {
			_, err := a.State(ctx, before.Index+2)
			waits <- err
		}()
		receipt, err := f.peers["b"].Submit(ctx, &command.KillJob{Job: "web"})
		if err != nil {
			t.Fatal(err)
		}
		<-a.Done()
		report := filepath.Join(reports, "bug-entry-")
		for _, want := range []string{"cannot be folded (replica: entry ", "tasks go on", "send " + report,
			"start a program with the repair"} {
			if err := a.Err(); !errors.Is(err, ErrBug) || !strings.Contains(err.Error(), want) {
				t.Errorf("the peer has stopped for %v, want in it %q", err, want)
			}
		}
		if err := <-waits; !errors.Is(err, outbox.ErrStopped) {
			t.Errorf("who waited for the value is told %v, want that the peer has stopped", err)
		}
		if _, err := a.State(ctx, 0); !errors.Is(err, outbox.ErrStopped) {
			t.Errorf("who asks for the value is told %v, want that the peer has stopped", err)
		}
		found, err := filepath.Glob(report + "*.txt")
		if err != nil || len(found) != 1 {
			t.Fatalf("reports %v, %v, want one", found, err)
		}
		text, err := os.ReadFile(found[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"program: v1.2.3", fmt.Sprint("rules: ", rules.Released), "peer: a~1 of node a",
			"digest before the entry: ", "replica.Apply(", "record ", "of b~1, number "} {
			if !strings.Contains(string(text), want) {
				t.Errorf("the report lacks %q:\n%s", want, text)
			}
		}
		if receipt.Index <= before.Index {
			t.Errorf("the job was told to stop with entry %d, want one after %d", receipt.Index, before.Index)
		}
		if tasks := fake.Open(f.machines["a"]).Tasks(); len(tasks) != 1 || tasks[0].State != driver.Running {
			t.Errorf("tasks %v, want the one that ran", tasks)
		}
	})
}
