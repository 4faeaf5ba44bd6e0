package jobspec

import (
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"starling/plugin"
	"starling/terms"
	"starling/terms/lifecycle"
	"starling/terms/rules"
)

// The tables of what a job says about changes and failures.

// unlimited is a number of attempts that may be without end.
func unlimited() form[uint32] {
	return orWord("unlimited", terms.RestartsUnlimited, whole[uint32](0, terms.RestartsUnlimited-1))
}

// updateSlack is how far an absent deadline of an update stays above what it must be above.
const updateSlack = 5 * 60 * 1000

func updateForm() form[terms.UpdatePolicy] {
	type spec = terms.UpdatePolicy
	duration := func(at func(*spec) *uint32) field[spec] { return bind(durationForm(terms.DelayMillisMax), at) }
	truth := func(at func(*spec) *bool) field[spec] { return bind(truthForm(), at) }
	return mapping([]field[spec]{
		bind(orWord("all", 0, whole[uint32](0, terms.InstancesMax)), func(u *spec) *uint32 { return &u.BatchSize }).
			named("batch_size", "How many instances of a task may be without health at a time because of the update; all (or 0) changes everything at once.").orByType("all", "1", "1"),
		bind(whole[uint32](0, terms.InstancesMax), func(u *spec) *uint32 { return &u.Canaries }).
			named("canaries", "Instances of the new version that are tried beside the old before anything else happens, in stateless jobs.").or("0"),
		truth(func(u *spec) *bool { return &u.AutoPromote }).
			named("auto_promote", "Whether healthy canaries take their places by themselves, without `starling job update promote`.").or("false"),
		duration(func(u *spec) *uint32 { return &u.MinHealthyMillis }).
			named("min_healthy", "How long an instance must have been ready to count as healthy.").orByType("0", "5s", "5s"),
		duration(func(u *spec) *uint32 { return &u.HealthyDeadlineMillis }).
			named("healthy_deadline", "When an instance that is not healthy counts as failed; 0 is never. If absent, it stays above min_healthy.").orByType("0", "5m", "5m"),
		duration(func(u *spec) *uint32 { return &u.ProgressDeadlineMillis }).
			named("progress_deadline", "How long no instance may become healthy before the update fails; 0 is for ever. Time in which the first version waits for room does not count. If absent, it stays above healthy_deadline.").orByType("0", "10m", "10m"),
		bind(orWord("unlimited", 0, whole[uint32](1, terms.RestartsUnlimited)),
			func(u *spec) *uint32 { return &u.AttemptsMax }).
			named("attempts", "How often one instance may fail before it counts as failed.").orByType("unlimited", "3", "3"),
		bind(unlimited(), func(u *spec) *uint32 { return &u.FailuresMax }).
			named("failures", "How many failed instances the update bears; one more fails it.").or("0"),
		truth(func(u *spec) *bool { return &u.Rollback }).
			named("rollback", "Whether a failed update goes back to the version before; otherwise it stops where it is.").or("false"),
		truth(func(u *spec) *bool { return &u.StartPaused }).
			named("start_paused", "Whether an update changes nothing before `starling job update resume`; the first version starts.").or("false"),
		truth(func(u *spec) *bool { return &u.SameNode }).
			named("same_machine", "Whether the new version of an instance starts on its machine, if that still has room.").or("false"),
	}, func(_ *reader, _ place, given map[string]place, u *spec) {
		if _, ok := given["healthy_deadline"]; !ok && u.HealthyDeadlineMillis != 0 &&
			u.HealthyDeadlineMillis <= u.MinHealthyMillis {
			u.HealthyDeadlineMillis = min(u.MinHealthyMillis+updateSlack, terms.DelayMillisMax)
		}
		if _, ok := given["progress_deadline"]; !ok && u.ProgressDeadlineMillis != 0 &&
			u.ProgressDeadlineMillis <= u.HealthyDeadlineMillis {
			u.ProgressDeadlineMillis = min(u.HealthyDeadlineMillis+updateSlack, terms.DelayMillisMax)
		}
	})
}

func rescheduleForm() form[terms.Reschedule] {
	type spec = terms.Reschedule
	return mapping([]field[spec]{
		bind(unlimited(), func(s *spec) *uint32 { return &s.AttemptsMax }).
			named("attempts", "How often within the interval; after that the instance has failed. At most 16, or unlimited.").orByType("1", "unlimited", "0"),
		bind(durationForm(7*terms.DelayMillisMax), func(s *spec) *uint32 { return &s.IntervalMillis }).
			named("interval", "Within which time the attempts are counted.").or("24h"),
		bind(durationForm(terms.DelayMillisMax), func(s *spec) *uint32 { return &s.DelayMillis }).
			named("delay", "The delay before the first attempt, and before the place of an instance is given to another that lost its machine; a second at least.").or("5s"),
		bind(durationForm(terms.DelayMillisMax), func(s *spec) *uint32 { return &s.DelayMaxMillis }).
			named("delay_max", "The longest delay; if absent, at least delay.").orByType("5s", "5m", "5m"),
		bind(choice[terms.Growth](terms.Growths()), func(s *spec) *terms.Growth { return &s.Growth }).
			named("growth", "How the delay grows with the attempts within the interval.").orByType("constant", "exponential", "exponential"),
	}, func(r *reader, p place, given map[string]place, s *spec) {
		r.longest(p, given, s.DelayMillis, &s.DelayMaxMillis)
	})
}

// longest checks a longest delay, or raises one that is absent to the first.
func (r *reader) longest(p place, given map[string]place, first uint32, longest *uint32) {
	at, ok := given["delay_max"]
	switch {
	case !ok:
		*longest = max(*longest, first)
	case *longest < first && !r.hasFailed(p.known+".delay") && !r.hasFailed(at.known):
		r.fail(at, "must be at least delay, which is %s", terms.FormatDuration(int64(first)))
	}
}

// stopAfter is after which time an instance of a stateful job stops by itself unless its job says otherwise. It is well
// above the time that a peer needs to start again.
const stopAfter = 30_000

func disconnectForm() form[terms.Disconnect] {
	type spec = terms.Disconnect
	return mapping([]field[spec]{
		bind(durationForm(7*terms.DelayMillisMax), func(d *spec) *uint32 { return &d.LostAfterMillis }).
			named("lost_after", "How long the machine may return and find its instance still wanted; 0 gives the instance up at once.").or("0"),
		negated(bind(truthForm(), func(d *spec) *bool { return &d.Wait }), func(d *spec) *bool { return &d.Wait }).
			named("replace", "Whether a replacement runs meanwhile.").or("true"),
		bind(choice[terms.Survivor](terms.Survivors()), func(d *spec) *terms.Survivor { return &d.Keep }).
			named("keep", "Which of the two stays when the machine returns.").or("original"),
		bind(durationForm(terms.DelayMillisMax), func(d *spec) *uint32 { return &d.StopAfterMillis }).
			named("stop_after", "After which time without the cluster the machine stops the instance by itself; nothing takes its place before that is certain. It excludes lost_after. If absent, 30s in a stateful job, where it must be above 0.").or("0"),
	}, func(r *reader, _ place, given map[string]place, d *spec) {
		if _, stop := given["stop_after"]; r.kind == terms.Stateful && !stop {
			d.StopAfterMillis = stopAfter
		}
	})
}

// negated lets the file say the opposite of what is kept.
func negated[T any](f field[T], at func(*T) *bool) field[T] {
	read, write := f.read, f.write
	f.read = func(r *reader, p place, into *T) {
		read(r, p, into)
		*at(into) = !*at(into)
	}
	f.write = func(from *T) *yaml.Node {
		opposite := *from
		*at(&opposite) = !*at(from)
		return write(&opposite)
	}
	return f
}

func checkForm() form[terms.Check] {
	type spec = terms.Check
	path := bind(optional(text[string]("a path", pair{"pattern", "^/"})), func(c *spec) *string { return &c.Path })
	f := mapping([]field[spec]{
		of(path, terms.CheckHTTP).named("http", "The path that is asked for; an answer with a status of 200 to 399 is well."),
		of(connects(terms.CheckTCP), terms.CheckTCP).named("tcp", "Wants a connection."),
		of(connects(terms.CheckGRPC), terms.CheckGRPC).
			named("grpc", "Wants that the health service of gRPC says that all is SERVING, or the service that is named."),
		of(bind(commandForm(), func(c *spec) *[]string { return &c.Command }), terms.CheckCommand).
			named("command", "A program that runs where the instance does, and exits with 0 if it is well."),
		bind(optional(nameForm[string]()), func(c *spec) *string { return &c.Port }).
			named("port", "The name of the port for http, tcp and grpc; the only port of a task needs not be named."),
		bind(optional(text[string]("a name")), func(c *spec) *string { return &c.Service }).
			named("service", "The service that grpc asks about; without it all that listens at the port."),
		bind(optional(choice[terms.Method](terms.Methods())), func(c *spec) *terms.Method { return &c.Method }).
			named("method", "The method by which http asks; GET, without it."),
		bind(headersForm(), func(c *spec) *[]terms.EnvVar { return &c.Headers }).
			named("headers", "What http sends in the head of its question."),
		bind(optional(anyText()), func(c *spec) *string { return &c.Body }).
			named("body", "What http sends with another method than GET and HEAD."),
		bind(optional(whole[uint16](100, 599)), func(c *spec) *uint16 { return &c.Status }).
			named("status", "The only status of an answer to http that is well."),
		bind(durationForm(terms.DelayMillisMax), func(c *spec) *uint32 { return &c.IntervalMillis }).
			named("interval", "The time between two questions, at least 100ms.").or("2s"),
		bind(durationForm(terms.DelayMillisMax), func(c *spec) *uint32 { return &c.TimeoutMillis }).
			named("timeout", "The longest wait for an answer.").or("1s"),
		bind(optional(durationForm(terms.DelayMillisMax)), func(c *spec) *uint32 { return &c.StartMillis }).
			named("start_period", "The time after the start of an instance in which no failure counts; the first answer that is well ends it."),
		bind(whole[uint32](0, terms.ArgumentsMax), func(c *spec) *uint32 { return &c.FailuresMax }).
			named("failures", "How many failures in a row are tolerated; after one more comes what on_failure says. They count from the start of the instance, or from the end of start_period.").or("3"),
		bind(choice[terms.OnFailure](terms.OnFailures()), func(c *spec) *terms.OnFailure { return &c.OnFailure }).
			named("on_failure", "What follows too many failures: restart stops the instance as a failure; unready, for services, lets it go on, and nobody finds it until the check passes again.").or("restart"),
	}, func(r *reader, p place, given map[string]place, c *spec) {
		kinds := 0
		for _, name := range terms.CheckKinds()[1:] {
			if _, ok := given[name]; ok {
				kinds++
			}
		}
		if kinds != 1 && !r.hasFailed(p.known) {
			r.fail(p, "must have exactly one of http, tcp, grpc and command")
		}
	})
	var kinds []object
	for _, name := range terms.CheckKinds()[1:] {
		kinds = append(kinds, object{{"required", []string{name}}})
	}
	f.schema = append(f.schema, pair{"oneOf", kinds})
	return f
}

// connects is a key that needs no more than a port.
func connects(kind terms.CheckKind) field[terms.Check] {
	return field[terms.Check]{
		row: row{words: "true", schema: object{{"const", true}}},
		read: func(r *reader, p place, _ *terms.Check) {
			yes := false
			truthForm().read(r, p, &yes)
			if !yes && !r.hasFailed(p.known) {
				r.fail(p, "must be true, or absent")
			}
		},
		write: func(c *terms.Check) *yaml.Node {
			if yes := c.Kind == kind; yes {
				return truthForm().write(&yes)
			}
			return nil
		},
	}
}

// of is a key that says what kind of check it is. It is written for that kind only.
func of(f field[terms.Check], kind terms.CheckKind) field[terms.Check] {
	read, write := f.read, f.write
	f.read = func(r *reader, p place, into *terms.Check) {
		into.Kind = kind
		read(r, p, into)
	}
	f.write = func(from *terms.Check) *yaml.Node {
		if from.Kind != kind {
			return nil
		}
		return write(from)
	}
	return f
}

// checkPorts names the only port of a task in the checks that name none.
func checkPorts(t *terms.Task) {
	for i := range t.Checks {
		if c := &t.Checks[i]; len(t.Ports) == 1 && c.Port == "" && c.Kind.AsksPort() {
			c.Port = t.Ports[0].Name
		}
	}
}

// volumeForm is the name of a volume.
func volumeForm() form[terms.Volume] {
	name := nameForm[string]()
	return form[terms.Volume]{
		words: name.words, schema: name.schema,
		read: func(r *reader, p place, into *terms.Volume) {
			p.known += ".name"
			r.note(p)
			name.read(r, p, &into.Name)
		},
		write: func(from *terms.Volume) *yaml.Node { return name.write(&from.Name) },
	}
}

// hostPathForm is a folder of the machine.
func hostPathForm() form[terms.HostPath] {
	return mapping([]field[terms.HostPath]{
		bind(nameForm[string](), func(h *terms.HostPath) *string { return &h.Name }).
			named("name", "The name under which machines offer it.").must(),
		bind(optional(truthForm()), func(h *terms.HostPath) *bool { return &h.ReadOnly }).
			named("read_only", "Lets nothing be changed there, in containers and where the machine confines tasks.").or("false"),
	}, nil)
}

// secretForm is a secret that an instance reads.
func secretForm() form[terms.SecretUse] {
	return mapping([]field[terms.SecretUse]{
		bind(nameForm[string](), func(s *terms.SecretUse) *string { return &s.Name }).
			named("name", "The secret's name in the pool; of one in Vault any name, unique in the task.").must(),
		bind(optional(choice[terms.Signal](terms.Signals())), func(s *terms.SecretUse) *terms.Signal { return &s.OnChange }).
			named("on_change", "What an instance is sent when the secret has been put again, as with `on_members_change`.").or("none"),
		bind(optional(text[string]("the path of a file")), func(s *terms.SecretUse) *string { return &s.Path }).
			named("path", "Where the file is: in a container an absolute path, in place of what the image has there; any other path is below the folder of the instance's secrets. Without it the name of the file is the node's choice."),
		bind(optional(whole[uint32](1, math.MaxUint32)), func(s *terms.SecretUse) *uint32 { return &s.Version }).
			named("version", "The version that instances read, and no newer one; without it the newest."),
		bind(optional(vaultForm()), func(s *terms.SecretUse) *terms.VaultSecret { return &s.Vault }).
			named("vault", "Where a server of Vault or OpenBao has the secret, which the node asks for it as this instance; without it the job's pool has the secret."),
	}, nil)
}

// vaultForm is where Vault has a secret.
func vaultForm() form[terms.VaultSecret] {
	return mapping([]field[terms.VaultSecret]{
		bind(optional(text[string]("a path")), func(v *terms.VaultSecret) *string { return &v.Mount }).
			named("mount", "The path of the engine, which is KV of version 2.").or("secret"),
		bind(text[string]("a path"), func(v *terms.VaultSecret) *string { return &v.Path }).
			named("path", "The path of the secret in the engine, as vault kv get -mount takes it.").must(),
		bind(optional(text[string]("the name of a field")), func(v *terms.VaultSecret) *string { return &v.Field }).
			named("field", "The field that is read; without it all of them, as an object in JSON."),
		bind(optional(text[string]("a role")), func(v *terms.VaultSecret) *string { return &v.Role }).
			named("role", "The role of Vault that the instance has; without it the one that its node's settings name."),
	}, nil)
}

// idTokenForm is a token that an instance shows outside of the cluster.
func idTokenForm() form[terms.IDToken] {
	return mapping([]field[terms.IDToken]{
		bind(nameForm[string](), func(k *terms.IDToken) *string { return &k.Name }).
			named("name", "The token's name, unique in the task.").must(),
		bind(text[string]("a text"), func(k *terms.IDToken) *string { return &k.Audience }).
			named("audience", "For whom the token is: who takes it compares this with its own name.").must(),
		bind(durationForm(terms.IDTokenLifeMax), func(k *terms.IDToken) *uint32 { return &k.LifeMillis }).
			named("life", "How long a token is good for, 10s to 24h. Another takes its place when two thirds of that are over.").or("1h"),
	}, nil)
}

// The tables of what becomes of a job and its tasks when something happens to them.

// lifecycleFields are the keys of a job about its end.
func lifecycleFields() []field[terms.Job] {
	type spec = terms.Job
	return []field[spec]{
		bind(optional(whole[uint32](0, terms.InstancesMax)), func(j *spec) *uint32 { return &j.MinSuccess }).
			named("min_success", "How many instances of a batch job have to succeed, all tasks counted; the others are ended then, and the job has succeeded. Without it all have to."),
		bind(list(policyForm(), 0, lifecycle.PoliciesMax), func(j *spec) *[]lifecycle.Policy { return &j.Policies }).
			named("policies", "What becomes of the job when something happens to its instances and tasks. The first that is about it wins, after those of the task; without one the instance is restarted as its task says."),
		bind(unlimited(), func(j *spec) *uint32 { return &j.MaxRestarts }).
			named("max_restarts", "How often policies restart the job in one version; the next time it has failed.").or(strconv.Itoa(lifecycle.RestartsDefault)).quiet(),
		bind(optional(zeroIs(terms.KeepLeast, durationForm(math.MaxUint32))), func(j *spec) *uint32 { return &j.KeepMillis }).
			named("keep", "How long the job can be asked about when it has ended, and its logs and results stay: with 0 it is forgotten at once, without a time as long as there is room for finished jobs, of which the cluster keeps 1000: the pool that has most of them loses its oldest, and those that say a time last."),
	}
}

// zeroIs is a duration of which 0 means the least that there is, for 0 as a value means that nothing was said.
func zeroIs(least uint32, f form[uint32]) form[uint32] {
	read, write := f.read, f.write
	f.read = func(r *reader, p place, into *uint32) {
		read(r, p, into)
		*into = max(*into, least)
	}
	f.write = func(from *uint32) *yaml.Node {
		if *from == least {
			return write(new(uint32))
		}
		return write(from)
	}
	return f
}

// taskLifecycleFields are those of a task.
func taskLifecycleFields() []field[terms.Task] {
	type spec = terms.Task
	policies := list(policyForm(), 0, lifecycle.PoliciesMax)
	policies.rows = nil // they are the same as those of the job
	return []field[spec]{
		bind(policies, func(t *spec) *[]lifecycle.Policy { return &t.Policies }).
			named("policies", "What becomes of the task or the job when something happens to an instance, or to the task. They come before those of the job."),
		bind(unlimited(), func(t *spec) *uint32 { return &t.MaxRestarts }).
			named("max_restarts", "How often policies restart the task in one version of the job; the next time the job has failed.").or(strconv.Itoa(lifecycle.RestartsDefault)).quiet(),
	}
}

func policyForm() form[lifecycle.Policy] {
	type spec = lifecycle.Policy
	events := choice[lifecycle.Event](lifecycle.Events())
	f := mapping([]field[spec]{
		bind(oneOrMore(events, int(lifecycle.Any)), func(p *spec) *[]lifecycle.Event { return &p.On }).
			named("on", "One event, or a list: instance_failed; instance_evicted, which gave way or whose machine was drained or lost (with lost_after: for good, and no other has taken its place); task_completed, all of whose instances have succeeded; task_failed, of which an instance has failed for good; or any."),
		bind(oneOrMore(whole[uint32](1, lifecycle.ExitCodeMax), lifecycle.PoliciesMax),
			func(p *spec) *[]uint32 { return &p.ExitCodes }).
			named("exit_codes", "Instead: one exit code with which an instance failed by itself, or a list: 128 and the number of the signal if one ended it, as 137 for more memory than it has. What was stopped, as its checks failed or its time was over, has none."),
		bind(choice[lifecycle.Action](lifecycle.Actions()), func(p *spec) *lifecycle.Action { return &p.Action }).
			named("action", "What follows: restart_instance, restart_task or restart_job, all of whose instances end and begin anew; abort suspends the job; terminate ends it as a failure, complete as a success.").must(),
		bind(optional(durationForm(lifecycle.DelayMillisMax)), func(p *spec) *uint32 { return &p.DelayMillis }).
			named("delay", "How long after. Nothing follows if it is not so any more: an instance that was evicted has a machine again, a task that was complete is not, or all begins anew."),
	}, func(r *reader, p place, given map[string]place, _ *spec) {
		_, on := given["on"]
		if _, codes := given["exit_codes"]; on == codes && !r.hasFailed(p.known) {
			r.fail(p, "must have exactly one of on and exit_codes")
		}
	})
	f.schema = append(f.schema, pair{"oneOf",
		[]object{{{"required", []string{"on"}}}, {{"required", []string{"exit_codes"}}}}})
	return f
}

// oneOrMore is one value, or a list of at most most.
func oneOrMore[V any](each form[V], most int) form[[]V] {
	many := list(each, 1, most)
	return form[[]V]{
		words: each.words + ", or a list of them", schema: object{{"anyOf", []object{each.schema, many.schema}}},
		read: func(r *reader, p place, into *[]V) {
			if p.node.Kind != yaml.ScalarNode {
				many.read(r, p, into)
				return
			}
			var one V
			each.read(r, p, &one)
			*into = []V{one}
		},
		write: func(from *[]V) *yaml.Node {
			if len(*from) == 1 {
				return each.write(&(*from)[0])
			}
			return many.write(from)
		},
	}
}

// pluginForm is the name of a plugin, or a mapping from it to its arguments.
func pluginForm() form[terms.PluginRequest] {
	words := "the name of a plugin (" + strings.Join(plugin.Names(rules.Released), ", ") +
		"), or a mapping from it to its arguments"
	given := argumentsForm()
	var each object
	for _, name := range plugin.Names(rules.Released) {
		arguments := object{}
		for _, argument := range plugin.Arguments(name, rules.Released) {
			arguments = append(arguments, pair{argument, argumentForm().schema})
		}
		each = append(each, pair{name, closed(arguments)})
	}
	return form[terms.PluginRequest]{
		words: words,
		schema: object{{"anyOf", []object{{{"enum", plugin.Names(rules.Released)}},
			append(closed(each), pair{"minProperties", 1}, pair{"maxProperties", 1})}}},
		read: func(r *reader, p place, into *terms.PluginRequest) {
			if p.node.Kind != yaml.MappingNode {
				text[string](words).read(r, p, &into.Name)
				return
			}
			members, ok := r.members(p, words)
			if ok && len(members) != 1 {
				r.fail(p, "must have one key, the name of a plugin, has %d: begin each plugin with a dash", len(members))
				return
			}
			for _, m := range members {
				into.Name, m.value.known = m.name, p.known
				given.read(r, m.value, &into.Arguments)
			}
		},
		write: func(from *terms.PluginRequest) *yaml.Node {
			if len(from.Arguments) == 0 {
				return scalar(from.Name)
			}
			return &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{scalar(from.Name), given.write(&from.Arguments)}}
		},
	}
}

func argumentsForm() form[[]terms.EnvVar] {
	return variables("a mapping from arguments to values", object{{"pattern", namePattern}}, terms.PluginsMax,
		argumentForm())
}

// argumentForm is a value that its plugin reads: a number or true needs no quotes.
func argumentForm() form[string] {
	f := anyText()
	f.words = "a text, a number, true or false"
	f.schema = object{{"type", []string{"string", "integer", "boolean"}}, {"minLength", 1}}
	f.read = func(r *reader, p place, into *string) {
		if r.expect(p, yaml.ScalarNode, f.words) {
			*into = p.node.Value
		}
	}
	return f
}
