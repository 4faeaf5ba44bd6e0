package validate

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	"starling/terms"
	"starling/terms/constraint"
)

func (p *problems) task(t *terms.Task) {
	p.name("name", string(t.Name))
	p.bounded("instances", int64(t.Instances), 0, terms.InstancesMax)
	if len(t.Command) == 0 && t.Container.Image == "" || len(t.Command) > 0 && t.Command[0] == "" {
		p.add("command", "must name a program")
	}
	p.container(t)
	if len(t.Command) > terms.ArgumentsMax || len(t.Env) > terms.ArgumentsMax {
		p.add("command", "command and env must have at most %d elements each", terms.ArgumentsMax)
		return
	}
	for i, argument := range t.Command {
		p.text("command["+strconv.Itoa(i)+"]", argument)
	}
	p.environment(t)
	p.text("work_dir", t.WorkDir)
	if t.WorkDir != "" && t.WorkDir[0] != '/' {
		p.add("work_dir", "must be an absolute path, or absent for a folder of the instance's own")
	}
	p.text("user", t.User)
	p.within("resources.cpu", t.Resources[terms.CPU], limits{0, terms.CPUMillicoresMax, terms.CPU.Text})
	p.within("resources.memory", t.Resources[terms.Memory], limits{0, terms.BytesMax, terms.Memory.Text})
	p.within("resources.disk", t.Resources[terms.Disk], limits{0, terms.BytesMax, terms.Disk.Text})
	p.devicesAndPorts(t)
	p.rules(t)
	if t.Placement < terms.Pack || t.Placement > terms.Defragment {
		p.add("placement", `must be "pack", "spread" or "defragment"`)
	}
	p.millis("restart.delay", int64(t.Restart.DelayMillis), 0, terms.DelayMillisMax)
	p.millis("restart.delay_max", int64(t.Restart.DelayMaxMillis),
		int64(min(t.Restart.DelayMillis, terms.DelayMillisMax)), terms.DelayMillisMax)
	p.millis("restart.reset_after", int64(t.Restart.ResetMillis), 0, terms.DelayMillisMax)
	p.idTokens(t)
	p.secrets(t)
	p.bounded("pids_limit", int64(t.ProcessesMax), 0, terms.TaskProcessesMax)
	p.within("disk_limit", t.DiskBytesMax, limits{0, terms.BytesMax, terms.Disk.Text})
	if t.StopSignal > terms.StopWindowChange {
		p.add("stop_signal", "must be one of %q", terms.StopSignals())
	}
	p.millis("stop_delay", int64(t.StopDelayMillis), 0, terms.GraceMillisMax)
	p.millis("stop_grace", int64(t.StopGraceMillis), 0, terms.GraceMillisMax)
}

func (p *problems) environment(t *terms.Task) {
	for i, e := range t.Env {
		field := "env." + e.Name
		p.text(field, e.Value)
		for k := range len(e.Name) {
			c := e.Name[k]
			letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_'
			if !letter && (k == 0 || c < '0' || c > '9') {
				p.add(field, `is not a name of a variable: use letters, digits and "_"`)
				break
			}
		}
		switch {
		case e.Name == "" || len(e.Name) > terms.NameBytesMax*4:
			p.add("env", "the name of a variable must have 1 to %d bytes", terms.NameBytesMax*4)
		case len(e.Name) >= len("STARLING_") && e.Name[:len("STARLING_")] == "STARLING_":
			p.add(field, "is reserved: Starling sets the variables that begin with STARLING_")
		case i > 0 && t.Env[i-1].Name >= e.Name:
			p.add(field, "must be ordered by name, each name once")
		}
	}
}

func (p *problems) devicesAndPorts(t *terms.Task) {
	if max(len(t.Ports), len(t.Devices)) > terms.RequestsPerTaskMax {
		p.add("ports", "ports and devices must have at most %d elements each", terms.RequestsPerTaskMax)
		return
	}
	for i := range t.Devices {
		d := &t.Devices[i]
		field := "devices." + d.Kind
		if reason := terms.NameProblem(d.Kind, false); reason != "" {
			p.add(field, "the kind %s", reason)
		}
		p.device(d, field)
		if i > 0 && t.Devices[i-1].Kind >= d.Kind {
			p.add(field, "must be ordered by kind, each kind once")
		}
		for k := range i {
			if terms.VariableName(t.Devices[k].Kind) == terms.VariableName(d.Kind) {
				p.add(field, "would set the same variable STARLING_DEVICES_%s as %s", terms.VariableName(d.Kind), t.Devices[k].Kind)
			}
		}
	}
	for i, port := range t.Ports {
		field := "ports[" + strconv.Itoa(i) + "]"
		p.name(field+".name", port.Name)
		for k := range i {
			if terms.VariableName(t.Ports[k].Name) == terms.VariableName(port.Name) {
				p.add(field+".name", "would set the same variable STARLING_PORT_%s as ports[%d]", terms.VariableName(port.Name), k)
			}
			if port.Number != 0 && t.Ports[k].Number == port.Number {
				p.add(field+".number", "is also the number of ports[%d]", k)
			}
		}
	}
}

func (p *problems) device(q *terms.DeviceRequest, field string) {
	if q.Amount == 0 || !q.Share() && q.Amount%terms.WholeDevice != 0 || q.Amount > terms.DevicesMax*terms.WholeDevice {
		p.add(field, "must be a share of one device, 0.001 to 0.999, or 1 to %d whole devices", terms.DevicesMax)
	}
	if len(q.Models) > terms.RequestsPerTaskMax {
		p.add(field+".models", "must have at most %d elements", terms.RequestsPerTaskMax)
	}
	for i, model := range q.Models {
		at := field + ".models[" + strconv.Itoa(i) + "]"
		p.name(at, model)
		if slices.Contains(q.Models[:i], model) {
			p.add(at, "is there twice")
		}
	}
}

func (p *problems) rules(t *terms.Task) {
	leaves := 0
	for i := range t.Constraints {
		t.Constraints[i].Problems("constraints["+strconv.Itoa(i)+"]", p.add)
		t.Constraints[i].EachLeaf(func(*constraint.Constraint) { leaves++ })
	}
	if leaves > terms.RequestsPerTaskMax {
		p.add("constraints", "must have at most %d elements with all that is within them, have %d", terms.RequestsPerTaskMax,
			leaves)
	}
	p.labels(t)
	p.text("spread_over", t.SpreadOver)
	if len(t.SpreadOver) > constraint.NameBytesMax {
		p.add("spread_over", "must have at most %d bytes", constraint.NameBytesMax)
	}
}

func (p *problems) labels(t *terms.Task) {
	if len(t.Labels) > terms.RequestsPerTaskMax {
		p.add("labels", "must have at most %d elements", terms.RequestsPerTaskMax)
		return
	}
	for i, l := range t.Labels {
		field := "labels." + l.Name
		p.text(field, l.Name+l.Value)
		switch {
		case l.Name == "" || len(l.Name) > constraint.NameBytesMax || len(l.Value) > terms.AttributeBytesMax:
			p.add(field, "must have a name of 1 to %d bytes and a value of at most %d", constraint.NameBytesMax,
				terms.AttributeBytesMax)
		case i > 0 && t.Labels[i-1].Name >= l.Name:
			p.add(field, "must be ordered by name, each name once")
		}
	}
}

func (p *problems) policies(t *terms.Task, kind terms.JobType) {
	r := &t.Reschedule
	p.millis("reschedule.delay", int64(r.DelayMillis), 0, terms.DelayMillisMax)
	p.millis("reschedule.delay_max", int64(r.DelayMaxMillis),
		int64(min(r.DelayMillis, terms.DelayMillisMax)), terms.DelayMillisMax)
	p.millis("reschedule.interval", int64(r.IntervalMillis), 0, 7*terms.DelayMillisMax)
	if r.AttemptsMax != 0 && r.AttemptsMax != terms.RestartsUnlimited && r.IntervalMillis == 0 {
		p.add("reschedule.interval", "must say within which time the attempts are counted")
	}
	if kind == terms.Daemon && r.AttemptsMax != 0 {
		p.add("reschedule.attempts", "must be 0 in a daemon job: its instances belong to their machines")
	}
	if r.Growth > terms.Fibonacci {
		p.add("reschedule.growth", "must be one of %q", terms.Growths())
	}
	d := &t.Disconnect
	p.millis("disconnect.lost_after", int64(d.LostAfterMillis), 0, 7*terms.DelayMillisMax)
	p.millis("disconnect.stop_after", int64(d.StopAfterMillis), 0, terms.DelayMillisMax)
	if d.StopAfterMillis != 0 && d.LostAfterMillis != 0 {
		p.add("disconnect.stop_after", "excludes lost_after: an instance that stops by itself cannot be found again")
	}
	if kind == terms.Stateful && d.StopAfterMillis == 0 {
		p.add("disconnect.stop_after",
			"must be above 0 in a stateful job: an instance that is cut off must stop by itself before another may start")
	}
	if d.Keep > terms.KeepLongest {
		p.add("disconnect.keep", "must be one of %q", terms.Survivors())
	}
	p.checks(t)
	if kind == terms.Batch && t.AsksReadiness() {
		p.add("checks", "on_failure unready needs a service: nobody looks for the instances of a batch job")
	}
	p.volumes(t, kind)
	p.hostPaths(t)
}

func (p *problems) volumes(t *terms.Task, kind terms.JobType) {
	if len(t.Volumes) > terms.VolumesMax {
		p.add("volumes", "must have at most %d elements, has %d", terms.VolumesMax, len(t.Volumes))
		return
	}
	if len(t.Volumes) > 0 && kind != terms.Stateful {
		p.add("volumes", "need a stateful job: a volume belongs to one instance at a time")
	}
	p.millis("keep_volumes", t.KeepVolumesMillis, 0, terms.KeepVolumesMillisMax)
	if keep := t.KeepVolumesMillis; len(t.Volumes) == 0 && 0 < keep && keep <= terms.KeepVolumesMillisMax {
		p.add("keep_volumes", "needs volumes")
	}
	p.within("volumes_limit", t.VolumesBytesMax, limits{0, terms.BytesMax, terms.Disk.Text})
	if limit := t.VolumesBytesMax; len(t.Volumes) == 0 && 0 < limit && limit <= terms.BytesMax {
		p.add("volumes_limit", "needs volumes")
	}
	for i := range t.Volumes {
		named(p, "volumes", t.Volumes[:i+1], func(v *terms.Volume) string { return v.Name })
	}
}

// named checks the name of the last element of a list such as volumes, which stands in STARLING_VOLUME_<NAME>.
func named[T any](p *problems, list string, all []T, nameOf func(*T) string) {
	last := len(all) - 1
	name, field := nameOf(&all[last]), list+"["+strconv.Itoa(last)+"].name"
	p.name(field, name)
	for k := range all[:last] {
		if variable := terms.VariableName(name); terms.VariableName(nameOf(&all[k])) == variable {
			p.add(field, "would set the same variable STARLING_%s_%s as %s[%d]",
				terms.VariableName(strings.TrimSuffix(list, "s")), variable, list, k)
		}
	}
}

func (p *problems) hostPaths(t *terms.Task) {
	if len(t.HostPaths) > terms.HostPathsMax {
		p.add("host_paths", "must have at most %d elements, has %d", terms.HostPathsMax, len(t.HostPaths))
		return
	}
	for i, h := range t.HostPaths {
		named(p, "host_paths", t.HostPaths[:i+1], func(h *terms.HostPath) string { return h.Name })
		if slices.ContainsFunc(t.Volumes, func(v terms.Volume) bool { return v.Name == h.Name }) {
			p.add("host_paths["+strconv.Itoa(i)+"].name", "is also the name of one of the task's volumes")
		}
	}
	for _, need := range t.Unasked() {
		if need.Attribute == terms.ContainersAttribute {
			p.add("constraints", "must have that attribute %s equals %q, because of the container", need.Attribute,
				terms.ContainersYes)
			continue
		}
		p.add("constraints", "must have that attribute %s exists, because of host_paths", need.Attribute)
	}
}

func (p *problems) idTokens(t *terms.Task) {
	if len(t.IDTokens) > terms.IDTokensMax {
		p.add("id_tokens", "must have at most %d elements, has %d", terms.IDTokensMax, len(t.IDTokens))
		return
	}
	for i, k := range t.IDTokens {
		field := "id_tokens[" + strconv.Itoa(i) + "]"
		p.name(field+".name", k.Name)
		p.text(field+".audience", k.Audience)
		if k.Audience == "" {
			p.add(field+".audience", "must say for whom the token is, such as vault or https://sts.example.com")
		}
		p.millis(field+".life", int64(k.LifeMillis), terms.IDTokenLifeLeast, terms.IDTokenLifeMax)
		for j := range i {
			if terms.VariableName(t.IDTokens[j].Name) == terms.VariableName(k.Name) {
				p.add(field+".name", "would set the same variable STARLING_ID_TOKEN_%s as id_tokens[%d]",
					terms.VariableName(k.Name), j)
			}
		}
	}
}

func (p *problems) checks(t *terms.Task) {
	if len(t.Checks) > terms.ChecksMax {
		p.add("checks", "must have at most %d elements, has %d", terms.ChecksMax, len(t.Checks))
		return
	}
	for i := range t.Checks {
		p.check(t, &t.Checks[i], "checks["+strconv.Itoa(i)+"]")
	}
}

func (p *problems) check(t *terms.Task, c *terms.Check, field string) {
	named := slices.ContainsFunc(t.Ports, func(r terms.PortRequest) bool { return r.Name == c.Port })
	switch {
	case c.Kind == terms.CheckHTTP && (len(c.Path) == 0 || c.Path[0] != '/'):
		p.add(field+".http", `must be a path that begins with "/"`)
	case c.Kind.AsksPort() && !named:
		p.add(field+".port", "must be the name of one of the task's ports")
	case c.Kind == terms.CheckCommand && (len(c.Command) == 0 || c.Command[0] == ""):
		p.add(field+".command", "must name a program")
	case !c.Kind.AsksPort() && c.Kind != terms.CheckCommand:
		p.add(field, "must have one of %q", terms.CheckKinds()[1:])
	}
	p.text(field+".http", c.Path)
	p.text(field+".service", c.Service)
	if len(c.Service) > terms.NameBytesMax || c.Service != "" && c.Kind != terms.CheckGRPC {
		p.add(field+".service", "is for grpc alone, and must have at most %d bytes", terms.NameBytesMax)
	}
	p.question(c, field)
	if len(c.Command) > terms.ArgumentsMax {
		p.add(field+".command", "must have at most %d elements", terms.ArgumentsMax)
		return
	}
	for k, argument := range c.Command {
		p.text(field+".command["+strconv.Itoa(k)+"]", argument)
	}
	p.millis(field+".interval", int64(c.IntervalMillis), 100, terms.DelayMillisMax)
	p.millis(field+".timeout", int64(c.TimeoutMillis), 1, terms.DelayMillisMax)
	p.millis(field+".start_period", int64(c.StartMillis), 0, terms.DelayMillisMax)
	p.bounded(field+".failures", int64(c.FailuresMax), 0, terms.ArgumentsMax)
	if int(c.OnFailure) >= len(terms.OnFailures()) {
		p.add(field+".on_failure", "must be one of %q", terms.OnFailures())
	}
}

// question checks how HTTP asks.
func (p *problems) question(c *terms.Check, field string) {
	if c.Kind != terms.CheckHTTP && (c.Method != 0 || len(c.Headers) > 0 || c.Body != "" || c.Status != 0) {
		p.add(field, "must have none of method, headers, body and status, which are for http alone")
	}
	if int(c.Method) >= len(terms.Methods()) {
		p.add(field+".method", "must be one of %q", terms.Methods())
		return
	}
	if len(c.Headers) > terms.HeadersMax {
		p.add(field+".headers", "must have at most %d elements, has %d", terms.HeadersMax, len(c.Headers))
		return
	}
	for i, h := range c.Headers {
		p.header(field+".headers", h, c.Headers[:i])
	}
	if method := c.Method.String(); c.Body != "" && (method == "GET" || method == "HEAD") {
		p.add(field+".body", "is not sent with %s: name another method", method)
	}
	p.text(field+".body", c.Body)
	if c.Status != 0 {
		p.bounded(field+".status", int64(c.Status), 100, 599)
	}
}

// header checks one after others.
func (p *problems) header(field string, h terms.EnvVar, before []terms.EnvVar) {
	if !isToken(h.Name) || len(h.Name) > terms.HeaderBytesMax {
		p.add(field, "%q is not the name of a header", h.Name)
		return
	}
	p.text(field+"."+h.Name, h.Value)
	twice := slices.ContainsFunc(before, func(other terms.EnvVar) bool { return strings.EqualFold(other.Name, h.Name) })
	if twice || strings.ContainsFunc(h.Value, unicode.IsControl) {
		p.add(field+"."+h.Name, "must be one line of text, and stand there once")
	}
}

// isToken tells whether a text is a token of RFC 9110, 5.6.2, as names of headers are.
func isToken(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return r > unicode.MaxASCII ||
			!unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	})
}

// sizeOf returns at least what the task takes in an entry, but for a small constant.
func sizeOf(t *terms.Task) int {
	size := len(t.WorkDir) + len(t.User)
	for _, name := range t.After {
		size += len(name) + 4
	}
	for _, a := range t.Command {
		size += len(a) + 4
	}
	for _, e := range t.Env {
		size += len(e.Name) + len(e.Value) + 8
	}
	for _, d := range t.Devices {
		size += len(d.Kind) + 12
		for _, m := range d.Models {
			size += len(m) + 4
		}
	}
	for _, p := range t.Ports {
		size += len(p.Name) + 8
	}
	for _, c := range t.Checks {
		size += len(c.Port) + len(c.Path) + len(c.Service) + 32
		for _, a := range c.Command {
			size += len(a) + 4
		}
	}
	for _, v := range t.Volumes {
		size += len(v.Name) + 4
	}
	for _, h := range t.HostPaths {
		size += len(h.Name) + 4
	}
	for i := range t.Constraints {
		t.Constraints[i].EachLeaf(func(c *constraint.Constraint) {
			size += len(c.Attribute) + len(c.Label) + len(c.Within) + 32
			for _, v := range c.Values {
				size += len(v) + 4
			}
		})
	}
	for _, l := range t.Labels {
		size += len(l.Name) + len(l.Value) + 8
	}
	for i := range t.Policies {
		size += 4*len(t.Policies[i].ExitCodes) + 16
	}
	return size + len(t.SpreadOver) + sizeOfContainer(&t.Container) + sizeOfPrivate(t)
}

// sizeOfPrivate counts the text of what instances alone have.
func sizeOfPrivate(t *terms.Task) (size int) {
	for _, s := range t.Secrets {
		size += len(s.Name) + len(s.Path) + len(s.Vault.Mount+s.Vault.Path+s.Vault.Field+s.Vault.Role) + 8
	}
	for _, k := range t.IDTokens {
		size += len(k.Name) + len(k.Audience) + 12
	}
	return size
}
