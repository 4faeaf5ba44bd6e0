package jobspec

import (
	"bytes"
	"fmt"
	"strings"
)

// references returns the descriptions of job files and pools files in Markdown, by the names of their documents: every
// key, from the same tables that read them.
func references() map[string][]byte {
	return map[string][]byte{"job-file": jobReference(), "pools-file": poolsReference()}
}

func jobReference() []byte {
	var b bytes.Buffer
	b.WriteString(referenceHead)
	writeTable(&b, "The job", jobForm().rows)
	writeTable(&b, "A constraint", constraintTable().rows)
	b.WriteString(referenceChanges)
	b.WriteString(referenceEnvironment)
	b.WriteString(referenceIDTokens)
	return b.Bytes()
}

func poolsReference() []byte {
	var b bytes.Buffer
	b.WriteString(referencePools)
	writeTable(&b, "The tree", poolsForm().rows)
	return b.Bytes()
}

// writeTable writes the keys of one mapping, and then those of the mappings in it.
func writeTable(b *bytes.Buffer, title string, rows []row) {
	fmt.Fprintf(b, "\n## %s\n\n| key | value | if absent | |\n|---|---|---|---|\n", title)
	for _, r := range rows {
		absent := r.fallback("`", "`")
		switch {
		case r.required:
			absent = "*required*"
		case r.batch == allDefaults:
			absent = "its own defaults"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", r.name, cell(r.words), absent, cell(r.doc))
	}
	for _, r := range rows {
		if len(r.rows) > 0 {
			writeTable(b, "`"+r.name+"`", r.rows)
		}
	}
}

func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", ">", "&gt;").Replace(text)
}

const referenceHead = `# The job file

A job file is YAML 1.2, one job a document; several documents, parted by lines of three hyphens, may stand in one file.
JSON is YAML. ` + "`starling schema`" + ` prints the JSON Schema for editors, ` + "`starling init`" + ` writes examples that run.

Every file means the same to every reader, or it is refused:

- A text without quotes is taken letter by letter: 017, 1.10, yes and 1e3 stay as they are. Only null, ~ and nothing at
  all need quotes to be texts.
- A number is written in plain decimal digits: no 017, 0x1f, 1_000, 1e3 or +1, and no quotes.
- A quantity is exact or refused: 0.5 cores are 500m, 1.5Gi is a whole number of bytes, 0.3B is not. All but cores need
  a unit, unless they are 0.
- A name has 1 to 63 letters, digits, hyphens and underscores, and begins with a letter or digit.
- Anchors, aliases, merge keys and tags are refused, and so are keys that are unknown or there twice, and keys without a
  value. Indentation is of spaces.
- A file has at most 1 MiB.
`

const referenceChanges = `
## Changes and failures

A change of what runs (` + "`container`, `command`, `env`, `work_dir`, `user`, `resources`, `pids_limit`, `disk_limit`, `devices`, `ports`" + `,
` + "`labels`, `checks`, `volumes`, `volumes_limit`, `host_paths`, `secrets`, `id_tokens`, `stop_signal` and `disconnect.stop_after`" + ` of a
task, the plugins of the job) replaces instances, as ` + "`update`" + ` says: never more than ` + "`batch_size`" + ` of a task are without health because of it, and what
fails too often stops it or takes it back. What runs is stopped when its successor has room, its own counted as free; as long as it has
none it stays, and ` + "`starling why`" + ` says what is missing. With as many ` + "`canaries`" + ` as instances and ` + "`auto_promote`" + ` every successor is
well before anything stops, if there is room for both. A change of ` + "`constraints`" + ` or ` + "`per_machine_max`" + ` replaces only instances whose machine
does not satisfy them. Any other change is made in place, and nothing stops: that of preferences too, which are constraints with
` + "`soft`" + `, ` + "`spread_over`" + ` and ` + "`placement`" + `. Batch jobs change at once:
their instances end by themselves, and nothing waits for their health. What cannot change while a job runs is its ` + "`type`, `preemptible`" + `,
` + "`revocable`, `controller`" + ` and the jobs that it comes ` + "`after`" + `. A batch job whose tasks have no instances is idle until one gets some.

A failure is answered on two levels. First ` + "`restart`" + `: the same machine tries again, because most failures pass and
everything is there already. When those attempts are used up, or the machine lacks the program, its user or its folder,
` + "`reschedule`" + `: the instance moves, and the machine where it failed is avoided. A service does so without end and ever
more slowly, since nothing else would start it again; a batch instance once a day, since a program that fails on two machines
is wrong; a daemon instance never, since it belongs to its machine, which therefore restarts it without end.

With ` + "`policies`" + ` a job or a task says otherwise. Something happens to an instance, or comes to pass in a task; the first policy
that is about it wins, those of the task before those of the job, and does what it says instead of ` + "`restart`" + `. To restart a task or
a job means to end all its instances and to let each begin anew, when the last of the old ones has gone: nothing of the new life
runs beside something of the old. Of a task that others come after, those begin anew, too. Each has a budget: an instance
the ` + "`attempts`" + ` of its ` + "`restart`" + `, failures in a row; a task and a job ` + "`max_restarts`" + `, in one version. Beyond it the job has failed.
After ` + "`abort`" + ` the job waits for ` + "`starling job resume`" + `; after ` + "`terminate`" + ` and ` + "`complete`" + ` it has ended, and what ran of it is stopped.

What has a ` + "`delay`" + ` follows if it is still so then: not if an instance that was evicted has a machine again, if a task that was complete is
to have more instances or has lost an output, or if all began anew. Until then a job does not end by itself, even if nothing is
left to run: with ` + "`{on: task_completed, action: restart_job, delay: 1h}`" + ` it begins anew an hour after its end, ` + "`max_restarts`" + ` times. A job that
is suspended does not end by itself either, and no delay passes meanwhile; when it is resumed, what had failed begins anew, and so
does the wait after a task that is complete. A policy that comes with a new version is about tasks that are complete already, too.

When a machine leaves the cluster, its instances are given up at once and replaced, unless ` + "`disconnect`" + ` says otherwise.
Of a stateful job no two instances of one number may live, so its machine stops them by itself when it has been without
the cluster for ` + "`stop_after`" + `, and the replacement waits for that. An instance whose machine may return (` + "`lost_after`" + `, ` + "`stop_after`" + `) is not
evicted as long as it may: policies hear of it when that time is over, and only if no replacement has been started by then.
`

const referenceEnvironment = `
## What a task finds in its environment

| variable | |
|---|---|
| ` + "`STARLING_JOB`, `STARLING_TASK`" + ` | the names of the job, with the path of its pool, and of the task |
| ` + "`STARLING_POOL`" + ` | the path of the job's pool; jobs that name none are in default |
| ` + "`STARLING_INDEX`, `STARLING_INSTANCES`" + ` | the number of the instance, from 0, and how many there are |
| ` + "`STARLING_ALLOCATION`" + ` | this attempt to run it, such as web.server[2]#4711; no two are alike |
| ` + "`STARLING_NODE`, `STARLING_API`" + ` | the machine, and where its peer answers |
| ` + "`STARLING_PORT_<NAME>`" + ` | the number of each port; the name is in capitals, with "_" for "-" |
| ` + "`STARLING_VOLUME_<NAME>`" + ` | the folder of each volume |
| ` + "`STARLING_CREDENTIALS`" + ` | the file with which the instance shows its peer who it is, and may ask what ` + "`starling`" + ` asks for it |
| ` + "`STARLING_ID_TOKEN_<NAME>`" + ` | the file with each of its ` + "`id_tokens`" + `; read it again whenever one is needed |
| ` + "`STARLING_OUTPUT`" + ` | in a job whose tasks come after each other: the folder for what the tasks after this one are to have, empty at the start; at most 10,000 files and folders with 64 GiB, and no links. The size is looked at every ten seconds, and an instance that has written more is stopped and has failed; what is written between two looks is not bounded, so leave that much room on the disk. What no task comes after stays on its machine until the job is forgotten; ` + "`starling job output`" + ` copies it |
| ` + "`STARLING_INPUT`" + ` | in a task that comes after others: a folder with those of them, ` + "`TASK/INDEX/`" + `; only to be read |
| ` + "`STARLING_DEVICES_<KIND>`" + ` | the numbers of the devices of each kind, with commas between |
| ` + "`CUDA_VISIBLE_DEVICES`, `NVIDIA_VISIBLE_DEVICES`, `ROCR_VISIBLE_DEVICES`" + ` | the GPUs, as programs of their vendor call them, unless the job sets that itself; in a container what a CDI spec of the machine sets wins |
| ` + "`STARLING_DEVICE_SHARE_<KIND>`" + ` | the share of a device, such as 0.5, if less than one was asked for |
| ` + "`PATH`, `HOME`" + ` | the usual folders, and the home of the account that the program runs as, or a fresh folder; ` + "`env`" + ` may set them, and an image has its own |

## What members of a job find about each other

A job with ` + "`plugins`" + ` tells each instance which the others are. All that an instance starts with is of one version of the list, and
the version is the entry of the journal with which the list became so: an instance got a node, left it, ended for good, or the
number changed. Variables stay as they were at the start; files follow, within moments, and then the task's
` + "`on_members_change`" + ` is sent to the program. What the file of a job sets in ` + "`env`" + ` itself wins over plugins.

| plugin | gives | arguments |
|---|---|---|
| ` + "`svc`" + ` | the files, ` + "`STARLING_MEMBERS`" + ` with their folder, ` + "`STARLING_MEMBERS_VERSION`, `STARLING_COUNT_<TASK>`, `STARLING_HOSTS_<TASK>`" + ` | ` + "`hosts_env`" + `: whether to give the hosts as variables, true; ` + "`dns`" + `: members connect by their names in DNS, which the machines look up, and not by address, false |
| ` + "`env`" + ` | ` + "`STARLING_ADDRESSES`" + `: the addresses of the instances of the task | |
| ` + "`pytorch`" + ` | ` + "`MASTER_ADDR`, `MASTER_PORT`, `RANK`, `WORLD_SIZE`" + ` | ` + "`master`, `worker`" + `: the tasks; ` + "`port`" + `: a number, or the name of a port of the master |
| ` + "`tensorflow`" + ` | ` + "`TF_CONFIG`" + ` | ` + "`chief`, `evaluator`, `ps`, `worker`, `port`" + ` |
| ` + "`ray`" + ` | ` + "`STARLING_RAY_START`" + `: what to call ray start with | ` + "`head`, `worker`, `port`, `dashboard_port`, `client_port`" + ` |
| ` + "`ssh`" + ` | what ` + "`svc`" + ` gives, and in the folder ` + "`ssh`" + ` the keys of the job and configurations that name them: ` + "`STARLING_SSH_CONFIG`" + ` for clients, ` + "`STARLING_SSHD_CONFIG`" + ` for servers | ` + "`port`" + `: a number, or the name of a port of those that others log in to, 22 |
| ` + "`mpi`" + ` | what ` + "`ssh`" + ` gives; to the masters ` + "`MPI_HOST`" + ` and the file ` + "`hostfile`" + ` with the workers, and what ` + "`mpirun`" + ` of Open MPI needs to find them by itself | ` + "`master`" + `, ` + "`worker`" + `: the tasks; ` + "`slots`" + ` of each worker, 1 |

With ` + "`ssh`" + ` members log in to each other by ` + "`ssh -F $STARLING_SSH_CONFIG worker-0`" + `, which knows where each is and by which key its server is
known, and tries again for a quarter of a minute if that has not begun yet. A member that lets others in starts a server of its own, as
` + "`/usr/sbin/sshd -D -e -f $STARLING_SSHD_CONFIG`" + `. One of root needs the folder ` + "`/run/sshd`" + `, and refuses accounts whose password is locked.
What it starts counts to the instance and ends with it, but has an environment of its own: what is to be in that is said by
` + "`-o \"SetEnv=TMPDIR=$PWD NAME=$NAME\"`" + `. All machines derive the same keys for a job from the secret of the cluster: an agent without
it (` + "`secret_file`" + `), or with another than most nodes have, fails to start such instances and says so.

With ` + "`mpi`" + ` a master starts when one worker has a node at least, or all that start together by ` + "`min_available`" + `, and runs programs on them by
` + "`mpirun PROGRAM`" + `. Give each member a ` + "`TMPDIR`" + ` of its own, such as ` + "`TMPDIR=$PWD`" + `: Open MPI calls its files there by the number of a process,
which instances may have in common. ` + "`starling init mpi`" + ` writes an example.

The files are ` + "`members.json`" + `, all that is known, with the version; ` + "`<task>.hosts`" + `, a host a line, without those that wait for a node;
and ` + "`hosts`" + `, addresses and names in DNS as in /etc/hosts. The folder is replaced as a whole: a program that resolves its path once,
as ` + "`cd -P`" + ` does, reads all files of one version, and has a minute for that, however many newer ones come (up to a thousand). An instance that needs to
know where another is, such as the master, starts when that has a node.

Instances have names in DNS as well, ` + "`3.worker.train.ml.starling`" + ` for ml/train.worker[3], which peers with ` + "`--dns`" + ` answer.
`

const referenceIDTokens = `
## Who an instance is, for others

A task with ` + "`id_tokens`" + ` finds a signed token (JWT) for each audience, in a file of its own, and another in its place when two thirds of
the token's ` + "`life`" + ` are over; the instance goes on meanwhile. Programs such as Vault, or a cloud's token service, take it instead of a
secret that would have to be handed out. It says in ` + "`sub`" + ` which instance shows it, as in
` + "`spiffe://CLUSTER/analytics/etl/nightly/read/3`" + `, and also has ` + "`starling_job`, `starling_task`, `starling_index`, `starling_allocation`" + `
and ` + "`starling_node`" + `. Such an instance starts when it has its tokens: a machine of the cluster that holds the authority's key has to
answer for that (` + "`starling token create --keeper`" + `). Who takes tokens finds the keys at any peer: docs/security.md says how.
`

const referencePools = `# The pools file

A pools file is read like a job file, and holds the whole tree in one document of at most 4 MiB. What pools below another
reserve is part of what that reserves, and none has a limit above its parent's. ` + "`starling pool dump`" + ` writes the tree that
there is as such a file, ` + "`starling pool apply`" + ` makes a file the tree, ` + "`starling schema pools`" + ` prints the JSON Schema.
`
