package api

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"starling/api/door"
	starlingv1 "starling/api/v1"
	"starling/api/view"
	"starling/api/waits"
	"starling/api/wire"
	"starling/cluster"
	"starling/cluster/facts"
	"starling/cluster/workload"
	"starling/jobspec"
	"starling/replica/forecast"
	"starling/rights"
	"starling/schedule/explain"
	"starling/terms"
	"starling/terms/access"
)

// ListJobs lists one page of jobs in the order of their names. The token of a page is its first name.
func (s *server) ListJobs(ctx context.Context,
	request *starlingv1.ListJobsRequest) (*starlingv1.ListJobsResponse, error) {
	size, err := pageSize(request.GetPageSize(), pageSizeDefault)
	if err != nil {
		return nil, err
	}
	state, err := s.stateAt(ctx, request.GetMinIndex())
	if err != nil {
		return nil, err
	}
	answer := &starlingv1.ListJobsResponse{Index: uint64(state.Index), Time: timestamp(state.Time)}
	sees := s.seer(ctx)
	from := terms.JobName(max(request.GetPrefix(), request.GetPageToken()))
	state.EachJobByName(from, func(j *workload.Job) bool {
		if !strings.HasPrefix(string(j.Name()), request.GetPrefix()) {
			return false
		}
		if !sees(j.Name().Pool()) {
			return true
		}
		if len(answer.Jobs) == size {
			answer.NextPageToken = string(j.Name())
			return false
		}
		answer.Jobs = append(answer.Jobs, view.Job(j))
		return true
	})
	return answer, nil
}

// JobStatus tells how a job stands, with one page of its slots.
func (s *server) JobStatus(ctx context.Context,
	request *starlingv1.JobStatusRequest) (*starlingv1.JobStatusResponse, error) {
	size, err := pageSize(request.GetPageSize(), pageSizeDefault)
	if err != nil {
		return nil, err
	}
	state, j, err := s.jobAt(ctx, request)
	if err != nil {
		return nil, err
	}
	from, err := slotToken(request.GetPageToken())
	if err != nil {
		return nil, err
	}
	if request.GetTask() != "" {
		if _, err := taskIndexOf(j, request.GetTask()); err != nil {
			return nil, err
		}
	}
	answer := &starlingv1.JobStatusResponse{
		Index: uint64(state.Index), Time: timestamp(state.Time), Job: view.Job(j), Spec: wire.Spec(j.Spec),
	}
	sees := s.seer(ctx)
	for i, t := range j.Tasks {
		answer.Tasks = append(answer.Tasks, taskOf(j, i, sees))
		if request.GetTask() != "" && request.GetTask() != string(t.Name) || i < int(from.Task) ||
			answer.NextPageToken != "" {
			continue
		}
		r := facts.SlotRef{Job: j.ID, Task: uint16(i)}
		if r.Task == from.Task {
			r.Index = from.Index
		}
		for ; int(r.Index) < t.Slots.Len(); r.Index++ {
			if len(answer.Slots) >= size {
				answer.NextPageToken = fmt.Sprintf("%d.%d", r.Task, r.Index)
				break
			}
			answer.Slots = append(answer.Slots, view.Slots(state, r)...)
		}
	}
	s.starting(ctx, state, j).Complete(answer.Slots)
	if request.GetFollowers() {
		answer.Followers = followers(state, j.Name(), sees)
	}
	answer.Grid = view.Grid(state, j, request.GetGrid())
	return answer, nil
}

// taskOf says how a task stands, without the name of a job that the caller may not see.
func taskOf(j *workload.Job, number int, sees func(terms.PoolPath) bool) *starlingv1.Task {
	m := view.Task(j, number)
	if by := j.Tasks[number].Preemption.By; m.GetPreemption() != nil && by != j.Name() && !sees(by.Pool()) {
		m.Preemption.By = ""
	}
	return m
}

// followersMax bounds the jobs after one that an answer names.
const followersMax = 100

// followers lists the jobs that come after one, of those that the caller may see.
func followers(state *cluster.State, name terms.JobName, sees func(terms.PoolPath) bool) (all []string) {
	state.EachJobByName("", func(j *workload.Job) bool {
		if slices.Contains(j.Spec.After, name) && sees(j.Name().Pool()) {
			all = append(all, string(j.Name()))
		}
		return len(all) < followersMax
	})
	return all
}

// seer tells the jobs of which pools the caller may see, "" for all. Also of the past that is who may see them now.
func (s *server) seer(ctx context.Context) func(terms.PoolPath) bool {
	caller := door.CallerOf(ctx)
	all := caller.Role >= access.Viewer || caller.Kind == access.OfNode
	now, err := s.backend.State(ctx, 0)
	return func(pool terms.PoolPath) bool {
		return all || err == nil && rights.ByPools(now, caller.Subject(), pool) >= access.Viewer
	}
}

// Why lists every reason why something of a job does not run yet.
func (s *server) Why(ctx context.Context, request *starlingv1.WhyRequest) (*starlingv1.WhyResponse, error) {
	state, j, err := s.jobAt(ctx, request)
	if err != nil {
		return nil, err
	}
	answer := &starlingv1.WhyResponse{Index: uint64(state.Index), Time: timestamp(state.Time), Job: view.Job(j)}
	starting := s.starting(ctx, state, j)
	place, err := s.imagining.Take(ctx)
	if err != nil {
		return nil, err
	}
	defer place.Done()
	answer.Findings = findings(explain.Job(state, j, &explain.Reader{Said: starting.Reason,
		Try: forecast.Tries(state, j.Name()), Sees: s.seer(ctx)}))
	return answer, nil
}

// starting tells what the job's instances wait for that are being started; of the past nobody is asked.
func (s *server) starting(ctx context.Context, state *cluster.State, j *workload.Job) *waits.Starts {
	if isPast(ctx) {
		return &waits.Starts{}
	}
	asking := waits.Peer{Node: s.backend.Self().Node(), Own: s.backend.Status().Waits, Others: s.peers}
	return asking.Of(ctx, state, j)
}

func findings(all []explain.Finding) []*starlingv1.Finding {
	var messages []*starlingv1.Finding
	for _, f := range all {
		messages = append(messages, &starlingv1.Finding{
			Task: string(f.Task), Instances: f.Instances, Slot: f.Slot, Reason: f.Reason, Details: f.Details,
			Since: timestamp(f.Since), Until: timestamp(f.Until),
		})
	}
	return messages
}

// pageSize returns how many rows an answer may have.
func pageSize(asked uint32, byDefault int) (int, error) {
	if asked > pageSizeMax {
		return 0, invalid("the request", terms.Problem{
			Path: "page_size", Reason: fmt.Sprintf("must be at most %d, is %d", pageSizeMax, asked)})
	}
	if asked == 0 {
		return byDefault, nil
	}
	return int(asked), nil
}

// slotToken reads the token of a page of slots: the task and the number of its first, "0.100".
func slotToken(token string) (facts.SlotRef, error) {
	if token == "" {
		return facts.SlotRef{}, nil
	}
	task, number, _ := strings.Cut(token, ".")
	t, err1 := strconv.ParseUint(task, 10, 16)
	n, err2 := strconv.ParseUint(number, 10, 32)
	if err1 != nil || err2 != nil {
		return facts.SlotRef{}, badToken(token)
	}
	return facts.SlotRef{Task: uint16(t), Index: uint32(n)}, nil
}

func badToken(token string) error {
	return invalid("the request", terms.Problem{
		Path: "page_token", Reason: fmt.Sprintf("must be the next_page_token of an answer, is %q", token)})
}

// jobAt returns the value at the index of a request or later, with the job that the request names.
func (s *server) jobAt(ctx context.Context, request interface {
	GetMinIndex() uint64
	GetJob() string
}) (*cluster.State, *workload.Job, error) {
	state, err := s.stateAt(ctx, request.GetMinIndex())
	if err != nil {
		return nil, nil, err
	}
	j, err := jobOf(state, request.GetJob())
	return state, j, err
}

func jobOf(state *cluster.State, name string) (*workload.Job, error) {
	if name == "" {
		return nil, invalid("the request", terms.Problem{Path: "job", Reason: "must not be empty"})
	}
	j := state.JobOf(terms.JobName(name))
	if j == nil {
		return nil, &wire.Failure{Code: wire.NotFound, Index: state.Index, Reason: fmt.Sprintf(
			"there is no job %q: `starling ps` lists them; those that have ended are forgotten after a while, with keep: 0 at once", name)}
	}
	return j, nil
}

func taskIndexOf(j *workload.Job, name string) (int, error) {
	if at := j.TaskIndex(terms.TaskName(name)); at >= 0 {
		return at, nil
	}
	return 0, &wire.Failure{Code: wire.NotFound, Reason: fmt.Sprintf(
		"job %s has no task %q, it has %s", j.Name(), name, taskNames(j))}
}

func taskNames(j *workload.Job) string {
	var names []string
	for _, t := range j.Tasks {
		names = append(names, string(t.Name))
	}
	return strings.Join(names, ", ")
}

// JobHistory lists the versions of a job that are kept.
func (s *server) JobHistory(ctx context.Context,
	request *starlingv1.JobHistoryRequest) (*starlingv1.JobHistoryResponse, error) {
	state, j, err := s.jobAt(ctx, request)
	if err != nil {
		return nil, err
	}
	return &starlingv1.JobHistoryResponse{
		Index: uint64(state.Index), Time: timestamp(state.Time), Job: view.Job(j), Versions: versions(state, j),
	}, nil
}

// JobDiff tells what differs between two versions of a job.
func (s *server) JobDiff(ctx context.Context, request *starlingv1.JobDiffRequest) (*starlingv1.JobDiffResponse, error) {
	state, j, err := s.jobAt(ctx, request)
	if err != nil {
		return nil, err
	}
	from, to := request.GetFrom(), cmp.Or(request.GetTo(), j.Version)
	for _, v := range j.Versions {
		if request.GetFrom() == 0 && v.Number < to {
			from = v.Number
		}
	}
	if from == 0 {
		return nil, &wire.Failure{Code: wire.NotFound,
			Reason: fmt.Sprintf("no version of job %s before %d is kept", j.Name(), to)}
	}
	for _, version := range []uint32{from, to} {
		if j.SpecOf(version) == nil {
			return nil, &wire.Failure{Code: wire.NotFound, Reason: fmt.Sprintf(
				"version %d of job %s is not kept: `starling job history %s` lists those that are", version, j.Name(), j.Name())}
		}
	}
	return &starlingv1.JobDiffResponse{
		Index: uint64(state.Index), Job: string(j.Name()), From: from, To: to, Changes: changes(j.SpecOf(from), j.SpecOf(to)),
	}, nil
}

func changes(from, to *terms.Job) []*starlingv1.Change {
	var messages []*starlingv1.Change
	for _, c := range jobspec.Diff(from, to) {
		messages = append(messages, &starlingv1.Change{
			Path: c.Path, Old: c.Old, New: c.New, Replaces: c.Effect == jobspec.Replaces, Effect: string(c.Effect),
		})
	}
	return messages
}

// versions returns the messages of a job's versions, the oldest first.
func versions(state *cluster.State, j *workload.Job) []*starlingv1.JobVersion {
	instances := map[uint32]uint32{}
	for task := range j.Tasks {
		state.EachSlot(j.ID, task, func(_ facts.SlotRef, slot facts.Slot) bool {
			if slot.Phase.Holds() {
				instances[slot.Version]++
			}
			return true
		})
	}
	var messages []*starlingv1.JobVersion
	for _, v := range j.Versions {
		messages = append(messages, &starlingv1.JobVersion{
			Number: v.Number, Kind: v.Kind.String(), Of: v.Of, BroughtIndex: uint64(v.Index), BroughtAt: timestamp(v.At),
			Outcome: v.Outcome.String(), Spec: wire.Spec(v.Spec), Instances: instances[v.Number],
		})
	}
	return messages
}
