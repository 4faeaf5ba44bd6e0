package plugin

import (
	"testing"

	"starling/terms"
	"starling/terms/rules"
)

// BenchmarkUpdate renews the files of one of 10,000 members.
func BenchmarkUpdate(b *testing.B) {
	r := &Roster{Job: "train", Version: 7, Tasks: []Task{{Name: "worker"}}}
	for i := range uint32(10000) {
		r.Tasks[0].Members = append(r.Tasks[0].Members,
			Member{Index: i, Name: "1234.worker.train.ml.starling", Address: "10.0.0.1",
				Ports: []Port{{"http", 31000}}})
	}
	set, err := NewSet([]terms.PluginRequest{{Name: "svc"}}, rules.First)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := set.OnJobUpdate(r, &Self{Task: "worker"}); err != nil {
			b.Fatal(err)
		}
	}
}
