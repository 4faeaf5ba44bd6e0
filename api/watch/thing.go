package watch

import (
	"slices"

	starlingv1 "starling/api/v1"
	"starling/api/view"
	"starling/api/wire"
	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/plugin/roster"
	"starling/terms"
	"starling/terms/domain"
)

// The kinds of things, in the order in which they are told.
const (
	kindPool     = "pool"
	kindNode     = "node"
	kindJob      = "job"
	kindUpdate   = "update"
	kindInstance = "instance"
	kindEndpoint = "endpoint"
)

// kinds lists them.
func kinds() []string {
	return []string{kindPool, kindNode, kindJob, kindUpdate, kindInstance, kindEndpoint}
}

// thing is one of them at one moment, with what filters ask for.
type thing struct {
	kind, name string
	// told has it as its object, and nothing else.
	told *starlingv1.WatchResponse
	// job and node are to which it belongs; pool is its own or that of its job.
	job  terms.JobName
	pool terms.PoolPath
	node terms.NodeName
	// labels are those of its tasks.
	labels [][]terms.EnvVar
}

func poolThing(p *terms.Pool) *thing {
	return &thing{kind: kindPool, name: string(p.Path), pool: p.Path,
		told: &starlingv1.WatchResponse{Object: &starlingv1.WatchResponse_Pool{Pool: wire.Pool(p)}}}
}

// node is nil if it has not written yet.
func node(s *cluster.State, n facts.NodeIndex) *thing {
	if int(n) >= s.Nodes() {
		return nil
	}
	row := s.Node(n)
	m := &starlingv1.Node{Name: string(row.Name), Peer: string(row.Peer), Member: row.Peer != "",
		Allocations: uint32(len(row.Held)), Draining: row.Drain.On, DrainDeadline: wire.Timestamp(row.Drain.Deadline)}
	if row.Peer == "" {
		m.Peer = string(terms.NewPeerID(row.Name, row.Departed))
	}
	if o := row.Offer; o != nil {
		free := s.Free(n)
		for k := range free {
			free[k] = max(free[k], 0)
		}
		m.Capacity, m.Free, m.Address = wire.Resources(o.Capacity), wire.Resources(free), o.Address
		m.AwayUntil = wire.Timestamp(o.AwayUntil)
		m.Devices, m.Attributes = wire.Devices(o.Devices), wire.Variables(o.Attributes)
	}
	return &thing{kind: kindNode, name: m.GetName(), node: row.Name,
		told: &starlingv1.WatchResponse{Object: &starlingv1.WatchResponse_Node{Node: m}}}
}

// ofJob is a thing that belongs to a job.
func ofJob(kind string, j *workload.Job) *thing {
	t := &thing{kind: kind, name: string(j.Name()), job: j.Name(), pool: j.Name().Pool()}
	for i := range j.Spec.Tasks {
		if labels := j.Spec.Tasks[i].Labels; len(labels) > 0 {
			t.labels = append(t.labels, labels)
		}
	}
	return t
}

// job is nil if there is none.
func job(j *workload.Job) *thing {
	if j == nil {
		return nil
	}
	t := ofJob(kindJob, j)
	t.told = &starlingv1.WatchResponse{Object: &starlingv1.WatchResponse_Job{Job: view.Job(j)}}
	return t
}

// update is nil if there is no such job, or it has had none.
func update(j *workload.Job) *thing {
	if j == nil || j.Update.State == facts.NoUpdate {
		return nil
	}
	t := ofJob(kindUpdate, j)
	t.told = &starlingv1.WatchResponse{Object: &starlingv1.WatchResponse_Update{Update: view.Update(&j.Update)}}
	return t
}

// ofSlot is a thing that belongs to a seat of a slot.
func ofSlot(s *cluster.State, kind string, r facts.SlotRef, slot facts.Slot) *thing {
	j := s.Job(r.Job)
	t := &thing{kind: kind, name: s.NameOf(r).String(), job: j.Name(), pool: j.Name().Pool()}
	if slot.Order != 0 {
		t.node = s.Node(slot.Node).Name
	}
	if spec := j.TaskSpecOf(int(r.Task), slot.Version); spec != nil && len(spec.Labels) > 0 {
		t.labels = [][]terms.EnvVar{spec.Labels}
	}
	return t
}

// labelMessages returns the labels of a thing of one task.
func (t *thing) labelMessages() []*starlingv1.Variable {
	return wire.Variables(slices.Concat(t.labels...))
}

// instance is nil if there is nothing in the seat, and never was.
func instance(s *cluster.State, r facts.SlotRef) *thing {
	slot, ok := s.SlotAt(r)
	if !ok || slot == (facts.Slot{}) {
		return nil
	}
	t := ofSlot(s, kindInstance, r, slot)
	if r.Seat != facts.MainSeat {
		t.name += ":" + r.Seat.String()
	}
	t.told = &starlingv1.WatchResponse{Object: &starlingv1.WatchResponse_Instance{Instance: &starlingv1.Instance{
		Job: string(t.job), Labels: t.labelMessages(), Slot: view.Seat(s, r),
	}}}
	return t
}

// endpoint is nil if the slot has no instance that is found anywhere.
func endpoint(s *cluster.State, r facts.SlotRef) *thing {
	j := s.Job(r.Job)
	if j == nil || int(r.Task) >= len(j.Tasks) {
		return nil
	}
	member, ok := roster.MemberAt(s, j, r)
	if !ok || member.Address == "" {
		return nil
	}
	slot, _ := s.SlotAt(member.At)
	t, name := ofSlot(s, kindEndpoint, r, slot), s.NameOf(r)
	m := &starlingv1.Endpoint{
		Job: string(name.Job), Task: string(name.Task), Number: r.Index, Address: member.Address,
		Health: slot.Health.String(), Node: string(t.node), Labels: t.labelMessages(),
		Allocation: terms.AllocationID{Slot: name, Order: member.Order}.String(),
		DnsName:    domain.DefaultZone.Name(domain.Name{Job: name.Job, Task: name.Task, One: true, Index: r.Index}),
	}
	for _, p := range member.Ports {
		m.Ports = append(m.Ports, &starlingv1.Port{Name: p.Name, Number: uint32(p.Number)})
	}
	t.told = &starlingv1.WatchResponse{Object: &starlingv1.WatchResponse_Endpoint{Endpoint: m}}
	return t
}

// each visits all that a query takes of a value until visit returns an error, which it returns.
func (q *query) each(s *cluster.State, visit func(*thing) error) error {
	all := &listing{query: q, state: s, visit: visit}
	for i := range s.Pools() {
		all.tell(kindPool, func() *thing { return poolThing(&s.Pools()[i]) })
	}
	for n := range s.Nodes() {
		all.tell(kindNode, func() *thing { return node(s, facts.NodeIndex(n)) })
	}
	for _, kind := range []string{kindJob, kindUpdate, kindInstance, kindEndpoint} {
		if q.kinds[kind] {
			all.jobs(kind)
		}
	}
	return all.err
}

// listing visits what there is.
type listing struct {
	*query
	state *cluster.State
	visit func(*thing) error
	err   error
}

func (l *listing) tell(kind string, make func() *thing) {
	if l.err != nil || !l.kinds[kind] {
		return
	}
	if t := make(); t != nil && l.takes(t) {
		l.err = l.visit(t)
	}
}

func (l *listing) jobs(kind string) {
	visit := func(j *workload.Job) bool {
		if l.mayTake(j.Name()) {
			l.ofJob(kind, j)
		}
		return l.err == nil
	}
	if l.job == "" {
		l.state.EachJob(visit)
	} else if j := l.state.JobOf(l.job); j != nil {
		visit(j)
	}
}

func (l *listing) ofJob(kind string, j *workload.Job) {
	switch kind {
	case kindJob:
		l.tell(kind, func() *thing { return job(j) })
	case kindUpdate:
		l.tell(kind, func() *thing { return update(j) })
	}
	for number, t := range j.Tasks {
		r := facts.SlotRef{Job: j.ID, Task: uint16(number)}
		switch kind {
		case kindInstance:
			var rows []facts.SlotRef
			l.state.EachSlot(j.ID, number, func(r facts.SlotRef, _ facts.Slot) bool {
				rows = append(rows, r)
				return true
			})
			slices.SortFunc(rows, facts.SlotRef.Compare)
			for _, r := range rows {
				l.tell(kind, func() *thing { return instance(l.state, r) })
			}
		case kindEndpoint:
			for ; r.Index < min(t.Desired, t.Fresh); r.Index++ {
				l.tell(kind, func() *thing { return endpoint(l.state, r) })
			}
		}
	}
}
