package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"starling/api/client"
	"starling/api/door"
	"starling/api/draft"
	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/jobspec"
	"starling/jobspec/sizing"
	"starling/terms"
)

// pasted is what the text in the page is called where files have names.
const pasted = "pasted"

// plan is what a pasted file would do. What a browser then sends to a peer, to have it done, is in it.
type plan struct {
	Problems []problem    `json:"problems,omitempty"`
	Jobs     []plannedJob `json:"jobs,omitempty"`
	Pools    *plannedTree `json:"pools,omitempty"`
	// Refusal is why the user may not have it done.
	Refusal string `json:"refusal,omitempty"`
}

// problem is one thing wrong with the text, and where.
type problem struct {
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Reason string `json:"reason"`
}

// plannedJob is what running one job would do.
type plannedJob struct {
	Name     string          `json:"name"`
	Words    string          `json:"words"`
	Changes  bool            `json:"changes"`
	Warnings []string        `json:"warnings,omitempty"`
	Against  uint32          `json:"against"`
	Spec     json.RawMessage `json:"spec,omitempty"`
}

// plannedTree is what a pools file would do.
type plannedTree struct {
	Words    string            `json:"words"`
	Changes  bool              `json:"changes"`
	Rows     [][]string        `json:"rows,omitempty"`
	Warnings []string          `json:"warnings,omitempty"`
	Against  uint32            `json:"against"`
	Pools    []json.RawMessage `json:"pools,omitempty"`
	Gone     []terms.PoolPath  `json:"gone,omitempty"`
	// paths are the pools that change.
	paths []terms.PoolPath
}

// planner answers what the page asks before something is done.
type planner struct{ peer *client.Client }

// whoAmI tells who looks at the page, and whether that one may do some things.
func (p planner) whoAmI(ctx context.Context, r *http.Request) (any, error) {
	asked := door.WhoAmIRequest{}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		return nil, &wire.Failure{Code: wire.Invalid, Reason: err.Error()}
	}
	return p.peer.WhoAmI(ctx, asked.Acts...)
}

// refusal is why the user may not have a plan done, as far as a peer tells: it decides again when that is asked for.
func (p planner) refusal(ctx context.Context, planned *plan) string {
	var acts []door.Act
	for i := range planned.Jobs {
		acts = append(acts, door.Act{Verb: "run", Object: planned.Jobs[i].Name})
	}
	if planned.Pools != nil {
		for _, path := range planned.Pools.paths {
			acts = append(acts, door.Act{Verb: "change-pool", Object: string(path)})
		}
	}
	for some := range slices.Chunk(acts, door.ActsMax) {
		me, err := p.peer.WhoAmI(ctx, some...)
		if err != nil {
			return ""
		}
		for _, answer := range me.Answers {
			if !answer.May {
				return answer.Why
			}
		}
	}
	return ""
}

// file plans the text of a job file or a pools file.
func (p planner) file(ctx context.Context, r *http.Request) (any, error) {
	asked := struct{ Text string }{}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		return nil, &wire.Failure{Code: wire.Invalid, Reason: err.Error()}
	}
	text := []byte(asked.Text)
	answer, err := plan{}, error(nil)
	if regexp.MustCompile(`(?m)^\{?\s*"?pools"?\s*:`).Match(text) {
		answer.Pools, err = p.tree(ctx, text)
	} else {
		answer.Jobs, err = p.jobs(ctx, text)
	}
	var wrong jobspec.Errors
	if errors.As(err, &wrong) {
		for _, one := range wrong {
			where := problem{Line: one.Line, Column: one.Column, Reason: one.Reason}
			if one.Path != "" {
				where.Reason = one.Path + ": " + one.Reason
			}
			answer.Problems = append(answer.Problems, where)
		}
		return answer, nil
	}
	if err == nil {
		answer.Refusal = p.refusal(ctx, &answer)
	}
	return answer, err
}

func (p planner) jobs(ctx context.Context, text []byte) (all []plannedJob, err error) {
	documents, err := jobspec.Parse(pasted, text)
	if err != nil {
		return nil, err
	}
	err = draft.Jobs(ctx, p.peer, pasted, documents, func(one *draft.Planned) error {
		job := plannedOf(one, &one.Document.Spec, one.Plan.GetVersion())
		if one.Plan == nil {
			status, err := p.status(ctx, string(one.Document.Spec.Name))
			if err != nil {
				return err
			}
			if !draft.HasEnded(status.GetJob()) {
				job.Against = status.GetJob().GetVersion()
			}
		}
		all = append(all, job)
		return nil
	})
	return all, err
}

// plannedOf is the plan of a job that is to be submitted against a version.
func plannedOf(one *draft.Planned, spec *terms.Job, against uint32) plannedJob {
	return plannedJob{Name: string(spec.Name), Words: one.Words(), Changes: one.Changes(),
		Warnings: one.Plan.GetWarnings(), Against: against, Spec: raw(wire.Spec(spec))}
}

// status returns how a job stands, nil if there is none.
func (p planner) status(ctx context.Context, job string) (*starlingv1.JobStatusResponse, error) {
	status, err := p.peer.JobStatus(ctx, &starlingv1.JobStatusRequest{Job: job, PageSize: 1})
	if failure := (*wire.Failure)(nil); errors.As(err, &failure) && failure.Code == wire.NotFound {
		return nil, nil
	}
	return status, err
}

func (p planner) tree(ctx context.Context, text []byte) (*plannedTree, error) {
	tree, err := jobspec.ParsePools(pasted, text)
	if err != nil {
		return nil, err
	}
	present, err := draft.Present(ctx, p.peer)
	if err != nil {
		return nil, err
	}
	put, gone := present.Difference(tree)
	if gone, err = draft.Deleted(ctx, p.peer, gone); err != nil {
		return nil, err
	}
	if len(put)+len(gone) == 0 {
		return &plannedTree{Words: present.Keeps()}, nil
	}
	answer, err := p.peer.PlanPools(ctx, present.Version, put, gone)
	if err != nil {
		return nil, err
	}
	planned := &plannedTree{Words: draft.PoolsText(answer), Changes: true, Rows: draft.EntitlementRows(answer),
		Against: answer.GetVersion(), Gone: gone, paths: slices.Clone(gone)}
	for i := range put {
		planned.paths = append(planned.paths, put[i].Path)
	}
	for _, w := range answer.GetWarnings() {
		planned.Warnings = append(planned.Warnings, w.GetPath()+": "+w.GetReason())
	}
	for _, one := range wire.Pools(put) {
		planned.Pools = append(planned.Pools, raw(one))
	}
	return planned, nil
}

// scale plans another number of instances of a task.
func (p planner) scale(ctx context.Context, r *http.Request) (any, error) {
	asked := struct {
		Job, Task string
		Instances uint32
	}{}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || asked.Instances > terms.InstancesMax {
		return nil, &wire.Failure{Code: wire.Invalid,
			Reason: fmt.Sprintf("the number of instances must be from 0 to %d", terms.InstancesMax)}
	}
	status, err := p.status(ctx, asked.Job)
	switch {
	case err != nil:
		return nil, err
	case status == nil:
		return nil, &wire.Failure{Code: wire.NotFound, Reason: "there is no job " + asked.Job}
	}
	size := sizing.Size{Task: terms.TaskName(asked.Task), Instances: asked.Instances}
	spec, err := draft.Scaled(ctx, p.peer, status, []sizing.Size{size})
	if err != nil || spec == nil {
		return plannedJob{Name: asked.Job}, err
	}
	answer, err := p.peer.PlanJob(ctx, spec)
	if err != nil {
		return nil, err
	}
	return plannedOf(&draft.Planned{Plan: answer}, spec, status.GetJob().GetVersion()), nil
}

// raw writes a message as peers read it.
func raw(m proto.Message) json.RawMessage {
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		panic("web: a message that was made here cannot be written: " + err.Error())
	}
	return text
}

// answers makes a handler of what answers in JSON.
func answers(ask func(context.Context, *http.Request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, err := ask(r.Context(), r)
		if err != nil {
			failure := &wire.Failure{Code: wire.Internal, Reason: err.Error()}
			if known := (*wire.Failure)(nil); errors.As(err, &known) {
				failure.Code = known.Code
				for _, one := range known.Problems {
					failure.Reason += "\n" + one.Path + ": " + one.Reason
				}
			}
			door.WriteFailure(w, door.StatusOf(failure.Code), failure)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_ = json.NewEncoder(w).Encode(answer) // it fails only if who asked has gone
	})
}
