package quorum

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"starling/journal"
	"starling/journal/memory"
)

// patience bounds every wait.
const patience = 60 * time.Second

// TestNodesGrow has three nodes in one process: a quorum of three grows from the first, one is removed by hand and
// goes on as a client with the same journal, and one that loses its data comes back.
func TestNodesGrow(t *testing.T) {
	if testing.Short() {
		t.Skip("starts three members")
	}
	t.Parallel()
	a := begin(t, config(t, "a", nil))
	b := begin(t, config(t, "b", a))
	c := begin(t, config(t, "c", a))
	awaitVoters(t, a, "a", "b", "c")
	append1(t, c, 1)

	must(t, b.Change(limited(t), Remove, "c"))
	awaitVoters(t, a, "a", "b")
	append1(t, c, 2)
	var refusal Refusal
	if err := a.Change(limited(t), Remove, "d"); !errors.As(err, &refusal) {
		t.Errorf("got %v, want that d is no member", err)
	}
	must(t, a.Change(limited(t), Remove, "c")) // who has heard no answer asks again
	must(t, c.Change(limited(t), Add, "c"))
	awaitVoters(t, a, "a", "b", "c")
	append1(t, c, 3)

	// The data of b is gone; the machine is there at once.
	must(t, b.Close())
	again := config(t, "b", a)
	again.Machine = b.config.Machine
	begin(t, again)
	await(t, "b's new member has a vote", func() string {
		v, err := a.view(limited(t))
		if err != nil {
			return err.Error()
		}
		for _, m := range v.Members {
			if m.Node == "b" && !m.Learner && m.Machine != nil && m.Machine.Member == m.ID {
				return ""
			}
		}
		return fmt.Sprint(v.Members)
	})
	if head, err := c.Journal().Head(limited(t)); head != 3 || err != nil {
		t.Errorf("got head %d and %v, want 3", head, err)
	}
}

// TestCare fills a member until it takes nothing more, and frees that: its file is written anew, and it takes entries
// again.
func TestCare(t *testing.T) {
	t.Parallel()
	conf := config(t, "a", nil)
	conf.QuotaBytes = 16 << 20
	n, err := Open(limited(t), conf)
	must(t, err)
	t.Cleanup(func() { must(t, n.Close()) })
	n.careEvery, n.freeMin = 50*time.Millisecond, 1<<20
	must(t, n.Begin(limited(t)))
	client := n.Journal().Client()
	payload := strings.Repeat("x", 1<<20)
	for i := 0; err == nil; i++ {
		_, err = client.Put(limited(t), fmt.Sprintf("filler/%d", i), payload)
	}
	if !errors.Is(err, rpctypes.ErrNoSpace) {
		t.Fatalf("got %v, want no space", err)
	}
	gone, err := client.Delete(limited(t), "filler/", clientv3.WithPrefix())
	must(t, err)
	_, err = client.Compact(limited(t), gone.Header.Revision, clientv3.WithCompactPhysical())
	must(t, err)
	await(t, "the quorum takes entries again", func() string {
		if err := n.Journal().Append(limited(t), journal.Record{Writer: "w", Seq: 1}); err != nil {
			return fmt.Sprintf("%v; the file: %+v", err, n.Report(limited(t)).Files)
		}
		return ""
	})
	r := n.Report(limited(t))
	file := r.Files[r.View.Leader]
	if file.Bytes > conf.QuotaBytes/2 || file.Quota != conf.QuotaBytes {
		t.Errorf("the file has %d bytes of %d, want that it was written anew", file.Bytes, file.Quota)
	}
}

// TestClaim has two machines of one name, of which the first one lives, and then a process that comes after another on
// the same machine.
func TestClaim(t *testing.T) {
	t.Parallel()
	j := memory.New()
	first := claimOf(j, "1")
	must(t, first.take(limited(t), 0))
	err := claimOf(j.Open(), "2").take(limited(t), 0)
	if err == nil || !strings.Contains(err.Error(), "node n runs already, on host 1 with the data directory /data/1") {
		t.Errorf("got %v, want that the name is in use, and where", err)
	}
	must(t, claimOf(j.Open(), "1").take(limited(t), 0))
	if !first.lost() {
		t.Error("the earlier process has the name still")
	}
	first.pulse.Abandon()

	dying := j.Open()
	must(t, claimOf(dying, "1").take(limited(t), 0))
	must(t, dying.Close()) // the machine has died: its name is free when its pulse ends
	must(t, claimOf(j.Open(), "2").take(limited(t), patience))
}

func claimOf(j journal.Journal, id string) *claim {
	return &claim{journal: j, node: "n", ttl: 200 * time.Millisecond,
		shown: Machine{ID: id, Host: "host " + id, Folder: "/data/" + id}}
}

// config is that of a node which finds the quorum through another, or founds it.
func config(t *testing.T, node string, other *Node) Config {
	t.Helper()
	dir := t.TempDir()
	c := Config{
		Machine: Machine{Node: node, ID: node, Client: freeURL(t), Peer: freeURL(t)},
		Dir:     filepath.Join(dir, "etcd"), File: filepath.Join(dir, "quorum.json"),
		PulseTTL: 3 * time.Second, AwayMax: time.Hour, QuotaBytes: 1 << 30, Log: slog.New(slog.DiscardHandler),
		Waiting: func([]string, error) {},
	}
	if other != nil {
		c.Find = func(ctx context.Context) ([]string, error) { return other.Report(ctx).Endpoints, nil }
	}
	return c
}

// begin starts a node, which ends with the test.
func begin(t *testing.T, c Config) *Node {
	t.Helper()
	n, err := Open(limited(t), c)
	must(t, err)
	t.Cleanup(func() { _ = n.Close() }) // the last one ends without a majority
	must(t, n.Begin(limited(t)))
	return n
}

func awaitVoters(t *testing.T, n *Node, want ...string) {
	t.Helper()
	await(t, fmt.Sprintf("the quorum is %v", want), func() string {
		r := n.Report(limited(t))
		var got []string
		for _, m := range r.View.Members {
			if !m.Learner {
				got = append(got, m.Node)
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) || r.Err != nil {
			return fmt.Sprintf("%v, %v", got, r.Err)
		}
		return ""
	})
}

// append1 appends through a node's journal, as long as that fails.
func append1(t *testing.T, n *Node, seq uint64) {
	t.Helper()
	await(t, "the record is appended", func() string {
		if err := n.Journal().Append(limited(t), journal.Record{Writer: "w", Seq: seq}); err != nil {
			return err.Error()
		}
		return ""
	})
}

// await looks until there is nothing to complain of any more.
func await(t *testing.T, what string, complaint func() string) {
	t.Helper()
	end := time.Now().Add(patience)
	for text := complaint(); text != ""; text = complaint() {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v: %s", what, patience, text)
		}
		must(t, pause(limited(t), 20*time.Millisecond))
	}
}

func freeURL(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	return "http://" + l.Addr().String()
}

func limited(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
