package replica

import (
	"crypto/sha256"
	"strings"
	"testing"

	"starling/command"
	"starling/terms"
	"starling/terms/access"
	"starling/terms/constraint"
	"starling/terms/rules"
)

// TestUsersOfPools submits and reverts jobs that name users, in the order of the rows.
func TestUsersOfPools(t *testing.T) {
	do := judgedBy(rules.Authorities)
	nobody, root := access.Subject{}, access.Subject{Kind: access.OfLocal, Name: "root@m00000"}
	submit := func(name, user, program string, size, against uint32) command.Command {
		c := benchJob(name, size, terms.Pack, 1)
		c.Spec.Type, c.Against = terms.Stateless, against
		c.Spec.Tasks[0].User, c.Spec.Tasks[0].Command = user, []string{program}
		return c
	}
	pools := func(of map[terms.PoolPath][]string) command.Command {
		c := &command.ChangePools{}
		for path, users := range of {
			one := terms.NewPool(path)
			one.RunAs = users
			c.Pools = append(c.Pools, one)
		}
		return c
	}
	for _, c := range []struct {
		what string
		who  access.Subject
		does command.Command
		want string
	}{
		{"", nobody, addUser("alice", access.Submitter), ""},
		{"", nobody, addUser("ada", access.Admin), ""},
		{"", nobody, pools(map[terms.PoolPath][]string{"db": {"postgres", "*"}, "db/x": {"postgres", "root"}, "db/y": nil,
			"own": nil, "own/x": {"root"}}), ""},
		{"a user of its own", alice, submit("a", "", "a", 1, 0), ""},
		{"a user without a pool's word", alice, submit("b", "www", "a", 1, 0),
			"task main is to run as user www, which pool default does not let its jobs"},
		{"an admin", ada, submit("b", "root", "a", 1, 0), ""},
		{"another number", alice, submit("b", "root", "a", 2, 1), ""},
		{"another program", alice, submit("b", "root", "b", 2, 2), "as user root"},
		{"no user any more", alice, submit("b", "", "b", 2, 2), ""},
		{"back to root", alice, &command.RevertJob{Job: "b", Against: 3, To: 2}, "as user root"},
		{"back to root by an admin", root, &command.RevertJob{Job: "b", Against: 3, To: 2}, ""},
		{"what the pool above has", alice, submit("db/y/a", "postgres", "a", 1, 0), ""},
		{"any", alice, submit("db/y/b", "1000", "a", 1, 0), ""},
		{"any but root", alice, submit("db/y/c", "root", "a", 1, 0), "which pool db does not let its jobs"},
		{"any but root's number", alice, submit("db/y/c", "00", "a", 1, 0), "which pool db does not let its jobs"},
		{"fewer than above", alice, submit("db/x/a", "www", "a", 1, 0), "which pool db/x does not let its jobs"},
		{"more than above", alice, submit("db/x/a", "root", "a", 1, 0), "which pool db does not let its jobs"},
		{"where nothing above says any", alice, submit("own/x/a", "root", "a", 1, 0), "which pool own does not"},
	} {
		if got := do(c.who, c.does); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: refused because %q, want %q", c.what, got, c.want)
		}
	}
}

// judgedBy makes a cluster of one machine under a number of the rules, and returns what tells why somebody's command is
// refused there, "" if it is obeyed.
func judgedBy(in rules.Number) func(who access.Subject, c command.Command) string {
	s, seq := clusterOf(1), uint64(1)
	s.Rules = in
	return func(who access.Subject, c command.Command) string {
		seq++
		if who.Kind != access.OfAnyone {
			c = &command.As{Subject: who, Command: c}
		}
		outcome := Apply(s, s.Index+1, &command.Entry{Rules: s.Rules, Writer: "m00000~1", Seq: seq, Time: 1000,
			Commands: []command.Command{c}}, false)
		return outcome.Results[0].Refusal.Reason
	}
}

var (
	alice = access.Subject{Kind: access.OfUser, Name: "alice"}
	ada   = access.Subject{Kind: access.OfUser, Name: "ada"}
)

func addUser(name string, role access.Role) command.Command {
	return &command.AddUser{RequestID: "add" + name, Credential: access.Credential{Kind: access.OfUser, Name: name,
		Role: role, Key: sha256.Sum256([]byte(name))}}
}

// TestFoldersAndDevicesOfPools submits jobs that name host paths and devices, in the order of the rows.
func TestFoldersAndDevicesOfPools(t *testing.T) {
	do, nobody := judgedBy(rules.HostPaths), access.Subject{}
	may := func(name, capability string) command.Command {
		c := benchJob(name, 1, terms.Pack, 1)
		c.Spec.Tasks[0].Container = terms.Container{Image: "app:1", Capabilities: []string{capability}}
		c.Spec.Tasks[0].AskForNodes()
		return c
	}
	submit := func(name, host string, devices ...string) command.Command {
		c := benchJob(name, 1, terms.Pack, 1)
		if host != "" {
			c.Spec.Tasks[0].HostPaths = []terms.HostPath{{Name: host}}
			c.Spec.Tasks[0].AskForNodes()
		}
		for _, kind := range devices {
			c.Spec.Tasks[0].Devices = append(c.Spec.Tasks[0].Devices,
				terms.DeviceRequest{Kind: kind, Amount: terms.WholeDevice})
		}
		return c
	}
	pools := &command.ChangePools{}
	for _, one := range []terms.Pool{
		{Path: "cpu", DeviceKinds: []string{"fpga"}},
		{Path: "cpu/x", HostPaths: []string{"data"}, DeviceKinds: []string{"gpu"}},
		{Path: "ml", HostPaths: []string{"data", "scratch"}},
		{Path: "ml/x", HostPaths: []string{"data"}, DeviceKinds: []string{"gpu"}}, {Path: "ml/y"},
		{Path: "net", Capabilities: []string{"NET_ADMIN", "NET_RAW"}}, {Path: "net/x", Capabilities: []string{"NET_RAW"}},
	} {
		made := terms.NewPool(one.Path)
		made.HostPaths, made.DeviceKinds, made.Capabilities = one.HostPaths, one.DeviceKinds, one.Capabilities
		pools.Pools = append(pools.Pools, made)
	}
	for _, c := range []struct {
		what string
		who  access.Subject
		does command.Command
		want string
	}{
		{"", nobody, addUser("alice", access.Submitter), ""},
		{"", nobody, addUser("ada", access.Admin), ""},
		{"", nobody, pools, ""},
		{"a host path of no pool", alice, submit("h", "data"),
			"task main is to use host path data, which pool default does not let its jobs: ask an admin to name it in host_paths"},
		{"a host path of no pool by an admin", ada, submit("h", "data"), ""},
		{"one of the pool above", alice, submit("ml/y/a", "scratch"), ""},
		{"one that only the pool above has", alice, submit("ml/x/a", "scratch"), "which pool ml/x does not let"},
		{"one that only the pool below has", alice, submit("cpu/x/a", "data"), "which pool cpu does not let"},
		{"any device where none is named", alice, submit("ml/y/b", "", "fpga", "gpu"), ""},
		{"a device of the list", alice, submit("ml/x/b", "", "gpu"), ""},
		{"another device", alice, submit("ml/x/c", "", "fpga", "gpu"),
			"task main asks for devices of kind fpga, which pool ml/x does not let its jobs"},
		{"a capability of no pool", alice, may("c", "SYS_ADMIN"),
			"the container of task main is to have capability SYS_ADMIN, which pool default does not let its jobs"},
		{"a capability of no pool by an admin", ada, may("c", "SYS_ADMIN"), ""},
		{"one of the pool", alice, may("net/x/a", "NET_RAW"), ""},
		{"one of the pool above alone", alice, may("net/x/b", "NET_ADMIN"), "which pool net/x does not let its jobs"},
		{"a device that the pool above lacks", alice, submit("cpu/x/b", "", "gpu"), "which pool cpu does not let"},
	} {
		if got := do(c.who, c.does); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: refused because %q, want %q", c.what, got, c.want)
		}
	}
}

// TestNewMachineWaits gives the name of a node to another machine: not before what must not run twice has stopped
// itself on the one before.
func TestNewMachineWaits(t *testing.T) {
	for in, want := range map[rules.Number]string{rules.NewMachines - 1: "",
		rules.NewMachines: "the machine that node m00001 was may still run db.main[0], and has certainly stopped it in 36 s"} {
		s, seq := clusterOf(2), uint64(1)
		s.Rules = in
		now := terms.Time(1000)
		do := func(all ...command.Command) string {
			seq++
			got := Apply(s, s.Index+1, &command.Entry{Rules: s.Rules, Writer: "m00000~1", Seq: seq, Time: now,
				Commands: all}, false)
			return got.Results[len(all)-1].Refusal.Reason
		}
		job := benchJob("db", 1, terms.Pack, 1)
		job.Spec.Type, job.Spec.Tasks[0].Disconnect.StopAfterMillis = terms.Stateful, 30_000
		job.Spec.Tasks[0].Constraints = []constraint.Constraint{{Attribute: "rack", Operator: constraint.Equal,
			Values: []string{"1"}}}
		token := access.Token{ID: "00000000000000aa", Uses: 2}
		for _, c := range []command.Command{job, &command.AddToken{Token: token, LifeMillis: 600_000},
			&command.Leave{Peer: "m00001~1"}} {
			if refused := do(c); refused != "" {
				t.Fatal(refused)
			}
		}
		admit := &command.AdmitNode{Node: "m00001", Key: access.Key{7}, Token: token.ID}
		if got := do(admit); got != "" != (want != "") || !strings.Contains(got, want) {
			t.Errorf("under %d it is refused because %q, want %q", in, got, want)
		}
		now += 36_000
		admit.Key = access.Key{8}
		if got := do(&command.TellTime{}, admit); got != "" {
			t.Errorf("under %d it is refused afterwards, too: %s", in, got)
		}
	}
}

// TestDaemonsByOperators submits daemons, which pools do not bound.
func TestDaemonsByOperators(t *testing.T) {
	for in, want := range map[rules.Number]string{
		rules.DaemonsByOperators - 1: "",
		rules.DaemonsByOperators:     "a daemon takes room on all nodes, whatever its pool may have: this needs the role operator",
	} {
		do := judgedBy(in)
		every := benchJob("every", 0, terms.Pack, 1)
		every.Spec.Type, every.Spec.Tasks[0].Instances = terms.Daemon, 1
		do(access.Subject{}, addUser("alice", access.Submitter))
		do(access.Subject{}, addUser("ada", access.Operator))
		if got := do(alice, every); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("under number %d: refused because %q, want %q", in, got, want)
		}
		every.Spec.Name = "other"
		if got := do(ada, every); got != "" {
			t.Errorf("under number %d: an operator is refused because %q", in, got)
		}
	}
}

// TestOwnersRaiseNoSpecs lets the owner of a pool divide it, with as much room for specs as it has.
func TestOwnersRaiseNoSpecs(t *testing.T) {
	pools := func(path terms.PoolPath, bytes int64, owners ...string) command.Command {
		p := terms.NewPool(path)
		p.SpecBytes, p.Owners = bytes, owners
		return &command.ChangePools{Pools: []terms.Pool{p}}
	}
	do, nobody := judgedBy(rules.PoolShares), access.Subject{}
	before := judgedBy(rules.PoolShares - 1)
	for _, c := range []struct {
		who  access.Subject
		does command.Command
		want string
	}{
		{nobody, addUser("alice", access.NoRole), ""},
		{nobody, pools("team", 256<<20, "alice"), ""},
		{alice, pools("team/x", 100<<30), "pool team/x is to keep specs of 100Gi, and may keep 256Mi as the pool above it"},
		{alice, pools("team/x", 256<<20), ""},
		{alice, pools("team/y", 0), ""},
		{nobody, pools("team/y", 100<<30), ""},
		{alice, pools("team/y", 50<<30), ""}, // less than an admin gave
	} {
		got := do(c.who, c.does)
		if !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%+v: refused because %q, want %q", c.does, got, c.want)
		}
		if was := before(c.who, c.does); was != "" {
			t.Errorf("%+v: earlier rules refuse it: %s", c.does, was)
		}
	}
}
