package replica

import (
	"slices"
	"strings"
	"testing"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/command"
	"starling/replica/reaction"
	"starling/replica/storage"
	"starling/terms"
	"starling/terms/access"
	"starling/terms/rules"
)

func TestVolumesAreKeptAsLongAsTheirSlotMayComeBack(t *testing.T) {
	s := cluster.NewState()
	here, there := s.EnsureNode("here"), s.EnsureNode("there")
	s.SetPeer(here.Index, "here~1")
	s.SetPeer(there.Index, "there~1")
	spec := &terms.Job{Name: "db", Type: terms.Stateful, Tasks: []terms.Task{{Name: "main", Instances: 3}}}
	id := s.AddJob(spec).ID
	for i, n := range []facts.NodeIndex{here.Index, there.Index} {
		s.AssignSpecial(facts.SlotRef{Job: id, Index: uint32(i)}, n, nil)
	}
	set := func(index uint32, job terms.JobID) terms.VolumeSet {
		return terms.VolumeSet{Slot: terms.SlotName{Job: "db", Task: "main", Index: index}, Job: job}
	}
	all := []terms.VolumeSet{set(0, id), set(1, id), set(2, id), set(7, id), set(0, id+1)}
	observed := &reaction.Observed{Volumes: all}
	if got, want := reaction.React("here~1", s, observed).DeleteVolumes,
		[]terms.VolumeSet{set(1, id), set(0, id+1)}; !slices.Equal(got, want) {
		t.Errorf("got %v deleted, want %v", got, want)
	}
	observed.Local = []reaction.LocalTask{{ID: terms.AllocationID{Slot: all[1].Slot, Order: 1}, Ended: facts.ByItself}}
	if got, want := reaction.React("here~1", s, observed).DeleteVolumes,
		[]terms.VolumeSet{set(0, id+1)}; !slices.Equal(got, want) {
		t.Errorf("got %v deleted while a task of the slot is there, want %v", got, want)
	}
	if got := reaction.React("here~2", s, &reaction.Observed{Volumes: all}).DeleteVolumes; got != nil {
		t.Errorf("got %v deleted by a peer that is no member, want none", got)
	}
}

// TestNewMachineHasNoVolumes refuses the name of a node to another machine as long as volumes are looked for there.
func TestNewMachineHasNoVolumes(t *testing.T) {
	s := clusterOf(2)
	s.Rules = rules.Released
	job := benchJob("db", 1, terms.Pack, 1)
	job.Spec.Type, job.Spec.Tasks[0].Volumes = terms.Stateful, []terms.Volume{{Name: "data"}}
	job.Spec.Tasks[0].Disconnect.StopAfterMillis = 1000
	outcome := Apply(s, 1, &command.Entry{Rules: s.Rules, Writer: "m00000~1", Seq: 2,
		Commands: []command.Command{job}}, false)
	if refusal := outcome.Results[0].Refusal; refusal.Code != facts.OK {
		t.Fatal(refusal)
	}
	here, there := s.Node(s.JobOf("db").Tasks[0].Slots.At(0).Node).Name, terms.NodeName("m00001")
	if here == there {
		there = "m00000"
	}
	for node, want := range map[terms.NodeName]string{here: "node " + string(here) + " had the volumes of db.main[0], 1 in all: ",
		there: "", "new": ""} {
		got := storage.Lost(s, node, access.Key{1}).Refusal.Reason
		if !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("another machine is not to be node %s because %q, want %q", node, got, want)
		}
	}
}
