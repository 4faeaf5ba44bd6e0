package blobs

import (
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"

	"github.com/distribution/reference"

	"starling/api/wire"
	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/driver/image"
	"starling/replica/reaction"
	"starling/terms"
)

const (
	// sourcesMax is how many machines are asked for an image, before its registry is.
	sourcesMax = 3
	// consideredMax bounds the instances that these are drawn from.
	consideredMax = 256
)

// wanted is an image with a digest, as the containers of a task want it.
type wanted struct {
	name   string
	suffix string // with which all names of it end
	// secret is the pull secret that it was got with, and its pool; none for an image that anybody may have.
	pool   terms.PoolPath
	secret string
}

// wantedBy returns what a task of a pool wants; false if it has no container, or its image no digest.
func wantedBy(pool terms.PoolPath, task *terms.Task) (w wanted, ok bool) {
	name, err := reference.ParseDockerRef(task.Container.Image)
	if err != nil {
		return w, false
	}
	pinned, ok := name.(reference.Canonical)
	if !ok {
		return w, false
	}
	w = wanted{name: pinned.String(), suffix: "@" + pinned.Digest().String(), secret: task.Container.PullSecret}
	if w.secret != "" {
		w.pool = pool
	}
	return w, true
}

// each visits the allocations, and what is left of such, of the same image with the same pull secret, until visit
// returns false.
func (w *wanted) each(s *cluster.State, visit func(facts.Slot) bool) {
	goOn := true
	s.EachJobByName("", func(j *workload.Job) bool {
		for task := 0; task < len(j.Tasks) && goOn; task++ {
			versions := w.versions(j, task)
			if len(versions) == 0 {
				continue
			}
			s.EachSlot(j.ID, task, func(_ facts.SlotRef, slot facts.Slot) bool {
				if slot.Order != 0 && versions[j.TaskSpecOf(task, slot.Version)] {
					goOn = visit(slot)
				}
				return goOn
			})
		}
		return goOn
	})
}

// versions are those of a task whose containers want the image.
func (w *wanted) versions(j *workload.Job, task int) (all map[*terms.Task]bool) {
	for i := range j.Versions {
		spec := j.TaskSpecOf(task, j.Versions[i].Number)
		if spec == nil {
			continue
		}
		if other, ok := w.like(j, spec); ok && other == *w {
			if all == nil {
				all = map[*terms.Task]bool{}
			}
			all[spec] = true
		}
	}
	return all
}

// isFor tells whether a node gives the image, if it has it: no job of the value wants it with another secret, or an
// instance that wants it with the same is or was on the node.
func (w *wanted) isFor(s *cluster.State, node terms.NodeName) bool {
	shared := true
	s.EachJobByName("", func(j *workload.Job) bool {
		for i := range j.Versions {
			tasks := j.Versions[i].Spec.Tasks
			shared = shared && !slices.ContainsFunc(tasks, func(t terms.Task) bool {
				other, ok := w.like(j, &t)
				return ok && other.name == w.name && other != *w
			})
		}
		return shared
	})
	return shared || w.isOn(s, node)
}

// like returns what a task wants if that may be the same image.
func (w *wanted) like(j *workload.Job, task *terms.Task) (other wanted, ok bool) {
	if !strings.HasSuffix(task.Container.Image, w.suffix) {
		return other, false
	}
	return wantedBy(j.Name().Pool(), task)
}

// isOn tells whether a node has or had an instance of the image.
func (w *wanted) isOn(s *cluster.State, node terms.NodeName) (is bool) {
	w.each(s, func(slot facts.Slot) bool {
		is = s.Node(slot.Node).Name == node
		return !is
	})
	return is
}

// holders are some of the nodes that may have the image: first those where it runs, then those where it ran. An
// instance that has moved is known of its new node alone, so that of others those come first that are drained.
func (w *wanted) holders(s *cluster.State, besides terms.NodeName) (all []*cluster.Node) {
	var runs, ran []facts.NodeIndex
	w.each(s, func(slot facts.Slot) bool {
		switch {
		case slot.Phase == facts.Running:
			runs = append(runs, slot.Node)
		case slot.Phase != facts.Assigned && len(ran) < consideredMax:
			ran = append(ran, slot.Node)
		}
		return len(runs) < consideredMax
	})
	var drained, others []facts.NodeIndex
	for n := range s.Nodes() {
		if node := s.Node(facts.NodeIndex(n)); node.Drain.On {
			drained = append(drained, facts.NodeIndex(n))
		} else {
			others = append(others, facts.NodeIndex(n))
		}
	}
	seen := map[facts.NodeIndex]bool{}
	for _, some := range [][]facts.NodeIndex{runs, ran, drained, others} {
		rand.Shuffle(len(some), func(i, k int) { some[i], some[k] = some[k], some[i] })
		for _, n := range some {
			node := s.Node(n)
			if len(all) < sourcesMax && !seen[n] && node.Name != besides && node.Peer != "" && runsContainers(node.Offer) {
				seen[n], all = true, append(all, node)
			}
		}
	}
	return all
}

func runsContainers(o *terms.Offer) bool {
	yes := terms.EnvVar{Name: terms.ContainersAttribute, Value: terms.ContainersYes}
	return o != nil && slices.Contains(o.Attributes, yes)
}

// Sources returns the machines that an instance of a node may have its image from, by the value. Those of an image
// without a digest are none.
func Sources(s *cluster.State, node terms.NodeName, id terms.AllocationID, by *http.Client) (all []image.Source) {
	task := reaction.TaskOn(s, node, id)
	if task == nil {
		return nil
	}
	w, ok := wantedBy(id.Slot.Job.Pool(), task)
	if !ok {
		return nil
	}
	for _, other := range w.holders(s, node) {
		all = append(all, image.Source{Name: "node " + string(other.Name), Resolver: &machine{client: by,
			root: wire.URL(other.Offer.Address), allocation: id, index: s.Index, one: make(chan struct{}, 1)}})
	}
	return all
}
