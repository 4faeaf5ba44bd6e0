package peer

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"starling/cluster/facts"
	"starling/driver"
	"starling/journal"
	"starling/peer/credential"
	"starling/peer/ending"
	"starling/peer/inbox"
	"starling/peer/probe"
	"starling/peer/translate"
	"starling/plugin"
	"starling/replica/reaction"
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
	local := make([]reaction.LocalTask, 0, len(statuses))
	has := make(map[terms.AllocationID]bool, len(statuses))
	for _, status := range statuses {
		id, ok := terms.ParseAllocationID(status.ID)
		if !ok {
			p.log.Warn("the driver has a task that is no allocation", "id", status.ID)
			continue
		}
		task := ending.Of(id, &status)
		p.pace.Saw(id.Slot, status.StartedAt, status.EndedAt)
		has[id] = true
		switch set, makes := made[id]; {
		case task.Ended == facts.NotEnded:
			p.askProber(&task)
			if makes {
				p.outputs.growing = append(p.outputs.growing, set)
			}
		case makes && task.Ended == facts.ByItself && task.ExitCode == 0 && p.sealing(ctx, set):
			task = reaction.LocalTask{ID: id, Files: task.Files}
		}
		local = append(local, task)
	}
	maps.DeleteFunc(p.outputs.sealed, func(id terms.AllocationID, sealed bool) bool { return sealed && !has[id] })
	p.core.DriverHas(local)
	p.core.DriverKeeps(volumes, outputs)
}

// atOnceMax bounds those starts that the driver does at the same time.
const atOnceMax = 8

// startTask hands an allocation to the driver, beside the loop.
func (p *Peer) startTask(ctx context.Context, order reaction.Order) {
	task, pulse := p.taskOf(order), p.provingPulse()
	refusal, ok := p.putFiles(&order, &task), true
	handover, hands := p.handoverOf(order.ID, task.User)
	preparing, cancel := context.WithCancel(ctx)
	if hands || p.prepares(&order) {
		p.outputs.cancel[order.ID] = cancel
	}
	p.group.Go(func() {
		ok = p.pace.Await(preparing, order.ID.Slot, func(why string) { p.wait(ctx, order.ID, why) })
		if ok && hands && refusal == "" {
			refusal, ok = p.handOver(preparing, &task, &handover)
		}
		if ok && refusal == "" && task.Container != nil {
			refusal, ok = p.pull(preparing, order.ID, &task)
		}
		if ok && refusal == "" && p.config.Private != nil {
			ok = p.givePrivate(preparing, &order, &task)
		}
		if ok && refusal == "" {
			refusal, ok = p.handTask(ctx, task, pulse)
		}
		if !ok {
			inbox.Pause(preparing, publishEvery)
		}
		p.pace.Refused(order.ID.Slot, refusal)
		p.post(ctx, func() {
			cancel()
			delete(p.outputs.cancel, order.ID)
			p.core.DriverStarted(order.ID, refusal)
			p.driverChanged(ctx)
		})
	})
}

// givePrivate makes what is a task's alone, and tells why that is not to be had yet; false if it is not.
func (p *Peer) givePrivate(ctx context.Context, order *reaction.Order, task *driver.Task) (ok bool) {
	var err error
	if task.Private, err = p.config.Private(ctx, order.ID, order.Spec); err != nil {
		p.wait(ctx, order.ID, err.Error())
		return false
	}
	p.wait(ctx, order.ID, "")
	return true
}

// prepares tells whether something comes before the start of an instance that takes its time, even without a handover.
func (p *Peer) prepares(order *reaction.Order) bool {
	_, slow := p.pace.Slows(order.ID.Slot)
	return slow != "" || order.Spec.Container.Image != "" || len(order.Spec.IDTokens)+len(order.Spec.Secrets) > 0
}

// wait shows why an instance is not started yet, nothing if that is "".
func (p *Peer) wait(ctx context.Context, id terms.AllocationID, why string) {
	p.post(ctx, func() {
		if p.outputs.waits[id] = why; why == "" {
			delete(p.outputs.waits, id)
		}
	})
}

// handoverOf returns what a task of a workflow that runs as a user hands over; hands is false for others.
func (p *Peer) handoverOf(id terms.AllocationID, user string) (h reaction.Handover, hands bool) {
	h, hands = reaction.HandoverOf(p.core.state, id)
	h.User = user
	for i := range h.Inputs {
		if in := &h.Inputs[i]; !in.Image {
			in.User = p.userOf(in.User, id.Slot.Job)
		}
	}
	return h, hands
}

// pull brings the image of a task here, and has the task be of what the image is now. It returns why that is
// impossible, if so, and false if the task is not wanted any more. It tells how far it is.
func (p *Peer) pull(ctx context.Context, id terms.AllocationID, task *driver.Task) (refusal string, ok bool) {
	image := driver.Image{Name: task.Container.Image, Task: task.ID}
	resolved, err := p.config.Driver.Pull(ctx, image, func(progress string) { p.wait(ctx, id, progress) })
	p.wait(ctx, id, "")
	switch {
	case ctx.Err() != nil:
		return "", false
	case err != nil:
		p.log.Warn("an image cannot be had", "allocation", task.ID, "error", err)
		return ending.Clipped(err.Error()), true
	}
	if resolved != task.Container.Image {
		p.log.Info("an instance is of what its image is now", "allocation", task.ID, "image", task.Container.Image,
			"resolved", resolved)
	}
	task.Container.Image = resolved
	task.Env = append(task.Env, "STARLING_IMAGE="+resolved)
	return "", true
}

// putFiles gives a task the files about its job's members, or returns why it cannot be started.
func (p *Peer) putFiles(order *reaction.Order, task *driver.Task) (refusal string) {
	if order.Members == 0 {
		return ""
	}
	if odd := p.oddSecret(order.Environment.Files); odd != "" {
		return ending.Clipped(odd)
	}
	files, err := translate.Files(&reaction.Renewal{
		ID: order.ID, Job: order.Job, Version: order.Members, Files: order.Environment.Files, User: task.User,
	}, p.config.Secret)
	if err != nil {
		return ending.Clipped(err.Error())
	}
	task.Files = files
	return ""
}

// handTask hands a task to the driver when it is its turn. It returns why the driver does not take it, if so; or false
// if that is to be tried again, because there is no proof that this is still the task's place.
func (p *Peer) handTask(ctx context.Context, task driver.Task, pulse journal.Pulse) (refusal string, ok bool) {
	p.starts <- struct{}{}
	defer func() { <-p.starts }()
	if !p.firstProof(ctx, pulse, &task) {
		p.log.Warn("a task is not started before this peer can prove that it is a member", "allocation", task.ID)
		return "", false
	}
	if ctx.Err() != nil {
		return "", true
	}
	// A start that has begun comes to its end, also when this peer ends: its program may run already, and whoever comes
	// after must find it and not start it again.
	err := p.config.Driver.Start(context.WithoutCancel(ctx), task)
	if err == nil {
		return "", true
	}
	p.log.Error("a task could not be started", "allocation", task.ID, "error", err)
	return ending.Clipped(err.Error()), true
}

// taskOf says in the driver's terms what is to run. The environment tells the task who it is.
func (p *Peer) taskOf(order reaction.Order) driver.Task {
	slot, container := order.ID.Slot, translate.Container(&order.Spec.Container)
	env, user := &driver.Environment{}, order.Spec.User
	if container == nil { // an image has its own
		user = p.userOf(user, slot.Job)
		env.Set("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	}
	env.Set("STARLING_JOB", string(slot.Job))
	env.Set("STARLING_POOL", string(slot.Job.Pool()))
	env.Set("STARLING_TASK", string(slot.Task))
	env.Set("STARLING_INDEX", strconv.FormatUint(uint64(slot.Index), 10))
	env.Set("STARLING_INSTANCES", strconv.FormatUint(uint64(order.Instances), 10))
	env.Set("STARLING_ALLOCATION", order.ID.String())
	env.Set("STARLING_NODE", string(p.config.Node))
	env.Set("STARLING_API", p.config.Offer.Address)
	if p.config.Private != nil {
		private := p.config.Driver.PrivateFolder(order.ID.String())
		env.Set("STARLING_CREDENTIALS", filepath.Join(private, credential.File))
		for _, k := range order.Spec.IDTokens {
			env.Set("STARLING_ID_TOKEN_"+terms.VariableName(k.Name), filepath.Join(private, credential.TokenFile(k.Name)))
		}
	}
	for i := range order.Spec.Secrets {
		s := &order.Spec.Secrets[i]
		path := filepath.Join(p.config.Driver.PrivateFolder(order.ID.String()), credential.SecretFile(s))
		if container != nil && filepath.IsAbs(s.Path) {
			container.Links = append(container.Links, driver.Link{Path: s.Path, Target: path})
			path = s.Path
		}
		env.Set("STARLING_SECRET_"+terms.VariableName(s.Name), path)
	}
	for _, port := range order.Ports {
		env.Set("STARLING_PORT_"+terms.VariableName(port.Name), strconv.Itoa(int(port.Number)))
	}
	devices := map[string][]string{}
	var given []driver.Device
	for _, d := range order.Devices {
		given = append(given, driver.Device{Kind: d.Kind, Number: uint32(d.Number)})
		devices[d.Kind] = append(devices[d.Kind], strconv.FormatUint(uint64(d.Number), 10))
	}
	for _, request := range order.Spec.Devices {
		env.Set("STARLING_DEVICES_"+terms.VariableName(request.Kind), strings.Join(devices[request.Kind], ","))
		if request.Share() {
			env.Set("STARLING_DEVICE_SHARE_"+terms.VariableName(request.Kind), request.Amount.String())
		}
	}
	var volumes []driver.Volume
	for _, v := range order.Spec.Volumes {
		volumes = append(volumes, driver.Volume{
			Set: order.Volumes.String(), Name: v.Name, Variable: "STARLING_VOLUME_" + terms.VariableName(v.Name),
		})
	}
	var hostPaths []driver.HostPath
	for _, h := range order.Spec.HostPaths {
		hostPaths = append(hostPaths, driver.HostPath{Name: h.Name, Path: p.config.HostPaths[h.Name], ReadOnly: h.ReadOnly,
			Variable: "STARLING_HOST_PATH_" + terms.VariableName(h.Name)})
	}
	for _, e := range slices.Concat(order.Environment.Env, order.Spec.Env) { // what a job sets itself wins
		env.Set(e.Name, e.Value)
	}
	return driver.Task{
		ID: order.ID.String(), Volumes: volumes, HostPaths: hostPaths, Proofs: translate.Proofs(order.Spec),
		Command: order.Spec.Command, Env: env.All,
		WorkDir: order.Spec.WorkDir, User: user, Container: container, Devices: given,
		StopSignal: translate.StopSignal(order.Spec),
		Limits:     translate.Limits(order.Spec),
	}
}

// userOf is the account that a process runs as, "" for this peer's own.
func (p *Peer) userOf(named string, job terms.JobName) string {
	if named != "" || !p.config.OwnUsers {
		return named
	}
	return driver.OwnUser(job)
}

// Exec runs a program beside an instance of this node, with the environment, account and folder of that.
func (p *Peer) Exec(ctx context.Context, id terms.AllocationID, command []string,
	s driver.Session) (exitCode int, err error) {
	state, err := p.State(ctx, 0)
	if err != nil {
		return driver.NoExitCode, err
	}
	order, ok := reaction.OrderOf(state, p.Self(), id, p.core.Folder)
	if !ok {
		return driver.NoExitCode, fmt.Errorf("%s is not on node %s", id, p.config.Node)
	}
	task := p.taskOf(order)
	task.Command = command
	return p.config.Driver.Exec(ctx, task, s)
}

// Attach goes on with a session beside an instance of this node.
func (p *Peer) Attach(ctx context.Context, id terms.AllocationID, s driver.Session) (exitCode int, err error) {
	return p.config.Driver.Attach(ctx, id.String(), s)
}

// Sessions lists the sessions beside an instance of this node that can be attached to.
func (p *Peer) Sessions(id terms.AllocationID) []driver.SessionStatus {
	return p.config.Driver.Sessions(id.String())
}

// Usage reads what this machine uses, and these of its instances.
func (p *Peer) Usage(ids []string) (driver.Usage, error) { return p.config.Driver.Usage(ids) }

// GPUs reads what is used of this machine's GPUs.
func (p *Peer) GPUs(ctx context.Context) []driver.GPUUse { return p.config.Driver.GPUs(ctx) }

// oddSecret tells why this node would write keys that open nothing on other nodes, "" if it has none to write or all
// is well.
func (p *Peer) oddSecret(files []plugin.File) string {
	if p.config.Secret == nil || !slices.ContainsFunc(files, func(f plugin.File) bool { return f.Key != plugin.NoKey }) {
		return ""
	}
	return p.config.Secret.Odd(p.core.state, p.config.Node)
}

// renew has the driver replace files beside the loop, all of these before it begins with others.
func (p *Peer) renew(ctx context.Context, all []reaction.Renewal) {
	if len(all) == 0 {
		return
	}
	p.core.Renewing = true
	p.group.Go(func() {
		for _, one := range all {
			one.User = p.userOf(one.User, one.ID.Slot.Job)
			files, err := translate.Files(&one, p.config.Secret)
			if err == nil {
				err = p.config.Driver.Renew(one.ID.String(), *files, credential.Signals[one.Signal])
			}
			if err != nil {
				p.log.Error("files could not be renewed; trying again", "allocation", one.ID.String(), "version", one.Version,
					"error", err)
				inbox.Pause(ctx, publishEvery)
			}
		}
		p.post(ctx, func() {
			p.core.Renewing = false
			p.driverChanged(ctx)
		})
	})
}

// checked are the instances that are asked whether they are well. The prober's goroutines look up tasks in it.
type checked struct {
	prober *probe.Prober
	// news says that the prober has some.
	news chan struct{}
	lock sync.Mutex
	// tasks are those that are asked, as they were started.
	tasks map[terms.AllocationID]driver.Task
}

// startProber makes what asks instances whether they are well, until ctx ends.
func (p *Peer) startProber(ctx context.Context) {
	c := &p.checked
	c.news, c.tasks = make(chan struct{}, 1), map[terms.AllocationID]driver.Task{}
	c.prober = probe.New(ctx, probe.Config{
		Run: func(ctx context.Context, id terms.AllocationID, command []string) error {
			task, ok := c.task(id)
			if !ok {
				return fmt.Errorf("%s is not asked any more", id)
			}
			task.Command = command
			return driver.Run(ctx, p.config.Driver, task)
		},
		Failed: p.config.Meter.CheckFailed,
		Changed: func(terms.AllocationID) {
			select {
			case c.news <- struct{}{}:
			default:
			}
		},
	})
}

func (c *checked) task(id terms.AllocationID) (driver.Task, bool) {
	c.lock.Lock()
	defer c.lock.Unlock()
	task, ok := c.tasks[id]
	return task, ok
}

// probe asks the instances of the list from now on, and no others.
func (p *Peer) probe(all []reaction.Order) {
	c := &p.checked
	c.lock.Lock()
	defer c.lock.Unlock()
	listed := make(map[terms.AllocationID]bool, len(all))
	for i := range all {
		listed[all[i].ID] = true
		if _, known := c.tasks[all[i].ID]; !known {
			c.tasks[all[i].ID] = p.taskOf(all[i])
			c.prober.Watch(all[i].ID, all[i].Spec.Checks, all[i].Ports)
		}
	}
	for id := range c.tasks {
		if !listed[id] {
			c.prober.Forget(id)
			delete(c.tasks, id)
		}
	}
}

// askProber completes what the driver knows of a task that runs.
func (p *Peer) askProber(task *reaction.LocalTask) {
	state := p.checked.prober.State(task.ID)
	task.Ready, task.Unready = state.Ready, state.Unready
	if state.Failure != "" {
		p.core.CheckFailed(task.ID, state.Failure)
	}
}
