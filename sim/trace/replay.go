package trace

import (
	"context"
	"fmt"
	"time"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/command"
	"starling/replica"
	"starling/terms"
)

// Trace is what was recorded.
type Trace struct {
	Machines []Machine
	Tasks    []Task
}

// Options say how a trace is replayed.
type Options struct {
	Placement terms.Placement
	// Inflate is the percentage of the GPUs of all machines that the tasks that arrive ask for together; 0 is what the
	// tasks of the trace ask for.
	Inflate int
	// Seed draws the order in which tasks arrive, and those that arrive more than once.
	Seed uint64
	// Progress, which may be nil, is called after each arrival.
	Progress func(done, all int)
}

// replay is a replay under way.
type replay struct {
	trace *Trace
	s     *cluster.State
	// seqs are the numbers of the last entries of the writers.
	seqs  map[terms.PeerID]uint64
	gauge *gauge
	// capacity is that of all machines; arrived and allocated is what tasks asked for and have.
	capacity, arrived, allocated amounts
	placed                       int
	// waiting are the jobs that found no room, by shape.
	waiting map[Shape][]terms.JobName
	took    time.Duration
	curve   []Point
}

// amounts are of the kinds that are reported: millicores, bytes, thousandths of GPUs.
type amounts [terms.GPU + 1]int64

func (a *amounts) add(r *terms.Resources, gpus int64) {
	for k := range r {
		a[k] += r[k]
	}
	a[terms.GPU] += gpus
}

// Replay lets all machines join and then all tasks arrive. It fails if the fold refuses an entry, if there are no GPUs
// to inflate for, and when ctx ends.
func Replay(ctx context.Context, t *Trace, o Options) (*Result, error) {
	r := newReplay(t)
	if err := r.populate(); err != nil {
		return nil, err
	}
	demand := int64(0)
	for i := range t.Tasks {
		demand += int64(t.Tasks[i].GPU)
	}
	enough := r.capacity[terms.GPU] * int64(o.Inflate) / 100
	if o.Inflate > 0 && (enough == 0 || demand == 0) {
		return nil, fmt.Errorf("inflate to %d percent of the GPUs: the machines have %d, and the tasks ask for %d thousandths of one",
			o.Inflate, r.capacity[terms.GPU]/int64(terms.WholeDevice), demand)
	}
	order := arrivals(t.Tasks, enough, o.Seed)
	for i, number := range order {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err := r.arrive(i, &t.Tasks[number], o.Placement); err != nil {
			return nil, err
		}
		if o.Progress != nil {
			o.Progress(i+1, len(order))
		}
	}
	return r.result(o, len(order)), nil
}

func newReplay(t *Trace) *replay {
	return &replay{trace: t, s: cluster.NewState(), seqs: map[terms.PeerID]uint64{},
		gauge:   newGauge(t.Tasks, len(t.Machines)),
		waiting: map[Shape][]terms.JobName{}}
}

// populate lets all machines join, and begins the curve.
func (r *replay) populate() error {
	for i := range r.trace.Machines {
		if err := r.join(&r.trace.Machines[i]); err != nil {
			return err
		}
	}
	r.draw()
	return nil
}

// join takes a machine into the ring by the three phases, and lets it volunteer.
func (r *replay) join(m *Machine) error {
	joiner := terms.NewPeerID(m.Name, 1)
	if err := r.write(joiner, &command.PrepareJoin{Joiner: joiner, Attempt: 1}); err != nil {
		return err
	}
	if attempt, joins := r.s.Attempt(joiner); joins {
		if err := r.write(attempt.Observer, &command.NotifyJoin{Joiner: joiner, Attempt: 1}); err != nil {
			return err
		}
		if err := r.write(joiner, &command.AcceptJoin{Joiner: joiner, Observer: attempt.Observer, Attempt: 1}); err != nil {
			return err
		}
	}
	r.capacity.add(&m.Resources, int64(m.GPUs)*int64(terms.WholeDevice))
	if err := r.write(joiner, &command.Volunteer{Peer: joiner, Offer: m.offer()}); err != nil {
		return err
	}
	r.gauge.look(r.s, r.s.NodeOf(m.Name).Index)
	return nil
}

// arrive submits a task as a job of its own and looks what became of it. Only the fold's time is counted.
func (r *replay) arrive(number int, t *Task, placement terms.Placement) error {
	job := terms.JobName(fmt.Sprint("task-", number))
	submit := &command.SubmitJob{Spec: terms.Job{Name: job, Type: terms.Batch, Tasks: []terms.Task{{
		Name: "main", Instances: 1, Command: []string{"true"}, Resources: t.Resources, Devices: t.request(),
		Placement: placement,
	}}}}
	begun := time.Now()
	err := r.write(terms.NewPeerID(r.trace.Machines[0].Name, 1), submit)
	r.took += time.Since(begun)
	if err != nil {
		return fmt.Errorf("task %s: %w", t.Name, err)
	}
	r.arrived.add(&t.Resources, int64(t.GPU))
	slot, _ := r.s.SlotAt(facts.SlotRef{Job: r.s.JobOf(job).ID})
	if slot.Phase.Holds() {
		r.placed++
		r.allocated.add(&t.Resources, int64(t.GPU))
		r.gauge.look(r.s, slot.Node)
	} else {
		r.waiting[t.Shape] = append(r.waiting[t.Shape], job)
	}
	r.draw()
	return nil
}

// draw adds a point to the curve for each percent of the GPUs that the tasks now ask for.
func (r *replay) draw() {
	all := r.capacity[terms.GPU]
	for all > 0 && int64(len(r.curve)) <= r.arrived[terms.GPU]*100/all {
		r.curve = append(r.curve, Point{Arrived: float64(len(r.curve)),
			Allocated: percent(float64(r.allocated[terms.GPU]), all), Fragmented: percent(r.gauge.milli(), all)})
	}
}

// write folds an entry with one command.
func (r *replay) write(writer terms.PeerID, c command.Command) error {
	r.seqs[writer]++
	outcome := replica.Apply(r.s, r.s.Index+1,
		&command.Entry{Writer: writer, Seq: r.seqs[writer], Time: 1, Cause: r.s.Index,
			Commands: []command.Command{c}}, false)
	switch {
	case outcome.Dropped != "":
		return fmt.Errorf("%s of %s was passed over: %s", c.Kind(), writer, outcome.Dropped)
	case outcome.Results[0].Refusal.Code != facts.OK:
		return fmt.Errorf("%s of %s was refused: %s", c.Kind(), writer, outcome.Results[0].Refusal.Reason)
	}
	return nil
}
