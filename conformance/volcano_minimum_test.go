package conformance

import (
	"cmp"
	"slices"
	"strings"

	"starling/cluster"
	"starling/terms"
	"starling/terms/rules"
	"starling/validate"
)

// The differences from Volcano in what a gang demands. Each holds for every file.
var (
	ordered = &difference{name: "ordered",
		reason: "tasks have no priority: the runner puts them in the order of the job file by it"}
	ofAny = &difference{name: "of any task",
		reason: "what a gang has beyond the minima of its tasks may be instances of any task: no more is " +
			"demanded than the smallest take"}
	noGang = &difference{name: "no gang",
		reason: "a minimum of 0 that demands nothing is stated by a job that states no minima at all; " +
			"beside those of tasks 0 is their sum"}
)

// minimumCase is a job with minima, and what its admission demands.
type minimumCase struct {
	ID, Kind, Title, Source, Basis, Note string
	Given                                struct {
		Job struct {
			Name         string
			MinAvailable uint32 `yaml:"minAvailable"`
			Groups       []minimumGroup
		}
		// NullMeans tells what a minimum is that no task states.
		NullMeans string `yaml:"nullMeans"`
	}
	When struct{ Algorithm string }
	Then minimumAmounts
}

type minimumGroup struct {
	Name         string
	Replicas     uint32
	MinAvailable *uint32 `yaml:"minAvailable"`
	Request      minimumAmounts
	Priority     int
	Partition    any
}

// minimumAmounts are what is asked for and how many ask, each if it is told.
type minimumAmounts struct {
	CPUMilli *int64    `yaml:"cpuMilli"`
	CPU      *quantity `yaml:"cpu"`
	Mem      *quantity `yaml:"mem"`
	GPU      *quantity `yaml:"gpu"`
	Pods     *int64    `yaml:"pods"`
}

// amounts translates to ours, in thousandths of each unit.
func (a *minimumAmounts) amounts() (told terms.Amounts, stated [terms.AmountCount]bool) {
	set := func(k terms.Kind, q *quantity) {
		if q != nil {
			told[k], stated[k] = int64(float64(*q)*1000+0.5), true
		}
	}
	set(terms.CPU, a.CPU)
	set(terms.Memory, a.Mem)
	set(terms.GPU, a.GPU)
	if a.CPUMilli != nil {
		told[terms.CPU], stated[terms.CPU] = *a.CPUMilli, true
	}
	return told, stated
}

// minima runs a file of cases about what the admission of a gang demands.
func minima(f *sheet) {
	f.runScenarios(func(t *trial, s *scenario, differences tally) {
		c := &minimumCase{}
		s.read(t, c)
		if c.Kind != "min-resources" {
			t.Fatalf("no rule for kind %s", c.Kind)
		}
		c.run(t, differences)
	})
}

func (c *minimumCase) run(t *trial, differences tally) {
	spec := c.spec(t, differences)
	if slices.ContainsFunc(validate.Job(spec, rules.Released),
		func(p terms.Problem) bool { return strings.HasSuffix(p.Path, "min_available") }) {
		minimum := uint32(0)
		for i := range spec.Tasks {
			minimum += spec.Tasks[i].MinAvailable
		}
		if spec.MinAvailable >= minimum {
			t.Fatalf("the job is refused: %v", validate.Job(spec, rules.Released))
		}
		t.leaveOut("smaller")
	}
	state := cluster.NewState()
	job := state.AddJob(spec)
	got, pods := job.GangNeed(), int64(0)
	for task := range job.Tasks {
		pods += int64(job.Missing(task))
	}
	pods += int64(job.MissingAny())
	want, stated := c.Then.amounts()
	for k := range want {
		switch {
		case !stated[k] || got[k] == want[k]:
		case job.MissingAny() > 0 && got[k] < want[k]:
			differences.state(t, ofAny)
		default:
			t.Errorf("%s: %d thousandths are demanded, want %d", terms.Kind(k), got[k], want[k])
		}
	}
	if c.Then.Pods != nil && pods != *c.Then.Pods {
		t.Errorf("%d instances are demanded, want %d", pods, *c.Then.Pods)
	}
}

// spec returns the job, with its tasks in the order of their priority.
func (c *minimumCase) spec(t *trial, differences tally) *terms.Job {
	groups := slices.Clone(c.Given.Job.Groups)
	slices.SortStableFunc(groups, func(a, b minimumGroup) int { return cmp.Compare(b.Priority, a.Priority) })
	if slices.ContainsFunc(groups, func(g minimumGroup) bool { return g.Priority != groups[0].Priority }) {
		differences.state(t, ordered)
	}
	spec := &terms.Job{Name: "job", Type: terms.Batch, MinAvailable: c.Given.Job.MinAvailable}
	none := false
	switch c.When.Algorithm {
	case "byGroupMinThenPriority":
	case "podGroup":
		if none = spec.MinAvailable == 0; none {
			differences.state(t, noGang)
		}
	default:
		t.Fatalf("no rule for the algorithm %q", c.When.Algorithm)
	}
	for _, g := range groups {
		if g.Partition != nil {
			t.leaveOut("groups")
		}
		task := terms.Task{Name: terms.TaskName(g.Name), Instances: g.Replicas}
		switch {
		case none:
		case g.MinAvailable != nil:
			task.MinAvailable = *g.MinAvailable
		case c.Given.NullMeans == "" || c.Given.NullMeans == "replicas":
			task.MinAvailable = g.Replicas
		default:
			t.Fatalf("no rule for minima that mean %q", c.Given.NullMeans)
		}
		amounts, _ := g.Request.amounts()
		copy(task.Resources[:], amounts[:])
		if amounts[terms.GPU] > 0 {
			task.Devices = []terms.DeviceRequest{{Kind: terms.GPU.String(), Amount: terms.Millidevices(amounts[terms.GPU])}}
		}
		spec.Tasks = append(spec.Tasks, task)
	}
	return spec
}
