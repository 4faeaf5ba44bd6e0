package peer

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"starling/cluster/facts"
	"starling/driver"
	"starling/journal"
	"starling/replica"
	"starling/terms"
)

// driverChanged tells the core what the driver has.
func (p *Peer) driverChanged(ctx context.Context) {
	volumes, outputs := p.sets()
	made := make(map[terms.AllocationID]terms.OutputSet, len(outputs))
	for _, set := range outputs {
		made[set.Allocation] = set
	}
	statuses := p.config.Driver.Tasks()
	p.outputs.growing = nil
	local := make([]replica.LocalTask, 0, len(statuses))
	has := make(map[terms.AllocationID]bool, len(statuses))
	for _, status := range statuses {
		id, ok := terms.ParseAllocationID(status.ID)
		if !ok {
			p.log.Warn("the driver has a task that is no allocation", "id", status.ID)
			continue
		}
		task := localTask(id, status)
		has[id] = true
		switch set, makes := made[id]; {
		case task.Ended == facts.NotEnded:
			p.askProber(&task)
			if makes {
				p.outputs.growing = append(p.outputs.growing, set)
			}
		case makes && task.Ended == facts.ByItself && task.ExitCode == 0 && p.sealing(ctx, set):
			task = replica.LocalTask{ID: id, Files: task.Files}
		}
		local = append(local, task)
	}
	maps.DeleteFunc(p.outputs.sealed, func(id terms.AllocationID, sealed bool) bool { return sealed && !has[id] })
	p.core.DriverHas(local)
	p.core.DriverKeeps(volumes, outputs)
}

func localTask(id terms.AllocationID, status driver.Status) replica.LocalTask {
	task := replica.LocalTask{ID: id, Files: terms.Index(status.FilesVersion)}
	if status.State != driver.Exited {
		return task
	}
	task.ExitCode = int32(status.ExitCode)
	task.Detail = status.Error[:min(len(status.Error), facts.FailureDetailBytesMax)]
	switch {
	case status.Unproved:
		task.Ended, task.Detail = facts.NodeLost,
			"it was stopped because its node could not prove in time that it is still a member"
	case status.OutOfMemory:
		task.Ended = facts.OutOfMemory
	case status.Signal != 0:
		task.Ended = facts.BySignal
	case status.Error != "":
		task.Ended = facts.NotStarted
	default:
		task.Ended = facts.ByItself
	}
	return task
}

// startsMax bounds the starts under way on one node.
const startsMax = 8

// startTask hands an allocation to the driver, beside the loop.
func (p *Peer) startTask(ctx context.Context, order replica.Order) {
	task, vouching := p.taskOf(order), p.vouching()
	refusal, ok := p.putFiles(&order, &task), true
	handover, hands := replica.HandoverOf(p.core.state, order.ID)
	preparing, cancel := context.WithCancel(ctx)
	if hands {
		p.outputs.cancel[order.ID] = cancel
	}
	p.group.Add(1)
	go func() {
		defer p.group.Done()
		if hands && refusal == "" {
			refusal, ok = p.handOver(preparing, &task, &handover)
		}
		if ok && refusal == "" {
			refusal, ok = p.handTask(ctx, task, vouching)
		}
		if !ok {
			pause(preparing, publishEvery)
		}
		p.post(ctx, func() {
			cancel()
			delete(p.outputs.cancel, order.ID)
			p.core.DriverStarted(order.ID, refusal)
			p.driverChanged(ctx)
		})
	}()
}

// putFiles gives a task the files about its job's members, or returns why it cannot be started.
func (p *Peer) putFiles(order *replica.Order, task *driver.Task) (refusal string) {
	if order.Members == 0 {
		return ""
	}
	if odd := p.oddSecret(order.Outfit.Files); odd != "" {
		return clipped(odd)
	}
	files, err := p.fileSet(&replica.Renewal{
		ID: order.ID, Job: order.Volumes.Job, Version: order.Members, Files: order.Outfit.Files, User: order.Spec.User,
	})
	if err != nil {
		return clipped(err.Error())
	}
	task.Files = files
	return ""
}

// handTask hands a task to the driver when it is its turn. It returns why the driver does not take it, if so; or false
// if that is to be tried again, because there is no proof that this is still the task's place.
func (p *Peer) handTask(ctx context.Context, task driver.Task, vouching journal.Pulse) (refusal string, ok bool) {
	p.starts <- struct{}{}
	defer func() { <-p.starts }()
	if !p.firstProof(ctx, vouching, &task) {
		p.log.Warn("a task is not started before this peer can prove that it is a member", "allocation", task.ID)
		return "", false
	}
	err := p.config.Driver.Start(ctx, task)
	if err == nil || ctx.Err() != nil {
		return "", true
	}
	p.log.Error("a task could not be started", "allocation", task.ID, "error", err)
	return err.Error(), true
}

// taskOf says in the driver's terms what is to run. The environment tells the task who it is.
func (p *Peer) taskOf(order replica.Order) driver.Task {
	slot := order.ID.Slot
	env := &environment{}
	env.set("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	env.set("STARLING_JOB", string(slot.Job))
	env.set("STARLING_POOL", string(slot.Job.Pool()))
	env.set("STARLING_TASK", string(slot.Task))
	env.set("STARLING_INDEX", strconv.FormatUint(uint64(slot.Index), 10))
	env.set("STARLING_INSTANCES", strconv.FormatUint(uint64(order.Instances), 10))
	env.set("STARLING_ALLOCATION", order.ID.String())
	env.set("STARLING_NODE", string(p.config.Node))
	env.set("STARLING_API", p.config.Offer.Address)
	for _, port := range order.Ports {
		env.set("STARLING_PORT_"+terms.VariableName(port.Name), strconv.Itoa(int(port.Number)))
	}
	devices := map[string][]string{}
	for _, d := range order.Devices {
		devices[d.Kind] = append(devices[d.Kind], strconv.FormatUint(uint64(d.Number), 10))
	}
	for _, request := range order.Spec.Devices {
		env.set("STARLING_DEVICES_"+terms.VariableName(request.Kind), strings.Join(devices[request.Kind], ","))
		if request.Share() {
			env.set("STARLING_DEVICE_SHARE_"+terms.VariableName(request.Kind), request.Amount.String())
		}
	}
	var volumes []driver.Volume
	for _, v := range order.Spec.Volumes {
		volumes = append(volumes, driver.Volume{
			Set: order.Volumes.String(), Name: v.Name, Variable: "STARLING_VOLUME_" + terms.VariableName(v.Name),
		})
	}
	for _, e := range slices.Concat(order.Outfit.Env, order.Spec.Env) { // what a job sets itself wins
		env.set(e.Name, e.Value)
	}
	return driver.Task{
		ID: order.ID.String(), Volumes: volumes, Proofs: proofsOf(&order), Command: order.Spec.Command, Env: env.all,
		WorkDir: order.Spec.WorkDir, User: order.Spec.User,
		Limits: driver.Limits{CPUMillicores: order.Spec.Resources[terms.CPU],
			MemoryBytes: order.Spec.Resources[terms.Memory]},
	}
}
