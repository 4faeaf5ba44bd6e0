package credential

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"starling/cluster/registry"
	"starling/driver"
	"starling/driver/fake"
	"starling/terms"
	"starling/terms/access"
	"starling/trust"
)

// bench is a machine with one instance, whose tokens are numbered.
type bench struct {
	*Credentials
	keys    *trust.Keys
	machine *fake.Machine
	id      terms.AllocationID
	task    terms.Task
	asked   int
	refuse  error
	// known has the secrets as often as they were put, as they are; of those that are lost no keeper opens any.
	known *registry.Registry
	lost  map[string]bool
	now   terms.Time
	log   strings.Builder
}

// put puts the secret db.
func (b *bench) put(value string) { b.putAs("db", value) }

func (b *bench) putAs(name, value string) {
	b.known, _ = b.known.PutSecret(access.Secret{Pool: "default", Name: name, Sealed: value},
		registry.Kept{Most: registry.SecretVersionsMax}, b.now)
}

// given is what a keeper answers.
func (b *bench) given() Given {
	g := Given{Tokens: map[string]string{"vault": strconv.Itoa(b.asked)}, Secrets: map[string][]byte{},
		Versions: map[string]access.SecretVersion{}, Missing: map[string]string{}}
	for _, use := range b.task.PoolSecrets() {
		switch s := b.known.Secret("default", use.Name, use.Version); {
		case s == nil:
			g.Missing[use.Name] = "it was removed"
		case b.lost[use.Name]:
			g.Versions[use.Name], g.Missing[use.Name] = s.Put(), "it is lost"
		default:
			g.Versions[use.Name], g.Secrets[use.Name] = s.Put(), []byte(s.Sealed)
		}
	}
	return g
}

func newBench(t *testing.T, folder string) *bench {
	t.Helper()
	keys, err := trust.Create(filepath.Join(folder, trust.Folder), "a")
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{keys: keys, machine: fake.NewMachine(nil),
		task: terms.Task{IDTokens: []terms.IDToken{{Name: "vault", Audience: "vault", LifeMillis: 60_000}}},
		id:   terms.AllocationID{Slot: terms.SlotName{Job: "web", Task: "main"}, Order: 7}}
	b.reopen()
	return b
}

// reopen forgets what is known of the instance, as a restart of the peer does.
func (b *bench) reopen() {
	b.Credentials = New(Config{Keys: b.keys, Address: "127.0.0.1:7460", Driver: fake.Open(b.machine),
		Log: slog.New(slog.NewTextHandler(&b.log, nil)),
		Ask: func(context.Context, terms.AllocationID) (Given, error) {
			b.asked++
			return b.given(), b.refuse
		},
		Known: func() *registry.Registry { return b.known },
		TaskOf: func(_ context.Context, id terms.AllocationID) *terms.Task {
			if id != b.id {
				return nil
			}
			return &b.task
		},
	})
}

// start starts the instance with what it begins with.
func (b *bench) start(t *testing.T) {
	t.Helper()
	files, err := b.Make(t.Context(), b.id, b.config.TaskOf(t.Context(), b.id))
	if err == nil {
		err = b.config.Driver.Start(t.Context(), driver.Task{ID: b.id.String(), Command: []string{"web"}, Private: files})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// wants compares the instance's token with the one that has that number.
func (b *bench) wants(t *testing.T, number int) {
	t.Helper()
	if got := b.machine.PrivateOf(b.id.String())["vault.jwt"]; got != strconv.Itoa(number) {
		t.Errorf("after %d questions the instance has token %q, want %d", b.asked, got, number)
	}
}

// run renews for a while.
func (b *bench) run(t *testing.T, while time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), while)
	defer cancel()
	b.Run(ctx)
}

func TestTokensAreRenewed(t *testing.T) {
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, folder)
		b.start(t)
		b.wants(t, 1)
		b.run(t, 39*time.Second)
		b.wants(t, 1)
		b.run(t, 3*time.Second) // two thirds of a minute are over
		b.wants(t, 2)

		b.refuse = errors.New("no machine answers")
		b.run(t, 50*time.Second)
		b.wants(t, 2)
		b.refuse = nil
		b.run(t, retryAfter+lookEvery)
		b.wants(t, b.asked)

		b.reopen()
		before := b.asked
		b.run(t, 2*lookEvery)
		b.wants(t, before+1)

		b.machine.Exit(b.id.String(), 0)
		before = b.asked
		b.run(t, 2*time.Minute)
		if b.asked != before || len(b.all) != 0 {
			t.Errorf("for an instance that has ended %d tokens were asked for, and %v is due", b.asked-before, b.all)
		}
	})
}

// knows wants the instance to know so many authorities, and the newest.
func (b *bench) knows(t *testing.T, authorities int) {
	t.Helper()
	shown, err := trust.ParseCredentials(b.machine.PrivateOf(b.id.String())[File])
	if err != nil {
		t.Fatal(err)
	}
	if len(shown.CAs) != authorities || !shown.CAs[0].Equal(b.keys.CA()) {
		t.Errorf("the instance knows %d authorities, want %d with the newest", len(shown.CAs), authorities)
	}
}

// succeed has another authority take over.
func (b *bench) succeed(t *testing.T) {
	t.Helper()
	next, err := b.keys.Successor()
	if err == nil {
		err = b.keys.Adopt(append(b.keys.Listed(), next))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// holds wants the file of a secret to hold this.
func (b *bench) holds(t *testing.T, name, want string) {
	t.Helper()
	if got := b.machine.PrivateOf(b.id.String())[name+".secret"]; got != want {
		t.Errorf("the instance reads %q of %s, want %q", got, name, want)
	}
}

// TestAnotherAuthority has what an instance shows follow the authorities of the cluster.
func TestAnotherAuthority(t *testing.T) {
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, folder)
		b.start(t)
		b.succeed(t)
		b.run(t, 2*lookEvery)
		b.wants(t, 2)
		b.knows(t, 2)
		b.run(t, 10*time.Second)
		b.wants(t, 2)
	})
}

// TestWithoutTokensNothingIsAsked wants credentials alone for a task that asks for no more.
func TestWithoutTokensNothingIsAsked(t *testing.T) {
	b := newBench(t, t.TempDir())
	files, err := b.Make(t.Context(), b.id, &terms.Task{})
	if err != nil || len(files) != 1 || files[0].Path != File || b.asked != 0 {
		t.Errorf("got %d files, %v, after %d questions", len(files), err, b.asked)
	}
	b.refuse = errors.New("no machine answers")
	if _, err := b.Make(t.Context(), b.id, b.config.TaskOf(t.Context(), b.id)); !errors.Is(err, b.refuse) {
		t.Errorf("got %v, want that no machine answers", err)
	}
}

// TestSecretsFollow has an instance that reads a secret get what was put last, and no more questions asked than that.
func TestSecretsFollow(t *testing.T) {
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, folder)
		b.task = terms.Task{Secrets: []terms.SecretUse{{Name: "db", OnChange: terms.SignalHangUp}}}
		b.put("one")
		b.start(t)
		holds := func(want string) {
			t.Helper()
			if got := b.machine.PrivateOf(b.id.String())["db.secret"]; got != want {
				t.Errorf("the instance reads %q, want %q", got, want)
			}
		}
		holds("one")
		b.run(t, time.Minute)
		if b.asked != 1 {
			t.Errorf("%d questions were asked for a secret that stays", b.asked)
		}
		b.put("two")
		b.run(t, 2*lookEvery)
		holds("two")
		b.refuse = errors.New("no machine answers")
		b.put("three")
		b.run(t, 2*lookEvery)
		holds("two")
		asked := b.asked
		b.refuse = nil
		b.run(t, retryAfter+2*lookEvery)
		if holds("three"); b.asked != asked+1 {
			t.Errorf("%d questions for one secret", b.asked-asked)
		}
		b.known, _ = b.known.RemoveSecret("default", "db", 0, 1) // what has it keeps it
		b.run(t, 5*lookEvery)
		holds("three")
		b.now++
		b.put("anew") // of version 1 again
		b.put("and again")
		b.put("again")
		b.run(t, 2*lookEvery)
		holds("again")
		if got := b.Versions(b.id); len(got) != 1 || got["db"] != 3 {
			t.Errorf("it is said to have the versions %v, want 3 of db", got)
		}
	})
}

// TestPinnedSecretStays has an instance that reads one version of a secret keep it when there is another.
func TestPinnedSecretStays(t *testing.T) {
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, folder)
		b.task = terms.Task{Secrets: []terms.SecretUse{{Name: "db", Version: 1, Path: "tls/key"}}}
		b.put("one")
		b.start(t)
		b.put("two")
		b.run(t, time.Minute)
		if got := b.machine.PrivateOf(b.id.String())["secrets/tls/key"]; got != "one" || b.asked != 1 {
			t.Errorf("after %d questions it reads %q", b.asked, got)
		}
	})
}

// TestRestIsRenewed has an instance get all that there is when something that it has is not to be had any more: a
// secret that was removed, one that is lost, one of a Vault that this node is not told of.
func TestRestIsRenewed(t *testing.T) {
	folder := t.TempDir()
	for name, loses := range map[string]func(*bench){
		"removed": func(b *bench) { b.known, _ = b.known.RemoveSecret("default", "old", 0, 1) },
		"lost":    func(b *bench) { b.putAs("old", "two"); b.lost = map[string]bool{"old": true} },
		"vault":   func(b *bench) { b.task.Secrets[1].Vault = terms.VaultSecret{Mount: "kv", Path: "old"} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, filepath.Join(folder, name))
				b.task.Secrets = []terms.SecretUse{{Name: "db", OnChange: terms.SignalHangUp}, {Name: "old"}}
				b.put("one")
				b.putAs("old", "one")
				b.start(t)
				loses(b)
				b.put("two")
				b.run(t, retryAfter+2*lookEvery)
				b.holds(t, "db", "two")
				b.holds(t, "old", "one")
				if got := b.Versions(b.id); got["db"] != 2 || name != "vault" && got["old"] != 1 {
					t.Errorf("it is said to have the versions %v, want 2 of db and 1 of old", got)
				}
				asked := b.asked
				b.run(t, 50*time.Second)
				b.wants(t, b.asked)
				if b.asked == asked || name != "vault" && b.asked > asked+2 {
					t.Errorf("within a token's life there were %d questions", b.asked-asked)
				}
				b.succeed(t)
				b.run(t, retryAfter+2*lookEvery)
				b.knows(t, 2)
				if all := b.Warnings(); len(all) != 1 || !strings.Contains(all[0], "secret old: ") {
					t.Errorf("the warnings are %q, want one of old", all)
				}
				if told := strings.Count(b.log.String(), "cannot be given"); told != 1 {
					t.Errorf("it was logged %d times:\n%s", told, b.log.String())
				}
				if _, err := b.Make(t.Context(), b.id, &b.task); err == nil || !strings.Contains(err.Error(), "secret old: ") {
					t.Errorf("another instance starts without the secret: %v", err)
				}
				b.lost, b.task.Secrets[1].Vault = nil, terms.VaultSecret{}
				b.now++
				b.putAs("old", "anew")
				b.run(t, retryAfter+2*lookEvery)
				b.holds(t, "old", "anew")
				if all := b.Warnings(); len(all) != 0 {
					t.Errorf("the warnings are %q when it has all again", all)
				}
			})
		})
	}
}

// TestOwnCertificateIsRenewed has an instance get what its node makes alone while no keeper answers.
func TestOwnCertificateIsRenewed(t *testing.T) {
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, folder)
		b.start(t)
		b.refuse = errors.New("no machine answers")
		b.succeed(t)
		b.run(t, 2*lookEvery)
		b.knows(t, 2)
		b.wants(t, 1)
	})
}
