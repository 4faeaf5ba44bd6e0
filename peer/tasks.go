package peer

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"starling/cluster"
	"starling/driver"
	"starling/replica"
)

// driverChanged tells the core what the driver has.
func (p *Peer) driverChanged() {
	statuses := p.config.Driver.Tasks()
	local := make([]replica.LocalTask, 0, len(statuses))
	for _, status := range statuses {
		id, ok := cluster.ParseAllocationID(status.ID)
		if !ok {
			p.log.Warn("the driver has a task that is no allocation", "id", status.ID)
			continue
		}
		local = append(local, localTask(id, status))
	}
	p.core.DriverHas(local)
}

func localTask(id cluster.AllocationID, status driver.Status) replica.LocalTask {
	task := replica.LocalTask{ID: id}
	if status.State != driver.Exited {
		return task
	}
	task.ExitCode = int32(status.ExitCode)
	task.Detail = status.Error[:min(len(status.Error), cluster.FailureDetailBytesMax)]
	switch {
	case status.OutOfMemory:
		task.Ended = cluster.OutOfMemory
	case status.Signal != 0:
		task.Ended = cluster.BySignal
	case status.Error != "":
		task.Ended = cluster.NotStarted
	default:
		task.Ended = cluster.ByItself
	}
	return task
}

// startsMax bounds the starts under way on one node.
const startsMax = 8

// startTask hands an allocation to the driver, beside the loop.
func (p *Peer) startTask(ctx context.Context, order replica.Order) {
	task := p.taskOf(order)
	p.group.Add(1)
	go func() {
		defer p.group.Done()
		p.starts <- struct{}{}
		defer func() { <-p.starts }()
		refusal := ""
		if err := p.config.Driver.Start(ctx, task); err != nil {
			if ctx.Err() != nil {
				return
			}
			p.log.Error("a task could not be started", "allocation", task.ID, "error", err)
			refusal = err.Error()
		}
		p.post(ctx, func() {
			p.core.DriverStarted(order.ID, refusal)
			p.driverChanged()
		})
	}()
}

// taskOf says in the driver's terms what is to run. The environment tells the task who it is.
func (p *Peer) taskOf(order replica.Order) driver.Task {
	slot := order.ID.Slot
	env := []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"STARLING_JOB=" + string(slot.Job),
		"STARLING_TASK=" + string(slot.Task),
		"STARLING_INDEX=" + strconv.FormatUint(uint64(slot.Index), 10),
		"STARLING_INSTANCES=" + strconv.FormatUint(uint64(order.Instances), 10),
		"STARLING_ALLOCATION=" + order.ID.String(),
		"STARLING_NODE=" + string(p.config.Node),
		"STARLING_API=" + p.config.Offer.Address,
	}
	for _, port := range order.Ports {
		env = append(env, fmt.Sprintf("STARLING_PORT_%s=%d", cluster.VariableName(port.Name), port.Number))
	}
	devices := map[string][]string{}
	for _, d := range order.Devices {
		devices[d.Kind] = append(devices[d.Kind], strconv.FormatUint(uint64(d.Number), 10))
	}
	for _, request := range order.Spec.Devices {
		env = append(env, fmt.Sprintf("STARLING_DEVICES_%s=%s", cluster.VariableName(request.Kind), strings.Join(devices[request.Kind], ",")))
		if request.Share() {
			env = append(env, fmt.Sprintf("STARLING_DEVICE_SHARE_%s=%s", cluster.VariableName(request.Kind), request.Amount))
		}
	}
	for _, e := range order.Spec.Env {
		env = append(env, e.Name+"="+e.Value)
	}
	return driver.Task{
		ID: order.ID.String(), Command: order.Spec.Command, Env: env, WorkDir: order.Spec.WorkDir, User: order.Spec.User,
		Limits: driver.Limits{CPUMillicores: order.Spec.Resources[cluster.CPU], MemoryBytes: order.Spec.Resources[cluster.Memory]},
	}
}
