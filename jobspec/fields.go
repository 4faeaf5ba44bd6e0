package jobspec

import (
	"go.yaml.in/yaml/v4"

	"starling/terms"
	"starling/terms/constraint"
)

// The tables: every key of a job file, with its form, its meaning and what stands for it when it is absent. The reader,
// the writer, the schema and the reference all come from here.

// jobForm is a document.
func jobForm() form[terms.Job] {
	tasks := bind(list(taskForm(), 1, terms.TasksMax), func(j *terms.Job) *[]terms.Task { return &j.Tasks })
	tasks.schema = append(tasks.schema, pair{"if", object{{"minItems", 2}}},
		pair{"then", object{{"items", object{{"required", []string{"name"}}}}}})
	read := tasks.read
	tasks.read = func(r *reader, p place, into *terms.Job) {
		read(r, p, into)
		nameTasks(r, p, into.Tasks)
	}
	kind := bind(choice[terms.JobType](terms.JobTypes()), func(j *terms.Job) *terms.JobType { return &j.Type })
	readKind := kind.read
	kind.read = func(r *reader, p place, into *terms.Job) {
		readKind(r, p, into)
		r.kind = into.Type
	}
	update := bind(updateForm(), func(j *terms.Job) *terms.UpdatePolicy { return &j.Update })
	writeUpdate := update.write
	update.write = func(j *terms.Job) *yaml.Node {
		if j.Type == terms.Batch && j.Update == (terms.UpdatePolicy{}) {
			return nil
		}
		return writeUpdate(j)
	}
	fields := append(nameFields(),
		kind.named("type", "What the end of an instance means: batch instances run to their end once, stateless ones run until stopped and are replaced when they end; of stateful ones no two of one number ever live, and each keeps its volumes; daemon ones run on every machine that can, whatever their pool may have, so that who submits them needs the role operator in the whole cluster.").or("batch"))
	fields = append(append(fields, sharingFields()...), lifecycleFields()...)
	return mapping(append(fields,
		update.named("update", "How the job moves from one version to the next, when it is submitted again and changed.").or(allDefaults),
		bind(list(text[terms.JobName]("the name of a job, as in analytics/etl/nightly", pair{"pattern", poolPattern}), 0,
			terms.JobsAfterMax),
			func(j *terms.Job) *[]terms.JobName { return &j.After }).
			named("after", "The batch jobs that come first: nothing of this one runs before all of them have succeeded, those that the same file brings or changes included, wherever they stand in it. If one of them does not, this one is stopped."),
		bind(list(pluginForm(), 0, terms.PluginsMax), func(j *terms.Job) *[]terms.PluginRequest { return &j.Plugins }).
			named("plugins", "What tells the members of the job about each other, by variables and by files below STARLING_MEMBERS that follow every change. A change of the plugins replaces all instances."),
		tasks.named("tasks", "The programs of the job, each run as a number of equal instances.").must(),
	), func(_ *reader, _ place, _ map[string]place, j *terms.Job) {
		if j.Shares() {
			j.OnVirtualPeers()
		}
	})
}

// nameTasks gives the only task of a job its name.
func nameTasks(r *reader, p place, tasks []terms.Task) {
	for i := range tasks {
		at := p.element(i, nil)
		if _, given := r.places[at.known+".name"]; given {
			continue
		}
		if len(tasks) == 1 {
			tasks[0].Name = "main"
			continue
		}
		if task := r.places[at.known]; !r.hasFailed(at.known + ".name") {
			r.fail(task.at("name", task.node), "is missing: in a job of several tasks each needs a name")
		}
	}
}

func taskForm() form[terms.Task] {
	fields := append(append(programFields(), boundFields()...), taskLifecycleFields()...)
	f := mapping(append(fields, placeFields()...), func(r *reader, p place, given map[string]place, t *terms.Task) {
		checkPorts(t)
		t.AskForNodes()
		at, contained := given["container"]
		if contained && t.Container.Image == "" && !r.hasFailed(at.known) && !r.hasFailed(at.known+".image") {
			r.fail(at.at("image", at.node), "must name an image")
		}
		if _, ok := given["command"]; !ok && !contained && !r.hasFailed(p.known) {
			r.fail(p.at("command", p.node), "is missing: name the program, or a container whose image does")
		}
		if at, ok := given["instances"]; ok && r.kind == terms.Daemon && t.Instances != 1 && !r.hasFailed(at.known) {
			r.fail(at, "must be absent in a daemon job: one instance runs on every machine that can")
		}
	})
	f.schema = append(f.schema, pair{"anyOf", []object{
		{{"required", []string{"command"}}}, {{"required", []string{"container"}}},
	}})
	return f
}

// programFields are the keys of a task about what runs.
func programFields() []field[terms.Task] {
	type spec = terms.Task
	return []field[spec]{
		bind(nameForm[terms.TaskName](), func(t *spec) *terms.TaskName { return &t.Name }).
			named("name", "The task's name, unique in the job; the only task of a job is called main if it has none."),
		bind(whole[uint32](0, terms.InstancesMax), func(t *spec) *uint32 { return &t.Instances }).
			named("instances", "How many equal instances run. Each knows its number from STARLING_INDEX.").or("1"),
		bind(commandForm(), func(t *spec) *[]string { return &t.Command }).
			named("command", "The program and its arguments as a list, or one text that /bin/sh -c runs. In a container it takes the place of the image's entrypoint and arguments, and may be absent."),
		bind(containerForm(), func(t *spec) *terms.Container { return &t.Container }).
			named("container", "The container that the task runs in. It has the network of its machine; without one the task is a process of the machine."),
		bind(envForm(), func(t *spec) *[]terms.EnvVar { return &t.Env }).
			named("env", "Variables of the environment. Names that begin with STARLING_ are set by Starling."),
		bind(optional(text[string]("an absolute path", pair{"pattern", "^(/|$)"})),
			func(t *spec) *string { return &t.WorkDir }).
			named("work_dir", "The folder in which the program starts; without it that of the image, or a fresh one, deleted after the instance."),
		bind(optional(text[string]("the name of an account")), func(t *spec) *string { return &t.User }).
			named("user", "The account that the program runs as; without it one of the job's own where the agent is root, and the agent's elsewhere. Admins name any, others those that the pool has under run_as. In a container it is one of the image's, or numbers as in 999:999; without it the one that the image names."),
		bind(optional(whole[uint32](1, terms.TaskProcessesMax)), func(t *spec) *uint32 { return &t.ProcessesMax }).
			named("pids_limit", "How many processes and threads an instance may have; without it 4096, where the machine can limit them."),
		bind(optional(bytesForm()), func(t *spec) *int64 { return &t.DiskBytesMax }).
			named("disk_limit", "How much an instance may take of the disk: what lies in its fresh folder and what it changes of its image. Each file, folder or link counts as 4Ki at least. An instance that takes more is ended as out of disk; that is looked at every second, so leave room for what is written between two looks. On a machine with the attribute quotas its file system keeps the limit of an instance that is no container: a program that would write more gets the error \"Disk quota exceeded\" (on XFS \"No space left on device\") at once, and goes on. What it writes to volumes, to a work_dir of its own and to /tmp does not count, nor does its output, of which only the newest part is kept. Without it, or with 0, an instance is ended only if it fills the disk of its machine."),
		bind(list(secretForm(), 0, terms.SecretsMax), func(t *spec) *[]terms.SecretUse { return &t.Secrets }).
			named("secrets", "Secrets of the job's pool, put there by starling secret put, that an instance may read. The path of each stands in STARLING_SECRET_<NAME>; the file lies in memory where the agent is root, and is replaced when the secret is put again. An instance starts when it has all."),
		bind(list(idTokenForm(), 0, terms.IDTokensMax), func(t *spec) *[]terms.IDToken { return &t.IDTokens }).
			named("id_tokens", "Signed tokens (JWT) that tell programs outside of the cluster, such as Vault or a cloud, which instance shows them. The path of each stands in STARLING_ID_TOKEN_<NAME>; the file is replaced before the token expires."),
		bind(optional(zeroIs(terms.StopDelayLeast, durationForm(terms.GraceMillisMax))),
			func(t *spec) *uint32 { return &t.StopDelayMillis }).
			named("stop_delay", "How long an instance that is told to stop goes on before stop_signal. It has left DNS and all lists of addresses by then, and this is for clients that have read them before. Without it stateless and stateful instances with ports have 2s, all others none."),
		bind(optional(choice[terms.StopSignal](terms.StopSignals())),
			func(t *spec) *terms.StopSignal { return &t.StopSignal }).
			named("stop_signal", "What asks an instance to end; by default what the image of its container names, or SIGTERM.").or("default"),
		bind(durationForm(terms.GraceMillisMax), func(t *spec) *uint32 { return &t.StopGraceMillis }).
			named("stop_grace", "How long an instance has between stop_signal and SIGKILL.").or("5s"),
		bind(optional(choice[terms.Signal](terms.Signals())), func(t *spec) *terms.Signal { return &t.OnMembersChange }).
			named("on_members_change", "What an instance is sent when its files about the members of the job have changed, once it has run for a second and has a handler for it: a program without one is not ended. The runtimes of Go and Java have one, which ends a program that does not ask for the signal.").or("none"),
		bind(restartForm(), func(t *spec) *terms.Restart { return &t.Restart }).
			named("restart", "What happens first after a failure: the instance starts again on its machine after a delay that doubles with every failure in a row.").or(allDefaults),
		bind(rescheduleForm(), func(t *spec) *terms.Reschedule { return &t.Reschedule }).
			named("reschedule", "What happens when the restarts are used up: the instance is tried on another machine, or on the same if there is no other.").or(allDefaults),
		bind(disconnectForm(), func(t *spec) *terms.Disconnect { return &t.Disconnect }).
			named("disconnect", "What becomes of an instance whose machine left the cluster, and may return.").or(allDefaults),
		bind(list(checkForm(), 0, terms.ChecksMax), func(t *spec) *[]terms.Check { return &t.Checks }).
			named("checks", "Questions that are asked of each instance again and again. It is ready when all were answered well; without checks, when it runs. DNS and endpoints name an instance from its start, before its first answer, unless a check says on_failure: unready."),
		bind(list(volumeForm(), 0, terms.VolumesMax), func(t *spec) *[]terms.Volume { return &t.Volumes }).
			named("volumes", "Names of folders, as in [data], that each instance of a stateful job finds again whenever it starts; also in a later job of the same name. The path stands in STARLING_VOLUME_<NAME>."),
		bind(optional(durationOf[int64](terms.KeepVolumesMillisMax)), func(t *spec) *int64 { return &t.KeepVolumesMillis }).
			named("keep_volumes", "How long the volumes of an instance are kept when no instance is to have them any more: from the end of the job, or from when the task has fewer instances. Then what they hold is deleted, which starling volume ls tells before. Without it, or with 0, they are kept until starling volume rm."),
		bind(optional(bytesForm()), func(t *spec) *int64 { return &t.VolumesBytesMax }).
			named("volumes_limit", "How much the volumes of an instance may hold together, each file, folder or link 4Ki at least. An instance whose volumes hold more is ended as out of disk, and what they hold stays: that is looked at every second, so leave room for what is written between two looks. On a machine with the attribute quotas a program that would write more gets an error instead, as with disk_limit; of volumes that such a machine has from before it had quotas that is not so. Without it, or with 0, they may fill the disk of their machine."),
		bind(list(hostPathForm(), 0, terms.HostPathsMax), func(t *spec) *[]terms.HostPath { return &t.HostPaths }).
			named("host_paths", "Folders of its machine that an instance uses, by the names under which machines offer them (host_paths of the agent): it runs on such machines only. The path stands in STARLING_HOST_PATH_<NAME>. Admins name any, others those that the pool has under host_paths. Who may read and write there is up to the folder; Starling neither makes nor empties it."),
	}
}

// placeFields are the keys of a task about where it runs.
func placeFields() []field[terms.Task] {
	type spec = terms.Task
	return []field[spec]{
		bind(resourcesForm(), func(t *spec) *terms.Resources { return &t.Resources }).
			named("resources", "What is reserved for each instance; for cpu and memory it is the limit too.").or(allDefaults),
		bind(devicesForm(), func(t *spec) *[]terms.DeviceRequest { return &t.Devices }).
			named("devices", "Devices for each instance, by kind: whole ones, or a share of one. Their numbers stand in STARLING_DEVICES_<KIND>. The kind slack is cores that others were promised and leave alone: revocable jobs may use so many beyond their cpu, and end when they are wanted back."),
		bind(portsForm(), func(t *spec) *[]terms.PortRequest { return &t.Ports }).
			named("ports", "TCP ports for each instance, by name; auto (or 0) lets the scheduler choose. The number stands in STARLING_PORT_<NAME>."),
		bind(list(constraintForm(), 0, terms.RequestsPerTaskMax),
			func(t *spec) *[]constraint.Constraint { return &t.Constraints }).
			named("constraints", "What must hold of a machine, and of what runs on it or around it, for the task to run there. All must."),
		bind(labelsForm(), func(t *spec) *[]terms.EnvVar { return &t.Labels }).
			named("labels", "What constraints, of this task and of others, count its instances by."),
		bind(optional(whole[uint32](0, terms.InstancesMax)), func(t *spec) *uint32 { return &t.PerNodeMax }).
			named("per_machine_max", "The most instances on one machine; without it there is no bound."),
		bind(optional(text[string]("the name of an attribute")), func(t *spec) *string { return &t.SpreadOver }).
			named("spread_over", "An attribute, such as rack: among its values the instances are spread as evenly as there is room."),
		bind(choice[terms.Placement](terms.Placements()), func(t *spec) *terms.Placement { return &t.Placement }).
			named("placement", "Which machines come first: pack fills those in use, spread takes as many as it can, defragment leaves as much of the devices as it can to typical work.").or("pack"),
	}
}

func resourcesForm() form[terms.Resources] {
	amount := func(k terms.Kind) func(*terms.Resources) *int64 {
		return func(r *terms.Resources) *int64 { return &r[k] }
	}
	return mapping([]field[terms.Resources]{
		bind(cpuForm(), amount(terms.CPU)).named("cpu",
			"Processor, in cores (2, 0.5) or thousandths of one (500m), at least 1m.").or("500m"),
		bind(bytesForm(), amount(terms.Memory)).named("memory", "Memory, at least 1Mi; an instance that uses more is killed.").or("256Mi"),
		bind(bytesForm(), amount(terms.Disk)).named("disk",
			"Disk space, counted when machines are chosen; when a disk is full, the instance that takes the most beyond this is ended, or that with the most files when inodes run out. disk_limit is a limit.").or("0"),
	}, nil)
}

func restartForm() form[terms.Restart] {
	return mapping([]field[terms.Restart]{
		bind(unlimited(), func(s *terms.Restart) *uint32 { return &s.AttemptsMax }).
			named("attempts", "Restarts after failures in a row.").orByType("3", "5", "unlimited"),
		bind(durationForm(terms.DelayMillisMax), func(s *terms.Restart) *uint32 { return &s.DelayMillis }).
			named("delay", "The delay before the first restart. What has ended within a second of its start five times in a row waits for a second at least, and for longer beside others of its pool.").or("1s"),
		bind(durationForm(terms.DelayMillisMax), func(s *terms.Restart) *uint32 { return &s.DelayMaxMillis }).
			named("delay_max", "The longest delay; if absent, at least delay.").orByType("1m", "5m", "5m"),
		bind(durationForm(terms.DelayMillisMax), func(s *terms.Restart) *uint32 { return &s.ResetMillis }).
			named("reset_after", "How long an instance must have run for its failures to be forgotten; with 0 each is, and attempts bound nothing.").or("10m"),
	}, func(r *reader, p place, given map[string]place, s *terms.Restart) {
		r.longest(p, given, s.DelayMillis, &s.DelayMaxMillis)
	})
}

func anyText() form[string] { return text[string]("a text") }

// commandForm is a list of arguments, or a text for the shell.
func commandForm() form[[]string] {
	arguments := list(anyText(), 1, terms.ArgumentsMax)
	const words = "the program and its arguments as a list, or one text for /bin/sh -c"
	return form[[]string]{
		words:  words,
		schema: object{{"anyOf", []object{textSchema(pair{"minLength", 1}), arguments.schema}}},
		read: func(r *reader, p place, into *[]string) {
			if p.node.Kind == yaml.SequenceNode {
				arguments.read(r, p, into)
				return
			}
			line := ""
			text[string](words).read(r, p, &line)
			if line == "" {
				return
			}
			*into = []string{"/bin/sh", "-c", line}
			script := p
			script.known += "[2]"
			r.note(script)
		},
		write: func(from *[]string) *yaml.Node {
			if c := *from; len(c) == 3 && c[0] == "/bin/sh" && c[1] == "-c" && c[2] != "" {
				return scalar(c[2])
			}
			return arguments.write(from)
		},
	}
}

const (
	namePattern     = `^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$`
	headerPattern   = "^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,252}$" // a token of RFC 9110, 5.6.2
	variablePattern = `^[A-Za-z_][A-Za-z0-9_]{0,251}$`
)

func nameForm[V ~string]() form[V] {
	return text[V]("a name", pair{"pattern", namePattern})
}

func envForm() form[[]terms.EnvVar] {
	return variables("a mapping from names of variables to texts",
		object{{"pattern", variablePattern}, {"not", object{{"pattern", "^STARLING_"}}}}, terms.ArgumentsMax, anyText())
}

func headersForm() form[[]terms.EnvVar] {
	return variables("a mapping from names of headers to texts", object{{"pattern", headerPattern}}, terms.HeadersMax, anyText())
}

func labelsForm() form[[]terms.EnvVar] {
	return variables("a mapping from labels to texts", object{{"minLength", 1}}, terms.RequestsPerTaskMax, anyText())
}

func devicesForm() form[[]terms.DeviceRequest] {
	return entries[terms.DeviceRequest, terms.DeviceRequest]{
		words: "a mapping from kinds of device to amounts (2, 0.5) or to mappings with the keys amount, models",
		keys:  object{{"pattern", namePattern}}, most: terms.RequestsPerTaskMax, each: deviceForm(),
		split: func(d *terms.DeviceRequest) (*string, *terms.DeviceRequest) { return &d.Kind, d },
	}.form()
}

// deviceForm is an amount, or a mapping that says more.
func deviceForm() form[terms.DeviceRequest] {
	amount := func(d *terms.DeviceRequest) *terms.Millidevices { return &d.Amount }
	short := quantityForm[terms.Millidevices](quantity{
		words: devicesWords, pattern: `^` + decimalPattern + `$`, format: formatDevices,
		parse: func(text string) (int64, error) {
			return parseDevices(text, terms.DevicesMax*int64(terms.WholeDevice))
		},
		bare: object{{"anyOf", []object{
			{{"type", "integer"}, {"minimum", 1}, {"maximum", terms.DevicesMax}},
			{{"type", "number"}, {"minimum", 0.001}, {"exclusiveMaximum", 1}},
		}}},
	})
	long := mapping([]field[terms.DeviceRequest]{
		bind(short, amount).named("amount", "How many whole devices, or which share of one.").must(),
		bind(list(text[string]("a model", pair{"pattern", namePattern}), 0, terms.RequestsPerTaskMax),
			func(d *terms.DeviceRequest) *[]string { return &d.Models }).
			named("models", "The models of which one will do; any, without it."),
	}, nil)
	return form[terms.DeviceRequest]{
		words: short.words, schema: object{{"anyOf", []object{short.schema, long.schema}}}, rows: long.rows,
		read: func(r *reader, p place, into *terms.DeviceRequest) {
			if p.node.Kind == yaml.MappingNode {
				long.read(r, p, into)
				return
			}
			short.read(r, p, amount(into))
		},
		write: func(from *terms.DeviceRequest) *yaml.Node {
			if len(from.Models) > 0 {
				return long.write(from)
			}
			return short.write(amount(from))
		},
	}
}

func portsForm() form[[]terms.PortRequest] {
	return entries[terms.PortRequest, uint16]{
		words: "a mapping from names of ports to numbers", keys: object{{"pattern", namePattern}},
		most:  terms.RequestsPerTaskMax,
		each:  orWord("auto", 0, whole[uint16](0, 1<<16-1)),
		split: func(q *terms.PortRequest) (*string, *uint16) { return &q.Name, &q.Number },
		numbered: func(i int) (string, string) {
			at := place{}.element(i, nil).known
			return at + ".name", at + ".number"
		},
	}.form()
}

func cpuForm() form[int64] {
	return quantityForm[int64](quantity{
		words: cpuWords, pattern: cpuPattern, parse: ParseCPU, format: FormatCPU,
		bare: object{{"type", "number"}, {"minimum", 0}, {"maximum", terms.CPUMillicoresMax / 1000}},
	})
}

func bytesForm() form[int64] {
	return quantityForm[int64](quantity{
		words: bytesWords, pattern: bytesPattern, parse: ParseBytes, format: FormatBytes, bare: object{{"const", 0}},
	})
}

func durationForm(most int64) form[uint32] { return durationOf[uint32](most) }

func durationOf[N uint32 | int64](most int64) form[N] {
	return quantityForm[N](quantity{
		words: durationWords, pattern: durationPattern, format: terms.FormatDuration, bare: object{{"const", 0}},
		parse: func(text string) (int64, error) { return ParseDuration(text, most) },
	})
}

// containerForm is what a task runs in.
func containerForm() form[terms.Container] {
	type spec = terms.Container
	f := mapping([]field[spec]{
		bind(text[string]("the name of an image", pair{"pattern", `^\S+$`}), func(c *spec) *string { return &c.Image }).
			named("image", "The image by its name in a registry, as in registry.example:5000/team/web:1.2, or with a digest, as in web@sha256:…. A tag is asked for when a version of the job is made, which has the digest, so that all its instances run the same image.").must(),
		bind(optional(nameForm[string]()), func(c *spec) *string { return &c.PullSecret }).
			named("pull_secret", "The secret of the job's pool with which the registry is asked, a config.json as docker login writes it. Machines that hold the authority's key and those that pull the image use it; the task does not get it."),
		bind(list(anyText(), 0, terms.ArgumentsMax), func(c *spec) *[]string { return &c.Arguments }).
			named("args", "Arguments in place of the image's."),
		bind(optional(truthForm()), func(c *spec) *bool { return &c.ReadOnly }).
			named("read_only", "Lets nothing of the image be changed; mounts are what can be written to.").or("false"),
		bind(list(text[string]("a capability", pair{"enum", terms.Capabilities()}), 0, terms.CapabilitiesMax),
			func(c *spec) *[]string { return &c.Capabilities }).
			named("capabilities", "Capabilities of the kernel beside the usual ones, as in NET_ADMIN. Admins name any, others those that the pool has under capabilities."),
		bind(list(mountForm(), 0, terms.MountsMax), func(c *spec) *[]terms.Mount { return &c.Mounts }).
			named("mounts", "Folders at paths of the container. A volume or host path that is none of them is at the path that its variable says."),
	}, nil)
	write := f.write
	f.write = func(from *spec) *yaml.Node {
		if from.Image == "" {
			return nil
		}
		return write(from)
	}
	return f
}

func mountForm() form[terms.Mount] {
	type spec = terms.Mount
	return mapping([]field[spec]{
		bind(text[string]("an absolute path", pair{"pattern", "^/."}), func(m *spec) *string { return &m.Path }).
			named("path", "Where the container has it.").must(),
		bind(optional(nameForm[string]()), func(m *spec) *string { return &m.Volume }).
			named("volume", "The name of one of the task's volumes or host_paths; without it the folder is an empty one in memory."),
		bind(optional(truthForm()), func(m *spec) *bool { return &m.ReadOnly }).
			named("read_only", "Lets nothing be changed there.").or("false"),
	}, nil)
}
