package kill

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"starling/cluster"
)

func TestZZ(t *testing.T) {
	tr := begin(t, 3*time.Second)
	tr.submit(tr.job("web", cluster.Stateless, serverRole, 3))
	tr.awaitRunning(tr.Agents[0], "web")
	tr.must(tr.Agents[1].Kill())
	tr.must(tr.Agents[2].Kill())
	began := time.Now()
	for _, args := range [][]string{{"peers"}, {"ps"}, {"run", "--", "echo", "hi"}, {"run", "--detach", "f.yaml"}, {"stop", "web"}} {
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Second)
		c := exec.CommandContext(ctx, os.Getenv(binaryVariable), append(args, "--address", tr.Agents[0].Address)...)
		c.Dir = tr.watched
		os.WriteFile(tr.watched+"/f.yaml", []byte("name: hello\ntype: batch\ntasks:\n  - name: main\n    command: [echo, hi]\n"), 0o644)
		if args[0] == "run" && args[1] == "--" {
			c.Args = []string{c.Args[0], "run", "--address", tr.Agents[0].Address, "--", "echo", "hi"}
		}
		out, err := c.CombinedOutput()
		t.Logf("%v %v: %v\n%s", time.Since(began), args, err, out)
		cancel()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, err := tr.asked(tr.Agents[0]).SubmitJob(ctx, tr.job("w", cluster.Batch, witnessRole, 1))
	t.Logf("%v 10 s: %v %v", time.Since(began), err, codeOf(err))
	for {
		_, err := tr.peers(tr.Agents[0])
		t.Logf("%v peers: %v", time.Since(began), err)
		break
	}
	t.Fail()
}
