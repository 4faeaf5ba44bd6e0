package jobspec

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"starling/terms"
	"starling/terms/pool"
)

// poolsFile is a file that holds a whole tree of pools.
type poolsFile struct{ Pools []terms.Pool }

// ParsePools reads a pools file: YAML 1.2 (or JSON), one document with the whole tree, in any order. The pool
// terms.DefaultPool may be left out of it: then the tree that is returned is without it. The error, if any, is of type
// Errors.
func ParsePools(file string, data []byte) (pool.Tree, error) {
	var tree pool.Tree
	documents := 0
	found := eachDocument(file, data, PoolsBytesMax, func(r *reader, root *yaml.Node) {
		var f poolsFile
		at := place{node: root}
		poolsForm().read(r, at, &f)
		if documents++; documents > 1 {
			r.fail(at, "one document holds the whole tree: write its pools into that at the top of the file")
			return
		}
		tree = pool.New(f.Pools)
		r.treeProblems(at, f.Pools)
	})
	switch {
	case len(found) > errorsMax:
		return nil, found[:errorsMax]
	case len(found) > 0:
		return nil, found
	case documents == 0:
		return nil, Errors{{File: file, Line: 1, Column: 1,
			Reason: "holds no pools: `starling pool dump` writes those that there are"}}
	}
	return tree, nil
}

// treeProblems adds what is wrong with the pools as a tree. Its paths begin with those of pools.
func (r *reader) treeProblems(root place, pools []terms.Pool) {
	at := map[terms.PoolPath]string{}
	for i := range pools {
		known := fmt.Sprintf("pools[%d]", i)
		path := r.place(root, known+".path")
		switch first, twice := at[pools[i].Path]; {
		case twice:
			r.fail(path, "%s stands at line %d already", pools[i].Path, r.place(root, first).node.Line)
		case !r.hasFailed(known + ".path"):
			at[pools[i].Path] = known
		}
	}
	if len(at) < len(pools) {
		return // the rules are about a tree
	}
	if _, given := at[terms.DefaultPool]; !given {
		pools = append([]terms.Pool{terms.NewPool(terms.DefaultPool)}, pools...)
	}
	above := poolsAbove(at)
	for _, problem := range pool.New(append(pools, above...)).Problems(nil) {
		known := inFile(at, problem.Path)
		if r.hasFailed(known) || known == "pools" && len(above) > 0 { // what stands above the cluster knows
			continue
		}
		where := r.place(root, known)
		where.shown = problem.Path
		r.complain(shortened(where), problem.Reason)
	}
}

// poolsAbove returns the pools above those of a file with a part of the tree, where the file has none above.
func poolsAbove(at map[terms.PoolPath]string) (all []terms.Pool) {
	for path := range at {
		var above []terms.Pool
		for path, _ = pool.Split(path); path != ""; path, _ = pool.Split(path) {
			if _, given := at[path]; given || path == terms.DefaultPool {
				above = nil
				break
			}
			above = append(above, terms.NewPool(path))
		}
		all = append(all, above...)
	}
	return slices.CompactFunc(pool.New(all), func(a, b terms.Pool) bool { return a.Path == b.Path })
}

// inFile turns a path that begins with that of a pool into the path of the value in the file.
func inFile(at map[terms.PoolPath]string, path string) string {
	for end := len(path); end >= 0; end = strings.LastIndexByte(path[:end], '.') {
		if known, ok := at[terms.PoolPath(path[:end])]; ok && end == len(path) {
			return known + ".path"
		} else if ok {
			return known + path[end:]
		}
	}
	return "pools"
}

// FormatPools writes a tree as a pools file, from which ParsePools reads the same tree. What every pool has that states
// nothing else is left out.
func FormatPools(tree pool.Tree) []byte {
	if len(tree) == 0 {
		return []byte("pools: []\n")
	}
	root := poolsForm().write(&poolsFile{Pools: tree})
	for i, n := range value(root, "pools").Content {
		usual := terms.NewPool(tree[i].Path)
		omit(n, poolForm().write(&usual), "path")
	}
	compact(root)
	data, err := yaml.Dump(root, yaml.WithLineWidth(-1))
	if err != nil {
		panic("jobspec: pools cannot be written: " + err.Error()) // they are made of texts and numbers
	}
	return data
}

// omit takes out of a mapping what is as usual, but for one key.
func omit(n, usual *yaml.Node, but string) {
	for _, key := range keys(usual, usual) {
		own, other := value(n, key), value(usual, key)
		if own == nil || key == but {
			continue
		}
		if own.Kind == yaml.MappingNode {
			omit(own, other, but)
		}
		if inline(own) == inline(other) || own.Kind == yaml.MappingNode && len(own.Content) == 0 {
			without(n, key)
		}
	}
}

// DiffPools lists what differs between two forms of a pool, in the order of pools files: "cpu.limit".
func DiffPools(from, to *terms.Pool) []Change {
	d := &comparison{}
	d.mappings("", poolForm().write(from), poolForm().write(to))
	return d.changes
}

// PoolsSchema returns the JSON Schema (draft-07) of a pools file.
func PoolsSchema() []byte {
	return schemaOf("Starling pools", "The tree of resource pools of a Starling cluster.", poolsForm().schema)
}

func poolsForm() form[poolsFile] {
	return mapping([]field[poolsFile]{
		bind(list(poolForm(), 0, pool.SizeMax), func(f *poolsFile) *[]terms.Pool { return &f.Pools }).
			named("pools", "All pools but the root, in any order. Pools that are not here are deleted, but for "+
				string(terms.DefaultPool)+", which stays as it is.").must(),
	}, nil)
}

// poolForm is one pool.
func poolForm() form[terms.Pool] {
	type spec = terms.Pool
	fields := []field[spec]{
		bind(text[terms.PoolPath]("the names that lead to the pool, as in analytics/etl",
			pair{"pattern", fmt.Sprintf(`^%[1]s(/%[1]s){0,%[2]d}$`, `[A-Za-z0-9][A-Za-z0-9_-]{0,62}`, terms.PathDepthMax-1)}),
			func(s *spec) *terms.PoolPath { return &s.Path }).
			named("path", "The names that lead to the pool. Jobs live in pools with none below.").must(),
	}
	for k := range terms.AmountCount {
		fields = append(fields, bind(quotaForm(amountForm(k)), func(s *spec) *terms.Quota { return &s.Quotas[k] }).
			named(k.String(), quotaWords()[k]).or(allDefaults))
	}
	percent := whole[terms.Percent](0, 100)
	return mapping(append(fields,
		bind(orWord("unlimited", terms.NoPercent, percent), func(s *spec) *terms.Percent { return &s.ControllerLimit }).
			named("controller_limit", "How much of the reservation the instances that lead others may hold, in percent.").or("unlimited"),
		bind(percent, func(s *spec) *terms.Percent { return &s.SlackLimit }).
			named("slack_limit", "How much of the reservation revocable work may hold, in percent, but of cpu, of which it uses what nothing holds.").or(fmt.Sprint(terms.SlackPercentDefault)),
		bind(durationForm(terms.DelayMillisMax), func(s *spec) *uint32 { return &s.PreemptionDelayMillis }).
			named("preemption_delay", "How long work that the pool is entitled to waits for room before others give way.").or(terms.FormatDuration(terms.PreemptionDelayMillisDefault)),
		bind(choice[terms.JobScheduler](terms.JobSchedulers()), func(s *spec) *terms.JobScheduler { return &s.JobScheduler }).
			named("job_scheduler", "To which job the next virtual peer of the pool goes: priority to the highest, then the oldest; greedy to the oldest that can use it; round-robin to the one with the fewest; percentage by their percent, so that what is no job's part stays idle.").or("priority"),
		bind(list(anyText(), 0, pool.OwnersMax), func(s *spec) *[]string { return &s.Owners }).
			named("owners", "The users to whom the pool belongs: they rule the pools below it, and never what it may have itself."),
		bind(list(anyText(), 0, pool.OwnersMax), func(s *spec) *[]string { return &s.Operators }).
			named("operators", "The users who may end single instances in the pool and below it, besides what submitters may."),
		bind(list(anyText(), 0, pool.OwnersMax), func(s *spec) *[]string { return &s.Submitters }).
			named("submitters", "The users who may run, change and stop jobs in the pool and below it."),
		bind(list(anyText(), 0, pool.OwnersMax), func(s *spec) *[]string { return &s.Viewers }).
			named("viewers", "The users who may see the jobs in the pool and below it."),
		bind(list(anyText(), 1, pool.OwnersMax), func(s *spec) *[]string { return &s.RunAs }).
			named("run_as", "The users of the machines as which jobs in the pool and below it may run, besides those of their own; \"*\" is all but root. A pool below has what the one above has, unless it names fewer."),
		bind(list(nameForm[string](), 1, pool.OwnersMax), func(s *spec) *[]string { return &s.HostPaths }).
			named("host_paths", "The host paths of the machines that jobs in the pool and below it may use: none without it. A pool below has what the one above has, unless it names fewer."),
		bind(list(nameForm[string](), 1, pool.OwnersMax), func(s *spec) *[]string { return &s.DeviceKinds }).
			named("devices", "The kinds of devices that jobs in the pool and below it may ask for, as in gpu: all without it. A pool below has what the one above has, unless it names fewer."),
		bind(list(text[string]("a capability", pair{"enum", terms.Capabilities()}), 1, terms.CapabilitiesMax),
			func(s *spec) *[]string { return &s.Capabilities }).
			named("capabilities", "The capabilities of the kernel that containers in the pool and below it may have beside the usual ones, as in NET_ADMIN: none without it. Some of them, such as SYS_ADMIN, are all that root may do on the machine. A pool below has what the one above has, unless it names fewer."),
		bind(orWord("default", 0, amountForm(terms.Disk)), func(s *spec) *int64 { return &s.SpecBytes }).
			named("spec_bytes", "How much of the journal's room the specs of the pool's jobs may take that have not ended, with all versions that are kept of them. By default that is "+terms.Disk.Text(terms.SpecBytesDefault)+".").or("default"),
	), nil)
}

// quotaWords say of each kind what its quota is about.
func quotaWords() [terms.AmountCount]string {
	return [...]string{
		"What the pool may have of the processor.", "What the pool may have of the memory.",
		"What the pool may have of the disk space.",
		"What the pool may have of the GPUs: whole ones or parts, as in 0.5.",
		"What the pool may have of the virtual peers, for jobs that share them.",
	}
}

// quotaForm is what a pool may have of a kind.
func quotaForm(amount form[int64]) form[terms.Quota] {
	return mapping([]field[terms.Quota]{
		bind(amount, func(q *terms.Quota) *int64 { return &q.Reservation }).
			named("reservation", "What the pool is promised; what lies idle of it is lent.").or("0"),
		bind(orWord("unlimited", terms.Unlimited, amount), func(q *terms.Quota) *int64 { return &q.Limit }).
			named("limit", "What the pool never exceeds by new work; what runs when the limit is made less stays.").or("unlimited"),
		bind(whole[int64](0, pool.ShareMax), func(q *terms.Quota) *int64 { return &q.Share }).
			named("share", "The pool's weight when what is free is divided; with 0 it gets its reservation and no more.").or("1"),
		bind(truthForm(), func(q *terms.Quota) *bool { return &q.Static }).
			named("static", "Whether the reservation is kept for the pool even while it is idle.").or("false"),
	}, nil)
}

// amountForm is an amount of a kind, of which pools may have more than any job could ask for.
func amountForm(k terms.Kind) form[int64] {
	q := quantity{words: bytesWords, pattern: bytesPattern, parse: ParseBytes, bare: object{{"const", 0}}, format: k.Text}
	number := object{{"type", "number"}, {"minimum", 0}}
	switch k {
	case terms.CPU:
		q.words, q.pattern, q.bare = cpuWords, cpuPattern, number
		q.parse = func(text string) (int64, error) { return parseCPU(text, terms.BytesMax) }
	case terms.GPU, terms.VirtualPeers:
		q.words, q.pattern, q.bare = devicesWords, `^`+decimalPattern+`$`, number
		q.parse = func(text string) (int64, error) { return parseDevices(text, terms.BytesMax) }
	}
	return quantityForm[int64](q)
}

// compact puts values that hold only scalars into one line, as people write them, unless they are long.
func compact(n *yaml.Node) {
	const bytesMax = 80
	bytes, flat := 0, true
	for _, child := range n.Content {
		compact(child)
		flat = flat && child.Kind == yaml.ScalarNode
		bytes += len(child.Value) + 2
	}
	if n.Kind != yaml.ScalarNode && flat && bytes < bytesMax {
		n.Style = yaml.FlowStyle
	}
}
