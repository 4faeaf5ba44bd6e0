package door

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"starling/api/v1/starlingv1connect"
	"starling/api/wire"
	"starling/terms/access"
	"starling/trust"
)

// Right says who may call a method.
type Right struct {
	// Role is the least role with which a user may; with NoRole no user has any business with it.
	Role access.Role
	// Pool takes a role that is given in the pool of the job which the request is about for one in the whole cluster.
	Pool bool
	// Node lets nodes call it, Instance instances, for what belongs to their own job.
	Node, Instance bool
	// Anyone is let in, to prove something in the request itself.
	Anyone bool
}

// The methods that are no procedures.
const (
	PathJoin        = "/v1/join"
	PathRenew       = "/v1/renew"
	PathToken       = "/v1/token"
	PathUser        = "/v1/user"
	PathTokens      = "/v1/tokens"
	PathUsers       = "/v1/users"
	PathRemoveToken = "/v1/token/remove"
	PathRemoveUser  = "/v1/user/remove"
	PathRemoveNode  = "/v1/node/remove"
	PathCan         = "/v1/can"
	PathWhoAmI      = "/v1/whoami"
	PathSignIn      = "/v1/sign-in"
	PathSignedIn    = "/v1/sign-in/finish"

	PathAuthorities     = "/v1/ca"
	PathRotate          = "/v1/ca/rotate"
	PathRemoveAuthority = "/v1/ca/remove"
	PathAuthorityKey    = "/v1/ca/key"

	PathIDTokens  = "/v1/id-tokens"
	PathSeal      = "/v1/seal"
	PathPin       = "/v1/pin"
	PathDiscovery = "/.well-known/openid-configuration"
	PathJWKS      = "/.well-known/jwks.json"

	PathLogs      = "/v1/logs"
	PathEvents    = "/v1/events"
	PathEndpoints = "/v1/endpoints/"
	PathJournal   = "/v1/journal"
	PathHealth    = "/healthz"
	PathReady     = "/readyz"
	PathMetrics   = "/metrics"
	PathOpenAPI   = "/v1/openapi.json"
)

// table is the one list of methods and of who may call them. What is not in it nobody may.
func table() map[string]Right {
	read, readNode := Right{Role: access.Viewer}, Right{Role: access.Viewer, Node: true}
	readJob, submit := Right{Role: access.Viewer, Pool: true}, Right{Role: access.Submitter, Pool: true}
	operate, rule, operateNode := Right{Role: access.Operator}, Right{Role: access.Admin},
		Right{Role: access.Operator, Pool: true, Node: true}
	return map[string]Right{
		starlingv1connect.StarlingListJobsProcedure:    readJob,
		starlingv1connect.StarlingPlanJobProcedure:     readJob,
		starlingv1connect.StarlingJobHistoryProcedure:  readJob,
		starlingv1connect.StarlingJobDiffProcedure:     readJob,
		starlingv1connect.StarlingWhyProcedure:         readJob,
		starlingv1connect.StarlingListPeersProcedure:   read,
		starlingv1connect.StarlingListPoolsProcedure:   read,
		starlingv1connect.StarlingPoolStatusProcedure:  read,
		starlingv1connect.StarlingPlanPoolsProcedure:   read,
		starlingv1connect.StarlingTailJournalProcedure: read,
		starlingv1connect.StarlingRulesProcedure:       read,
		starlingv1connect.StarlingWhatIfProcedure:      read,
		starlingv1connect.StarlingDiffProcedure:        read,
		starlingv1connect.StarlingBlameProcedure:       readJob,
		starlingv1connect.StarlingUsageProcedure:       read, starlingv1connect.StarlingSeriesProcedure: read,
		starlingv1connect.StarlingExportProcedure: rule,
		starlingv1connect.StarlingWatchProcedure:  readJob,
		PathEvents:                                readJob,
		PathEndpoints:                             readJob,
		PathJournal:                               read,
		PathLogs:                                  readJob,
		PathMetrics:                               read,
		starlingv1connect.StarlingJobStatusProcedure:     {Role: access.Viewer, Pool: true, Instance: true},
		starlingv1connect.StarlingInfoProcedure:          {Role: access.Viewer, Pool: true, Node: true},
		starlingv1connect.StarlingQuorumProcedure:        readNode,
		starlingv1connect.StarlingNodeStatsProcedure:     readNode,
		starlingv1connect.StarlingInstanceStatsProcedure: {Role: access.Viewer, Pool: true, Node: true},
		starlingv1connect.StarlingLogsProcedure:          {Role: access.Viewer, Pool: true, Node: true},
		starlingv1connect.StarlingOutputProcedure:        {Role: access.Viewer, Pool: true, Node: true, Instance: true},

		starlingv1connect.StarlingSubmitJobProcedure:   submit,
		starlingv1connect.StarlingKillJobProcedure:     submit,
		starlingv1connect.StarlingSteerUpdateProcedure: submit,
		starlingv1connect.StarlingRevertJobProcedure:   submit,
		starlingv1connect.StarlingRestartJobProcedure:  submit,
		starlingv1connect.StarlingSuspendJobProcedure:  submit,
		starlingv1connect.StarlingSealTaskProcedure:    {Role: access.Submitter, Pool: true, Instance: true},

		starlingv1connect.StarlingPutSecretProcedure: submit, starlingv1connect.StarlingRemoveSecretProcedure: submit,
		starlingv1connect.StarlingListSecretsProcedure:   readJob,
		starlingv1connect.StarlingVolumeStatsProcedure:   {Role: access.Viewer, Pool: true, Node: true},
		starlingv1connect.StarlingListVolumesProcedure:   readJob,
		starlingv1connect.StarlingRemoveVolumesProcedure: {Role: access.Operator, Pool: true},
		starlingv1connect.StarlingEndAllocationProcedure: {Role: access.Operator, Pool: true},
		starlingv1connect.StarlingExecProcedure:          operateNode, starlingv1connect.StarlingFilesProcedure: operateNode,
		starlingv1connect.StarlingReadVolumesProcedure:     operateNode,
		starlingv1connect.StarlingRelocateVolumesProcedure: operateNode,
		starlingv1connect.StarlingDrainNodeProcedure:       operate,

		starlingv1connect.StarlingChangePoolsProcedure:  {Role: access.Admin, Pool: true},
		starlingv1connect.StarlingRaiseRulesProcedure:   rule,
		starlingv1connect.StarlingChangeQuorumProcedure: rule,
		PathCan: read, PathWhoAmI: readJob, PathToken: rule, PathUser: rule,
		PathTokens: rule, PathUsers: rule, PathRemoveToken: rule, PathRemoveUser: rule, PathRemoveNode: rule,

		PathAuthorities: read, PathRotate: rule, PathRemoveAuthority: rule, PathAuthorityKey: {Node: true},

		PathIDTokens: {Node: true}, PathSeal: {Node: true}, PathPin: {Node: true},
		PathDiscovery: {Anyone: true}, PathJWKS: {Anyone: true},
		PathSignIn: {Anyone: true}, PathSignedIn: {Anyone: true}, PathJoin: {Anyone: true}, PathRenew: {Anyone: true},
		PathHealth: {Anyone: true}, PathReady: {Anyone: true},
		PathOpenAPI: {Anyone: true},
	}
}

// RightTo returns who may call a method.
func RightTo(method string) Right { return table()[method] }

// Methods lists all methods of the table.
func Methods() []string { return slices.Sorted(maps.Keys(table())) }

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
	right, known := table()[method]
	switch {
	case known && right.Anyone:
		return nil
	case who.refusal != "":
		return &wire.Failure{Code: wire.Denied, Reason: who.refusal}
	case who.Kind == access.OfAnyone:
		return &wire.Failure{Code: wire.Denied, Reason: "this peer answers only users and nodes of its cluster: " +
			"ask an admin for `starling user add NAME --role ROLE`, and keep what it prints with `starling login`"}
	case who.IsUser() && right.Role != access.NoRole && (who.Role >= right.Role || right.Pool),
		who.Kind == access.OfNode && right.Node, who.Kind == access.OfInstance && right.Instance:
		return nil
	case who.IsUser() && right.Role != access.NoRole:
		return &wire.Failure{Code: wire.Denied, Reason: fmt.Sprintf("%s may not call %s: it needs the role %s", who.Identity,
			method, right.Role)}
	}
	return &wire.Failure{Code: wire.Denied, Reason: fmt.Sprintf("%s may not call %s", who.Identity, method)}
}
