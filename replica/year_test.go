package replica

import (
	"fmt"
	"testing"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/snapshot"
	"starling/command"
	"starling/terms"
)

// A cluster that runs ten jobs a second is as large after a year as after a day: of ten minutes in each month, what was
// before leaves nothing.
func TestAYearIsAsLargeAsADay(t *testing.T) {
	const jobs, perSecond = 6000, 10
	s, seq, now, number := clusterOf(10), uint64(1), terms.Time(0), 100_000_000
	fold := func(c ...command.Command) {
		seq++
		Apply(s, s.Index+1, &command.Entry{Writer: "m00000~1", Seq: seq, Time: now, Commands: c}, false)
	}
	report := func(id terms.JobID, ended facts.Ending) {
		r := facts.SlotRef{Job: id}
		slot, _ := s.SlotAt(r)
		if slot.Phase != facts.Assigned && slot.Phase != facts.Running {
			t.Fatalf("job %d is %v", id, slot.Phase)
		}
		node := s.Node(slot.Node)
		seq++
		news := []command.Report{{Slot: r, Order: slot.Order, Ended: ended}}
		Apply(s, s.Index+1, &command.Entry{Writer: node.Peer, Seq: seq, Time: now,
			Commands: []command.Command{&command.ReportTasks{Peer: node.Peer, Reports: news}}}, false)
	}
	sizes := [13]int{}
	for month := range sizes {
		now = 1_700_000_000_000 + terms.Time(month)*30*24*3600*1000
		for range jobs {
			now += 1000 / perSecond
			number++
			name := fmt.Sprintf("job-%09d", number)
			one := benchJob(name, 1, terms.Pack, 100)
			one.RequestID = fmt.Sprintf("request-%09d", number)
			fold(one)
			id := s.JobOf(terms.JobName(name)).ID
			report(id, facts.NotEnded)
			report(id, facts.ByItself)
		}
		sizes[month] = len(snapshot.Encode(s.Facts()))
	}
	t.Logf("after each month %d bytes", sizes)
	if first, last := sizes[0], sizes[12]; last > first+first/50 {
		t.Errorf("the value has %d bytes after ten minutes, and %d after a year", first, last)
	}
	if _, err := snapshot.Decode(snapshot.Encode(s.Facts()), s.Rules); err != nil {
		t.Error(err)
	}
	if cluster.Rebuild(s.Facts()).Digest() != s.Digest() {
		t.Error("what is made of its facts differs")
	}
}
