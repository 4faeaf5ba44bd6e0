package domain

import (
	"math/rand/v2"
	"strings"
	"testing"

	"starling/terms"
)

func TestParse(t *testing.T) {
	cases := []struct {
		full string
		want Name
		back string // "" is full
	}{
		{"3.worker.train.ml.starling", Name{"ml/train", "worker", true, 3}, ""},
		{"3.worker.train.b.a.starling", Name{"a/b/train", "worker", true, 3}, ""},
		{"3.worker.train.starling", Name{"train", "worker", true, 3}, ""},
		{"3.worker.train.default.starling", Name{"train", "worker", true, 3}, "3.worker.train.starling"},
		{"worker.train.ml.starling", Name{Job: "ml/train", Task: "worker"}, ""},
		{"worker.train.starling", Name{Job: "train", Task: "worker"}, ""},
		{"Worker.TRAIN.Starling.", Name{Job: "train", Task: "worker"}, "worker.train.starling"},
		{"4294967295.w.j.starling", Name{"j", "w", true, 1<<32 - 1}, ""},
		{"0.3.j.starling", Name{"j", "3", true, 0}, ""},
		{"03.j.starling", Name{Job: "j", Task: "03"}, ""},
		{"4294967296.j.starling", Name{Job: "j", Task: "4294967296"}, ""},
		{"my_task.my-job.starling", Name{Job: "my-job", Task: "my_task"}, ""},
	}
	for _, c := range cases {
		name, within := DefaultZone.Within(c.full)
		got, ok := Parse(name)
		if !within || !ok || got != c.want {
			t.Errorf("Parse(%q) = %+v, %v, want %+v", c.full, got, ok, c.want)
		}
		if c.back == "" {
			c.back = c.full
		}
		if back := DefaultZone.Name(got); back != c.back {
			t.Errorf("the name of %+v is %q, want %q", got, back, c.back)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, full := range []string{
		"starling", "worker.starling", "3.worker.starling", "3.starling", ".worker.train.starling", "worker..train.starling",
		"-1.worker.train.starling", "+1.worker.train.starling", "_http._tcp.worker.train.starling", "wor ker.train.starling",
		"worker.train.root.starling", "w.j.8.7.6.5.4.3.2.1.0.starling", "worker.a/b.starling", "wörker.train.starling",
		"worker.default.starling.starling..", "w." + strings.Repeat("j", 64) + ".starling",
	} {
		name, _ := DefaultZone.Within(full)
		if got, ok := Parse(name); ok {
			t.Errorf("Parse(%q) = %+v, want that nothing can have this name", full, got)
		}
	}
}

func TestWithin(t *testing.T) {
	cases := []struct {
		zone       Zone
		full, want string
		ok         bool
	}{
		{"starling", "a.starling", "a", true},
		{"starling", "STARLING.", "", true},
		{"starling", "a.b.cluster.starling", "a.b.cluster", true},
		{"sky.example.org", "w.j.Sky.Example.org", "w.j", true},
		{"starling", "astarling", "", false},
		{"starling", "example.org", "", false},
		{"starling", ".", "", false},
		{"starling", "", "", false},
	}
	for _, c := range cases {
		if got, ok := c.zone.Within(c.full); ok != c.ok || ok && got != c.want {
			t.Errorf("%s.Within(%q) = %q, %v, want %q, %v", c.zone, c.full, got, ok, c.want, c.ok)
		}
	}
}

func TestPath(t *testing.T) {
	cases := []struct {
		name string
		want terms.JobName
		ok   bool
	}{
		{"ml", "ml", true},
		{"train.ml", "ml/train", true},
		{"b.a", "a/b", true},
		{"default", "default", true},
		{"train.default", "train", true},
		{"", "", false},
		{"_tcp", "", false},
		{"a/b", "", false},
	}
	for _, c := range cases {
		if got, ok := Path(c.name); ok != c.ok || ok && got != c.want {
			t.Errorf("Path(%q) = %q, %v, want %q, %v", c.name, got, ok, c.want, c.ok)
		}
	}
}

func TestZoneProblem(t *testing.T) {
	for _, z := range []Zone{"starling", "sky.example.org", "a-1", "1"} {
		if reason := z.Problem(); reason != "" {
			t.Errorf("zone %q %s, want no problem", z, reason)
		}
	}
	for _, z := range []Zone{"", ".", "a.", ".a", "a..b", "Sky", "a_b", "a-", "-a", Zone(strings.Repeat("a.", 25) + "a")} {
		if z.Problem() == "" {
			t.Errorf("zone %q has no problem, want one", z)
		}
	}
}

// TestEveryInstanceHasAName draws instances whose names are in lower case: each is found by its name, which DNS can
// hold.
func TestEveryInstanceHasAName(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	text := func(most int) string {
		name := []byte{"abc019"[rng.IntN(6)]}
		for range rng.IntN(most) {
			name = append(name, "abc019-_"[rng.IntN(8)])
		}
		return string(name)
	}
	zone := Zone(strings.Repeat("z", ZoneBytesMax))
	for range 5000 {
		job := terms.NewJobName([]terms.PoolPath{"default", "ml", "a/b/c", "default/x"}[rng.IntN(4)], text(62))
		want := Name{Job: job, Task: terms.TaskName(text(62)), One: true, Index: rng.Uint32()}
		full := zone.Name(want)
		name, within := zone.Within(full)
		if got, ok := Parse(name); !within || !ok || got != want || len(full) > 253 {
			t.Fatalf("%+v has the name %q, which means %+v, %v", want, full, got, ok)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"3.worker.train.ml.starling", "worker.train.default.starling.", "0.0.0", "STARLING",
		"a/b.c.starling"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, full string) {
		name, within := DefaultZone.Within(full)
		n, ok := Parse(name)
		if !within || !ok {
			return
		}
		if n.Job.Problem() != "" || terms.NameProblem(string(n.Task), false) != "" {
			t.Fatalf("Parse(%q) = %+v, which no instance is called", full, n)
		}
		again, _ := DefaultZone.Within(DefaultZone.Name(n))
		if back, ok := Parse(again); !ok || back != n {
			t.Fatalf("Parse(%q) = %+v, whose name means %+v", full, n, back)
		}
	})
}
