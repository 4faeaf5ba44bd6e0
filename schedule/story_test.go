package schedule

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/terms"
	"starling/terms/constraint"
)

// TestStories plays the stories below testdata.
//
//	nodes a b cpu=4000 memory=8 gpu=2/A100 ports=8000-8003 zone=x these offer that much (memory in GiB) or something else
//	job web 3 cpu=1000 memory=1 gpu=1000/A100 port=0,8080 spread  a job comes, with ports to choose or by number
//	job web 3 in=zone/a/b not=zone/c has=zone min=cores/8        with constraints
//	job web 3 label=app/web with=app/db apart=app/web/rack       with a label, beside some and away from others with one
//	job web 3 soft=zone/a/500 machine=1 over=rack                with a soft constraint, a bound per machine, spread over
//	job web 3 less=app/web/rack                                  fewer than three with a label there before it
//	job web 3 gang=3 within=rack                                 three together, all in one rack
//	later 500                                                    so many milliseconds pass
//	end web 0 2                                                  these instances of the job end, for good
//	gone a                                                       a offers nothing any more
//
// After each line that waits is placed, and every node is shown with what it runs and what it has left.
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		w := &story{s: cluster.NewState()}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			out := &strings.Builder{}
			line := d.Cmd
			for _, argument := range d.CmdArgs {
				line += " " + strings.TrimSuffix(argument.Key+"="+strings.Join(argument.Vals, ","), "=")
			}
			for line := range strings.Lines(line + "\n" + d.Input) {
				if words := strings.Fields(line); len(words) > 0 {
					w.tell(t, words)
					w.s.Index++
					Run(w.s, nil, func(r facts.SlotRef) {
						slot, _ := w.s.SlotAt(r)
						fmt.Fprintf(out, "%s[%d] to %s\n", w.s.Job(r.Job).Name(), r.Index, w.s.Node(slot.Node).Name)
					}, nil)
				}
			}
			for _, line := range w.s.Audit() {
				t.Errorf("%s: %s", d.Pos, line)
			}
			w.show(out)
			return out.String()
		})
	})
}

type story struct{ s *cluster.State }

func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

func (w *story) tell(t *testing.T, words []string) {
	var plain []string
	set := map[string]string{}
	for _, word := range words[1:] {
		if key, value, found := strings.Cut(word, "="); found {
			set[key] = value
		} else {
			plain = append(plain, word)
		}
	}
	switch words[0] {
	case "nodes":
		for _, name := range plain {
			w.s.SetOffer(w.s.EnsureNode(terms.NodeName(name)).Index, offer(set))
		}
	case "gone":
		w.s.SetOffer(w.s.NodeOf(terms.NodeName(plain[0])).Index, nil)
	case "job":
		w.s.AddJob(job(plain, set))
	case "later":
		w.s.Time += terms.Time(number(plain[0]))
	case "end":
		id := w.s.JobOf(terms.JobName(plain[0])).ID
		for _, index := range plain[1:] {
			r := facts.SlotRef{Job: id, Index: uint32(number(index))}
			slot, _ := w.s.SlotAt(r)
			slot.Phase = facts.Succeeded
			w.s.SetSlot(r, slot)
		}
	default:
		t.Fatalf("no rule for %q", words)
	}
}

func offer(set map[string]string) *terms.Offer {
	o := &terms.Offer{Capacity: terms.Resources{number(set["cpu"]), number(set["memory"]) << 30, 0}}
	if first, last, ok := strings.Cut(set["ports"], "-"); ok {
		o.PortFirst, o.PortLast = uint16(number(first)), uint16(number(last))
	}
	for _, kind := range []string{"fpga", "gpu"} {
		if set[kind] != "" {
			count, model, _ := strings.Cut(set[kind], "/")
			o.Devices = append(o.Devices, terms.DeviceOffer{Kind: kind, Model: model, Count: uint32(number(count))})
		}
	}
	for _, name := range []string{"cores", "exclusive", "node", "rack", "zone"} {
		if set[name] != "" {
			o.Attributes = append(o.Attributes, terms.EnvVar{Name: name, Value: set[name]})
		}
	}
	return o
}

func job(plain []string, set map[string]string) *terms.Job {
	t := terms.Task{
		Name: "main", Instances: uint32(number(plain[1])), Command: []string{"run"}, Placement: terms.Pack,
		Resources: terms.Resources{number(set["cpu"]), number(set["memory"]) << 30, 0},
	}
	switch plain[len(plain)-1] {
	case "spread":
		t.Placement = terms.Spread
	case "defragment":
		t.Placement = terms.Defragment
	}
	for _, port := range strings.Split(set["port"], ",") {
		if port != "" {
			t.Ports = append(t.Ports, terms.PortRequest{Name: "p" + port, Number: uint16(number(port))})
		}
	}
	for _, kind := range []string{"fpga", "gpu"} {
		if set[kind] != "" {
			parts := strings.Split(set[kind], "/")
			t.Devices = append(t.Devices, terms.DeviceRequest{Kind: kind, Amount: terms.Millidevices(number(parts[0])),
				Models: parts[1:]})
		}
	}
	for word, operator := range map[string]constraint.Operator{"in": constraint.In, "not": constraint.NotIn,
		"has": constraint.Exists, "min": constraint.GreaterOrEqual} {
		if values := strings.Split(set[word], "/"); values[0] != "" {
			t.Constraints = append(t.Constraints,
				constraint.Constraint{Attribute: values[0], Operator: operator, Values: values[1:]})
		}
	}
	setRules(&t, set)
	return &terms.Job{
		Name: terms.JobName(plain[0]), Type: terms.Batch, MinAvailable: uint32(number(set["gang"])), Within: set["within"],
		Tasks: []terms.Task{t},
	}
}

// setRules sets what concerns other instances, and how long.
func setRules(t *terms.Task, set map[string]string) {
	if name, value, ok := strings.Cut(set["label"], "/"); ok {
		t.Labels = []terms.EnvVar{{Name: name, Value: value}}
	}
	for word, operator := range map[string]constraint.Operator{"with": constraint.Greater, "apart": constraint.Equal,
		"less": constraint.Less} {
		if parts := append(strings.Split(set[word], "/"), ""); parts[0] != "" {
			one := constraint.Constraint{Label: parts[0], Values: parts[1:2], Operator: operator, Within: parts[2]}
			if operator == constraint.Less {
				one.Count = 3
			}
			t.Constraints = append(t.Constraints, one)
		}
	}
	if parts := strings.Split(set["soft"], "/"); parts[0] != "" {
		t.Constraints = append(t.Constraints,
			constraint.Constraint{Attribute: parts[0], Values: parts[1:2], Operator: constraint.Equal,
				Soft: true, SoftTimeoutMillis: uint32(number(parts[2]))})
	}
	t.PerNodeMax, t.SpreadOver = uint32(number(set["machine"])), set["over"]
}

// show writes out every node with what it runs, and what waits.
func (w *story) show(out *strings.Builder) {
	for n := range facts.NodeIndex(w.s.Nodes()) {
		node, free := w.s.Node(n), w.s.Free(n)
		fmt.Fprintf(out, "%s:", node.Name)
		w.s.EachJob(func(j *workload.Job) bool {
			for i := range j.Tasks[0].Slots.Len() {
				if slot := j.Tasks[0].Slots.At(i); slot.Phase.Holds() && slot.Node == n {
					fmt.Fprintf(out, " %s[%d]%s", j.Name(), i, given(node, facts.SlotRef{Job: j.ID, Index: uint32(i)}))
				}
			}
			return true
		})
		fmt.Fprintf(out, "; free %d millicores, %d GiB\n", free[terms.CPU], free[terms.Memory]>>30)
	}
	w.s.EachJob(func(j *workload.Job) bool {
		if waits := j.Tasks[0].Waits(); waits > 0 {
			fmt.Fprintf(out, "%d of %s wait\n", waits, j.Name())
		}
		return true
	})
}

// given lists the ports and devices of a slot.
func given(node *cluster.Node, r facts.SlotRef) string {
	var all []string
	for _, use := range node.Ports {
		if use.Slot == r {
			all = append(all, strconv.Itoa(int(use.Number)))
		}
	}
	for _, use := range node.Devices {
		if use.Slot == r {
			name := fmt.Sprint(use.Kind, use.Number)
			if use.Amount < terms.WholeDevice {
				name += fmt.Sprint("/", use.Amount)
			}
			all = append(all, name)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return "(" + strings.Join(all, " ") + ")"
}
