package replica

import (
	"crypto/sha256"
	"strings"
	"testing"

	"starling/command"
	"starling/terms"
	"starling/terms/access"
	"starling/terms/rules"
)

// TestUsersOfPools submits and reverts jobs that name users, in the order of the rows.
func TestUsersOfPools(t *testing.T) {
	s := clusterOf(1)
	s.Rules = rules.Authorities
	seq := uint64(1)
	do := func(who access.Subject, c command.Command) string {
		seq++
		if who.Kind != access.OfAnyone {
			c = &command.As{Subject: who, Command: c}
		}
		outcome := Apply(s, s.Index+1, &command.Entry{Rules: s.Rules, Writer: "m00000~1", Seq: seq, Time: 1000,
			Commands: []command.Command{c}}, false)
		return outcome.Results[0].Refusal.Reason
	}
	user := func(name string) access.Subject { return access.Subject{Kind: access.OfUser, Name: name} }
	nobody, root := access.Subject{}, access.Subject{Kind: access.OfLocal, Name: "root@m00000"}
	add := func(name string, role access.Role) command.Command {
		return &command.AddUser{RequestID: "add" + name, Credential: access.Credential{Kind: access.OfUser, Name: name,
			Role: role, Key: sha256.Sum256([]byte(name))}}
	}
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
		{"", nobody, add("alice", access.Submitter), ""},
		{"", nobody, add("ada", access.Admin), ""},
		{"", nobody, pools(map[terms.PoolPath][]string{"db": {"postgres", "*"}, "db/x": {"postgres", "root"}, "db/y": nil,
			"own": nil, "own/x": {"root"}}), ""},
		{"a user of its own", user("alice"), submit("a", "", "a", 1, 0), ""},
		{"a user without a pool's word", user("alice"), submit("b", "www", "a", 1, 0),
			"task main is to run as user www, which pool default does not let its jobs"},
		{"an admin", user("ada"), submit("b", "root", "a", 1, 0), ""},
		{"another number", user("alice"), submit("b", "root", "a", 2, 1), ""},
		{"another program", user("alice"), submit("b", "root", "b", 2, 2), "as user root"},
		{"no user any more", user("alice"), submit("b", "", "b", 2, 2), ""},
		{"back to root", user("alice"), &command.RevertJob{Job: "b", Against: 3, To: 2}, "as user root"},
		{"back to root by an admin", root, &command.RevertJob{Job: "b", Against: 3, To: 2}, ""},
		{"what the pool above has", user("alice"), submit("db/y/a", "postgres", "a", 1, 0), ""},
		{"any", user("alice"), submit("db/y/b", "1000", "a", 1, 0), ""},
		{"any but root", user("alice"), submit("db/y/c", "root", "a", 1, 0), "which pool db does not let its jobs"},
		{"any but root's number", user("alice"), submit("db/y/c", "00", "a", 1, 0), "which pool db does not let its jobs"},
		{"fewer than above", user("alice"), submit("db/x/a", "www", "a", 1, 0), "which pool db/x does not let its jobs"},
		{"more than above", user("alice"), submit("db/x/a", "root", "a", 1, 0), "which pool db does not let its jobs"},
		{"where nothing above says any", user("alice"), submit("own/x/a", "root", "a", 1, 0), "which pool own does not"},
	} {
		if got := do(c.who, c.does); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: refused because %q, want %q", c.what, got, c.want)
		}
	}
}
