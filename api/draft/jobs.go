package draft

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"starling/api/client"
	starlingv1 "starling/api/v1"
	"starling/api/wire"
	"starling/jobspec"
	"starling/terms"
)

// HasEnded tells whether a job has ended for good, so that its name is free. A service of which all has failed has a
// final status too, but has not ended: it may get a new version.
func HasEnded(job *starlingv1.Job) bool { return job.GetFinishedIndex() != 0 }

// Planned is what running one job of a file would do. It has a plan, or says for which job of the same file it waits.
type Planned struct {
	Document *jobspec.Document
	Plan     *starlingv1.PlanJobResponse
	Waits    terms.JobName
}

// Changes tells whether something would change.
func (p *Planned) Changes() bool {
	return p.Plan == nil || p.Plan.GetVersion() == 0 || len(p.Plan.GetChanges()) > 0
}

// Words tells it to people.
func (p *Planned) Words() string {
	if p.Plan == nil {
		return fmt.Sprintf("%s: comes after %s, which this file brings or changes: it can be planned when that is done\n",
			p.Document.Spec.Name, p.Waits)
	}
	return planText(p.Plan)
}

// Jobs visits the plan of each job of a file, made as if that job came alone; one that comes after another of them has
// none before that is done. The error has a line for each job that is refused, in the words of file:line; no other is
// planned when the peers cannot answer.
func Jobs(ctx context.Context, peer *client.Client, file string, documents []jobspec.Document,
	visit func(*Planned) error) error {
	brought := map[terms.JobName]bool{}
	var refused []error
	for i := range documents {
		p := &Planned{Document: &documents[i]}
		spec := &documents[i].Spec
		if at := slices.IndexFunc(spec.After, func(job terms.JobName) bool { return brought[job] }); at >= 0 {
			p.Waits = spec.After[at]
		} else {
			plan, err := peer.PlanJob(ctx, spec)
			if err != nil {
				refused = append(refused, fmt.Errorf("%s:%d: job %s: %w", file, documents[i].Line, spec.Name, err))
			}
			switch failure := (*wire.Failure)(nil); {
			case err != nil && (!errors.As(err, &failure) || failure.Code == wire.Unavailable || failure.Code == wire.Unknown):
				return errors.Join(refused...)
			case err != nil:
				brought[spec.Name] = true
				continue
			}
			p.Plan = plan
		}
		brought[spec.Name] = p.Changes()
		if err := visit(p); err != nil {
			return err
		}
	}
	return errors.Join(refused...)
}
