package door

import (
	"context"
	"fmt"
	"maps"
	"net/http"
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
	// Pool takes a role that is given in the pool, or in that of the job, which the request is about for one in the whole
	// cluster.
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
	PathBlob      = "/v1/blob"
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

// group is a list of methods that the same callers may call.
type group struct {
	Right
	methods []string
}

// table is the one list of methods and of who may call them. What is not in it nobody may.
var table = func() map[string]Right {
	all := map[string]Right{}
	for _, g := range slices.Concat(reading, changing, belonging) {
		for _, method := range g.methods {
			all[method] = g.Right
		}
	}
	return all
}()

// reading changes nothing.
var reading = []group{
	{Right{Role: access.Viewer}, []string{
		starlingv1connect.StarlingDiffProcedure,
		starlingv1connect.StarlingListPeersProcedure,
		starlingv1connect.StarlingSeriesProcedure,
		starlingv1connect.StarlingTailJournalProcedure,
		starlingv1connect.StarlingUsageProcedure,
		starlingv1connect.StarlingWhatIfProcedure,
		PathAuthorities, PathJournal, PathMetrics,
	}},
	{Right{Role: access.Viewer, Node: true}, []string{
		starlingv1connect.StarlingNodeStatsProcedure,
		starlingv1connect.StarlingQuorumProcedure,
		starlingv1connect.StarlingRulesProcedure,
	}},
	{Right{Role: access.Viewer, Pool: true}, []string{
		starlingv1connect.StarlingBlameProcedure,
		starlingv1connect.StarlingJobDiffProcedure,
		starlingv1connect.StarlingJobHistoryProcedure,
		starlingv1connect.StarlingListJobsProcedure,
		starlingv1connect.StarlingListPoolsProcedure,
		starlingv1connect.StarlingListSecretsProcedure,
		starlingv1connect.StarlingListVolumesProcedure,
		starlingv1connect.StarlingPlanJobProcedure,
		starlingv1connect.StarlingPlanPoolsProcedure,
		starlingv1connect.StarlingPoolStatusProcedure,
		starlingv1connect.StarlingWatchProcedure,
		starlingv1connect.StarlingWhyProcedure,
		PathCan, PathEndpoints, PathEvents, PathLogs, PathWhoAmI,
	}},
	{Right{Role: access.Viewer, Pool: true, Node: true}, []string{
		starlingv1connect.StarlingInfoProcedure,
		starlingv1connect.StarlingInstanceStatsProcedure,
		starlingv1connect.StarlingLogsProcedure,
		starlingv1connect.StarlingVolumeStatsProcedure,
	}},
	{Right{Role: access.Viewer, Pool: true, Instance: true}, []string{
		starlingv1connect.StarlingJobStatusProcedure,
	}},
	{Right{Role: access.Viewer, Pool: true, Node: true, Instance: true}, []string{
		starlingv1connect.StarlingOutputProcedure,
	}},
	{Right{Role: access.Admin}, []string{
		starlingv1connect.StarlingExportProcedure,
		PathTokens, PathUsers,
	}},
}

// changing changes jobs, machines or the cluster, or reads what instances have.
var changing = []group{
	{Right{Role: access.Submitter, Pool: true}, []string{
		starlingv1connect.StarlingKillJobProcedure,
		starlingv1connect.StarlingPutSecretProcedure,
		starlingv1connect.StarlingRemoveSecretProcedure,
		starlingv1connect.StarlingRestartJobProcedure,
		starlingv1connect.StarlingRevertJobProcedure,
		starlingv1connect.StarlingSteerUpdateProcedure,
		starlingv1connect.StarlingSubmitJobProcedure,
		starlingv1connect.StarlingSuspendJobProcedure,
	}},
	{Right{Role: access.Submitter, Pool: true, Instance: true}, []string{
		starlingv1connect.StarlingSealTaskProcedure,
	}},
	{Right{Role: access.Operator, Pool: true}, []string{
		starlingv1connect.StarlingEndAllocationProcedure,
		starlingv1connect.StarlingRemoveVolumesProcedure,
	}},
	{Right{Role: access.Operator, Pool: true, Node: true}, []string{
		starlingv1connect.StarlingExecProcedure,
		starlingv1connect.StarlingListSessionsProcedure,
		starlingv1connect.StarlingFilesProcedure,
		starlingv1connect.StarlingReadVolumesProcedure,
		starlingv1connect.StarlingRelocateVolumesProcedure,
	}},
	{Right{Role: access.Operator}, []string{
		starlingv1connect.StarlingDrainNodeProcedure,
	}},
	{Right{Role: access.Admin, Pool: true}, []string{
		starlingv1connect.StarlingChangePoolsProcedure,
	}},
	{Right{Role: access.Admin}, []string{
		starlingv1connect.StarlingChangeQuorumProcedure,
		starlingv1connect.StarlingRaiseRulesProcedure,
		PathRemoveAuthority, PathRemoveNode, PathRemoveToken, PathRemoveUser, PathRotate, PathToken, PathUser,
	}},
}

// belonging is for those who are to become known, for what nodes and outsiders ask keepers, and nodes each other.
var belonging = []group{
	{Right{Node: true}, []string{PathAuthorityKey, PathBlob, PathIDTokens, PathPin, PathSeal}},
	{Right{Anyone: true}, []string{
		PathDiscovery, PathHealth, PathJWKS, PathJoin, PathOpenAPI, PathReady, PathRenew, PathSignIn, PathSignedIn,
	}},
}

// RightTo returns who may call a method.
func RightTo(method string) Right { return table[method] }

// Methods lists all methods of the table.
func Methods() []string { return slices.Sorted(maps.Keys(table)) }

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
	right, known := table[method]
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
		return &wire.Failure{Code: wire.Denied, Reason: fmt.Sprintf("%s may not call %s: it needs the role %s in the whole cluster",
			who.Identity, method, right.Role)}
	}
	return &wire.Failure{Code: wire.Denied, Reason: fmt.Sprintf("%s may not call %s", who.Identity, method)}
}

// WithRight refuses what those may not call who show no credentials, before any of it is read.
func WithRight(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := Check(r.Context(), r.URL.Path)
		if err != nil && CallerOf(r.Context()).Kind == access.OfAnyone && table[r.URL.Path] != (Right{}) {
			WriteFailure(w, http.StatusForbidden, refusal(err))
			return
		}
		next.ServeHTTP(w, r)
	})
}
