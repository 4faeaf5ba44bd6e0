package door

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"starling/api/v1/starlingv1connect"
	"starling/api/wire"
	"starling/trust"
)

// Right says who may call a method.
type Right struct {
	// Role is the least role with which a user may; with NoRole no user has any business with it.
	Role trust.Role
	// Node lets nodes call it, Instance instances, for what belongs to their own job.
	Node, Instance bool
	// Anyone is let in, to prove something in the request itself.
	Anyone bool
}

// The methods that are no procedures.
const (
	PathJoin   = "/v1/join"
	PathRenew  = "/v1/renew"
	PathToken  = "/v1/token"
	PathUser   = "/v1/user"
	PathEvents = "/v1/events"
	PathHealth = "/healthz"
)

// rights is the one table of methods and of who may call them. What is not in it nobody may.
func rights() map[string]Right {
	read, readNode := Right{Role: trust.Viewer}, Right{Role: trust.Viewer, Node: true}
	submit, operate, rule := Right{Role: trust.Submitter}, Right{Role: trust.Operator}, Right{Role: trust.Admin}
	return map[string]Right{
		starlingv1connect.StarlingListJobsProcedure:    read,
		starlingv1connect.StarlingPlanJobProcedure:     read,
		starlingv1connect.StarlingJobHistoryProcedure:  read,
		starlingv1connect.StarlingJobDiffProcedure:     read,
		starlingv1connect.StarlingWhyProcedure:         read,
		starlingv1connect.StarlingListPeersProcedure:   read,
		starlingv1connect.StarlingListPoolsProcedure:   read,
		starlingv1connect.StarlingPoolStatusProcedure:  read,
		starlingv1connect.StarlingPlanPoolsProcedure:   read,
		starlingv1connect.StarlingTailJournalProcedure: read,
		starlingv1connect.StarlingRulesProcedure:       read,
		starlingv1connect.StarlingWhatIfProcedure:      read,
		starlingv1connect.StarlingDiffProcedure:        read,
		starlingv1connect.StarlingBlameProcedure:       read,
		starlingv1connect.StarlingUsageProcedure:       read,
		starlingv1connect.StarlingExportProcedure:      rule,
		PathEvents: read,
		starlingv1connect.StarlingJobStatusProcedure: {Role: trust.Viewer, Instance: true},
		starlingv1connect.StarlingInfoProcedure:      readNode,
		starlingv1connect.StarlingQuorumProcedure:    readNode,
		starlingv1connect.StarlingLogsProcedure:      readNode,
		starlingv1connect.StarlingOutputProcedure:    {Role: trust.Viewer, Node: true, Instance: true},

		starlingv1connect.StarlingSubmitJobProcedure:   submit,
		starlingv1connect.StarlingKillJobProcedure:     submit,
		starlingv1connect.StarlingSteerUpdateProcedure: submit,
		starlingv1connect.StarlingRevertJobProcedure:   submit,
		starlingv1connect.StarlingRestartJobProcedure:  submit,
		starlingv1connect.StarlingSuspendJobProcedure:  submit,
		starlingv1connect.StarlingSealTaskProcedure:    {Role: trust.Submitter, Instance: true},

		starlingv1connect.StarlingEndAllocationProcedure: operate,
		starlingv1connect.StarlingDrainNodeProcedure:     operate,

		starlingv1connect.StarlingChangePoolsProcedure:  rule,
		starlingv1connect.StarlingRaiseRulesProcedure:   rule,
		starlingv1connect.StarlingChangeQuorumProcedure: rule,
		PathToken: rule,
		PathUser:  rule,

		PathJoin:   {Anyone: true},
		PathRenew:  {Anyone: true},
		PathHealth: {Anyone: true},
	}
}

// Methods lists all methods of the table.
func Methods() []string { return slices.Sorted(maps.Keys(rights())) }

// callerKey finds who calls in the context of a request.
type callerKey struct{}

// caller is who calls, or why that is not known.
type caller struct {
	trust.Identity
	refusal string
}

// CallerOf returns who sent the request of the context.
func CallerOf(ctx context.Context) trust.Identity {
	who, _ := ctx.Value(callerKey{}).(caller)
	return who.Identity
}

// WithCaller returns a context of a request by somebody, for those who call without a door.
func WithCaller(ctx context.Context, who trust.Identity) context.Context {
	return context.WithValue(ctx, callerKey{}, caller{Identity: who})
}

// Check is an error if the method is not for who sent the request of the context.
func Check(ctx context.Context, method string) error {
	who, _ := ctx.Value(callerKey{}).(caller)
	right, known := rights()[method]
	switch {
	case known && right.Anyone:
		return nil
	case who.refusal != "":
		return &wire.Failure{Code: wire.Denied, Reason: who.refusal}
	case who.Kind == trust.OfAnyone:
		return &wire.Failure{Code: wire.Denied, Reason: "this peer answers only users and nodes of its cluster: " +
			"ask an admin for `starling user add NAME --role ROLE`, and keep what it prints with `starling login`"}
	case who.Kind == trust.OfUser && right.Role != trust.NoRole && who.Role >= right.Role,
		who.Kind == trust.OfNode && right.Node, who.Kind == trust.OfInstance && right.Instance:
		return nil
	case who.Kind == trust.OfUser && right.Role != trust.NoRole:
		return &wire.Failure{Code: wire.Denied, Reason: fmt.Sprintf("%s may not call %s: it needs the role %s", who.Identity,
			method, right.Role)}
	}
	return &wire.Failure{Code: wire.Denied, Reason: fmt.Sprintf("%s may not call %s", who.Identity, method)}
}
