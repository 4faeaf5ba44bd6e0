package etcd_test

import (
	"testing"

	"starling/journal"
	"starling/journal/etcd"
)

// TestWays lets a journal in use change its way to the engine, from outside through a member and back, while one
// follows it and its pulse beats: nothing is lost or comes twice, and the pulse lives on.
func TestWays(t *testing.T) {
	t.Parallel()
	m := single(t)
	config := etcd.ClientConfig{Endpoints: []string{m.ClientURL()}}
	j, other := opened(t, config), opened(t, config)
	p, err := j.Pulse(limited(t), "p", pulseTTL, false)
	must(t, err)
	w, r := writer{t: t, journal: other}, follow(t, j)
	w.append(3)
	r.expect(3)
	j.UseMember(m)
	if !j.UsesMember() {
		t.Error("the journal does not use the member")
	}
	w.append(3)
	r.expect(6)
	must(t, p.Publish(limited(t), []byte("inside")))
	must(t, j.UseClient(config))
	w.append(3)
	r.expect(9)
	must(t, p.Confirm(limited(t)))
	head, err := j.Head(limited(t))
	must(t, err)
	if head != 9 || j.UsesMember() {
		t.Errorf("got head %d, want 9 from outside", head)
	}
}

// TestBelow keeps journals on one engine apart.
func TestBelow(t *testing.T) {
	t.Parallel()
	j := single(t).Journal()
	below := j.Below("below/")
	must(t, j.Append(limited(t), journal.Record{Writer: "w", Seq: 1, Payload: []byte("x")}))
	if head, err := below.Head(limited(t)); head != 0 || err != nil {
		t.Errorf("got head %d and %v, want none", head, err)
	}
	must(t, below.Close())
	if _, err := j.Head(limited(t)); err != nil {
		t.Errorf("closing the one below closes the other: %v", err)
	}
	must(t, j.Close())
}

// TestExternal has an ensemble that asks for a user and a password, who may use one prefix and nothing else.
func TestExternal(t *testing.T) {
	t.Parallel()
	m := single(t)
	engine := raw(t, m.ClientURL())
	ctx := limited(t)
	for _, name := range []string{"root", "starling"} {
		_, err := engine.UserAdd(ctx, name, name+"'s")
		must(t, err)
	}
	_, err := engine.RoleAdd(ctx, "prefix")
	must(t, err)
	_, err = engine.RoleGrantPermission(ctx, "prefix", "starling/", "starling0", 2) // to read and write
	must(t, err)
	_, err = engine.UserGrantRole(ctx, "starling", "prefix")
	must(t, err)
	_, err = engine.UserGrantRole(ctx, "root", "root")
	must(t, err)
	_, err = engine.AuthEnable(ctx)
	must(t, err)

	config := etcd.ClientConfig{Endpoints: []string{m.ClientURL()}, Prefix: "starling/", User: "starling",
		Password: "starling's"}
	j := opened(t, config)
	if _, err := j.Pulse(ctx, "p", pulseTTL, false); err != nil {
		t.Error(err)
	}
	w := writer{t: t, journal: j}
	w.append(3)
	follow(t, j).expect(3)
	for name, wrong := range map[string]etcd.ClientConfig{
		"another password": {Endpoints: config.Endpoints, Prefix: config.Prefix, User: config.User, Password: "x"},
		"another prefix":   {Endpoints: config.Endpoints, Prefix: "other/", User: config.User, Password: config.Password},
		"no user":          {Endpoints: config.Endpoints, Prefix: config.Prefix},
	} {
		if _, err := etcd.Open(limited(t), wrong); err == nil {
			t.Errorf("%s was let in", name)
		}
	}
}
