package kill

import (
	"fmt"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	starlingv1 "starling/api/v1"
	"starling/command"
	"starling/terms"
)

// garbage returns records that no peer wrote, by what is wrong with them.
func garbage() map[string][]byte {
	kill := command.Entry{Writer: "mallory~1", Seq: 1, Time: 1, Commands: []command.Command{&command.KillJob{Job: "web"}}}
	whole := command.Encode(&kill)
	flipped := append([]byte(nil), whole...)
	flipped[3] ^= 1
	unknownNumber, unreadable := kill, kill
	unknownNumber.Writer, unreadable.Writer = "a", "\xff~1"
	return map[string][]byte{
		"empty": nil, "text": []byte("this is no entry"), "large": make([]byte, 1<<20), "cut": whole[:len(whole)/2],
		"flipped": flipped, "of a stranger": whole, "of no life": command.Encode(&unknownNumber),
		"of a name that is no text": command.Encode(&unreadable),
	}
}

// TestGarbageInTheJournal writes records past all peers, with a client of the engine.
func TestGarbageInTheJournal(t *testing.T) {
	t.Parallel()
	tr := begin(t, 15*time.Second) // longer than an agent takes to come back, on a busy machine as well
	tr.submit(tr.job("web", terms.Stateless, serverRole, 3))
	before := tr.awaitRunning(tr.Agents[0], "web")
	tasks := tr.wantTasks(before)
	engine, err := tr.Agents[0].Engine()
	tr.must(err)
	defer engine.Close()
	first := tr.status(tr.Agents[0], "web").GetIndex() + 1
	records := garbage()
	number := 0
	for _, payload := range records {
		number++
		key := fmt.Sprintf("journal/record/mallory/%016x", number)
		_, err := engine.Txn(tr.soon()).Then(clientv3.OpPut(key, string(payload)),
			clientv3.OpPut("journal/head", "")).Commit()
		tr.must(err)
	}
	for _, key := range []string{"journal/other", "other", "pulse/mallory~1"} {
		_, err := engine.Put(tr.soon(), key, "\xff")
		tr.must(err)
	}

	tr.submit(tr.job("after", terms.Batch, witnessRole, 3), tr.Agents[1])
	tr.awaitDone(tr.Agents[2], "after")
	// One who reads it all from the beginning comes to the same.
	tr.must(tr.Agents[2].Kill())
	tr.must(tr.Agents[2].Start())
	tr.must(tr.Agents[2].Ready(tr.soon()))
	for _, a := range tr.Agents {
		dropped := 0
		err := tr.asked(a).TailJournal(tr.soon(), &starlingv1.TailJournalRequest{From: first},
			func(answer *starlingv1.TailJournalResponse) error {
				if e := answer.GetEntry(); e.GetDropped() != "" {
					dropped++
					t.Logf("agent %s passed over entry %d: %s", a.Node, e.GetIndex(), e.GetDropped())
				}
				return nil
			})
		tr.must(err)
		if dropped != len(records) {
			t.Errorf("agent %s passed over %d entries, want %d", a.Node, dropped, len(records))
		}
	}
	for id, now := range tr.wantTasks(tr.awaitRunning(tr.Agents[2], "web")) {
		if now != tasks[id] {
			t.Errorf("%s is process %+v, was %+v", id, now, tasks[id])
		}
	}
	tr.wantWhole()
}
