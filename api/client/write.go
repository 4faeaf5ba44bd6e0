package client

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	starlingv1 "starling/api/v1"
	"starling/api/v1/starlingv1connect"
	"starling/api/wire"
	"starling/command"
	"starling/terms"
	"starling/terms/rules"
)

// SubmitJob brings a job, or a new version of it, and returns when it is folded. It is refused if the job has another
// version than against; 0 is no job, or one that has ended.
func (c *Client) SubmitJob(ctx context.Context, spec *terms.Job,
	against uint32) (*starlingv1.SubmitJobResponse, error) {
	request := &starlingv1.SubmitJobRequest{RequestId: c.requestID("SubmitJob", string(spec.Name)),
		Spec: wire.Spec(spec), Against: against}
	return write(ctx, c, request, starlingv1connect.StarlingClient.SubmitJob)
}

// KillJob ends a job for good, and returns when that is folded; its instances end after. It is refused if the job has
// another version than against; 0 is any. Now kills them without delay and grace.
func (c *Client) KillJob(ctx context.Context, job terms.JobName, against uint32,
	now bool) (*starlingv1.KillJobResponse, error) {
	if now {
		if err := c.needs(ctx, "--now", rules.EndNow); err != nil {
			return nil, err
		}
	}
	request := &starlingv1.KillJobRequest{RequestId: c.requestID("KillJob", string(job), strconv.FormatBool(now)),
		Job: string(job), Against: against, Now: now}
	return write(ctx, c, request, starlingv1connect.StarlingClient.KillJob)
}

// SteerUpdate steers the update of a job to a version.
func (c *Client) SteerUpdate(
	ctx context.Context, job terms.JobName, version uint32, steering command.Steering,
) (*starlingv1.SteerUpdateResponse, error) {
	request := &starlingv1.SteerUpdateRequest{RequestId: c.requestID("SteerUpdate", string(job), steering.String()),
		Job: string(job), Version: version,
		Steering: steering.String()}
	return write(ctx, c, request, starlingv1connect.StarlingClient.SteerUpdate)
}

// RevertJob makes a copy of version to the newest. It is refused if the job has another version than against.
func (c *Client) RevertJob(ctx context.Context, job terms.JobName, against,
	to uint32) (*starlingv1.RevertJobResponse, error) {
	request := &starlingv1.RevertJobRequest{RequestId: c.requestID("RevertJob", string(job)),
		Job: string(job), Against: against, To: to}
	return write(ctx, c, request, starlingv1connect.StarlingClient.RevertJob)
}

// SuspendJob lets nothing of a job run for now, or lets it run again. It is refused if the job has another version by
// now.
func (c *Client) SuspendJob(ctx context.Context, job terms.JobName, against uint32,
	resume bool) (*starlingv1.SuspendJobResponse, error) {
	request := &starlingv1.SuspendJobRequest{RequestId: c.requestID("SuspendJob", string(job), strconv.FormatBool(resume)),
		Job: string(job), Against: against, Resume: resume}
	return write(ctx, c, request, starlingv1connect.StarlingClient.SuspendJob)
}

// RestartJob replaces the instances of a job, or of one task if that is not empty. It is refused if the job has another
// version than against.
func (c *Client) RestartJob(
	ctx context.Context, job terms.JobName, task terms.TaskName, against uint32,
) (*starlingv1.RestartJobResponse, error) {
	request := &starlingv1.RestartJobRequest{RequestId: c.requestID("RestartJob", string(job), string(task)),
		Job: string(job), Task: string(task),
		Against: against}
	return write(ctx, c, request, starlingv1connect.StarlingClient.RestartJob)
}

// SealTask lets no more instances of an allocation's task begin. It is refused if another was first.
func (c *Client) SealTask(ctx context.Context, allocation string) (*starlingv1.SealTaskResponse, error) {
	request := &starlingv1.SealTaskRequest{RequestId: c.requestID("SealTask", allocation),
		Allocation: allocation}
	return write(ctx, c, request, starlingv1connect.StarlingClient.SealTask)
}

// EndAllocation ends an allocation, and its place is filled again, as the request says. That needs no id.
func (c *Client) EndAllocation(ctx context.Context,
	request *starlingv1.EndAllocationRequest) (*starlingv1.EndAllocationResponse, error) {
	if request.GetNow() {
		if err := c.needs(ctx, "--now", rules.EndNow); err != nil {
			return nil, err
		}
	}
	request.RequestId = c.requestID("EndAllocation", request.GetAllocation(), strconv.FormatBool(request.GetElsewhere()),
		strconv.FormatBool(request.GetNow()))
	return write(ctx, c, request, starlingv1connect.StarlingClient.EndAllocation)
}

// RemoveVolumes deletes what volumes hold. It is refused if an instance has them, or is to.
func (c *Client) RemoveVolumes(ctx context.Context, volumes string) (*starlingv1.RemoveVolumesResponse, error) {
	request := &starlingv1.RemoveVolumesRequest{RequestId: c.requestID("RemoveVolumes", volumes), Volumes: volumes}
	return write(ctx, c, request, starlingv1connect.StarlingClient.RemoveVolumes)
}

// RelocateVolumes copies volumes that no instance has to another node, which has them from then on, and visits what is
// told of that. The request needs no id.
func (c *Client) RelocateVolumes(ctx context.Context, request *starlingv1.RelocateVolumesRequest,
	visit func(*starlingv1.RelocateVolumesResponse) error) error {
	request.MinIndex = c.least(request.GetMinIndex())
	request.RequestId = c.requestID("RelocateVolumes", request.GetVolumes(), request.GetNode())
	return stream(ctx, c, streamCall[starlingv1.RelocateVolumesRequest, starlingv1.RelocateVolumesResponse]{
		request: request, method: starlingv1connect.StarlingClient.RelocateVolumes, visit: visit})
}

// PutSecret keeps a secret of a pool, or its next version.
func (c *Client) PutSecret(ctx context.Context, pool, name string,
	value []byte) (*starlingv1.PutSecretResponse, error) {
	request := &starlingv1.PutSecretRequest{RequestId: c.requestID("PutSecret", pool, name), Pool: pool, Name: name,
		Value: value}
	return write(ctx, c, request, starlingv1connect.StarlingClient.PutSecret)
}

// PutSecretAgain keeps what a version of a secret holds as its next version.
func (c *Client) PutSecretAgain(ctx context.Context, pool, name string,
	version uint32) (*starlingv1.PutSecretResponse, error) {
	request := &starlingv1.PutSecretRequest{RequestId: c.requestID("PutSecret", pool, name), Pool: pool, Name: name,
		FromVersion: version}
	return write(ctx, c, request, starlingv1connect.StarlingClient.PutSecret)
}

// RemoveSecret ends a version of a secret of a pool, 0 for all that it has.
func (c *Client) RemoveSecret(ctx context.Context, pool, name string,
	version uint32) (*starlingv1.RemoveSecretResponse, error) {
	request := &starlingv1.RemoveSecretRequest{RequestId: c.requestID("RemoveSecret", pool, name), Pool: pool, Name: name,
		Version: version}
	return write(ctx, c, request, starlingv1connect.StarlingClient.RemoveSecret)
}

// ChangeQuorum adds a node to those that keep the journal, promotes one, or removes one.
func (c *Client) ChangeQuorum(ctx context.Context, action, node string) (*starlingv1.ChangeQuorumResponse, error) {
	return unary(ctx, c, &starlingv1.ChangeQuorumRequest{Action: action, Node: node},
		starlingv1connect.StarlingClient.ChangeQuorum)
}

// RaiseRules raises the rules to the version, which is the one after that in force, and returns when that is folded.
func (c *Client) RaiseRules(ctx context.Context, version rules.Number) (*starlingv1.RaiseRulesResponse, error) {
	return unary(ctx, c, &starlingv1.RaiseRulesRequest{Version: uint32(version)},
		starlingv1connect.StarlingClient.RaiseRules)
}

// DrainDeadlineMax bounds the deadline of a drain.
const DrainDeadlineMax = math.MaxUint32 * time.Millisecond

// DrainNode moves what runs on a node to others; what still runs there after the deadline is stopped. A deadline that
// is not 0 to DrainDeadlineMax is an error.
func (c *Client) DrainNode(ctx context.Context, node terms.NodeName,
	deadline time.Duration) (*starlingv1.DrainNodeResponse, error) {
	if deadline < 0 || deadline > DrainDeadlineMax {
		return nil, fmt.Errorf("the deadline of a drain must be 0s to %v, is %v", DrainDeadlineMax, deadline)
	}
	request := &starlingv1.DrainNodeRequest{
		RequestId: c.requestID("DrainNode", string(node)),
		Node:      string(node), Drain: true, DeadlineMillis: uint32(deadline.Milliseconds()),
	}
	return write(ctx, c, request, starlingv1connect.StarlingClient.DrainNode)
}

// EndDrain gives work to a node again.
func (c *Client) EndDrain(ctx context.Context, node terms.NodeName) (*starlingv1.DrainNodeResponse, error) {
	request := &starlingv1.DrainNodeRequest{RequestId: c.requestID("EndDrain", string(node)),
		Node: string(node)}
	return write(ctx, c, request, starlingv1connect.StarlingClient.DrainNode)
}

// ChangePools creates and changes pools, and deletes those that are gone, all at once. It is refused if the tree has
// another version than against; 0 is any.
func (c *Client) ChangePools(
	ctx context.Context, against uint32, pools []terms.Pool, gone []terms.PoolPath,
) (*starlingv1.ChangePoolsResponse, error) {
	request := &starlingv1.ChangePoolsRequest{RequestId: c.requestID("ChangePools"),
		Against: against, Pools: wire.Pools(pools),
		Gone: texts(gone)}
	return write(ctx, c, request, starlingv1connect.StarlingClient.ChangePools)
}

func texts(paths []terms.PoolPath) []string {
	all := make([]string, len(paths))
	for i, path := range paths {
		all[i] = string(path)
	}
	return all
}
