package credential

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strconv"
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
	// known has the secret db as often as it was put, secret is what it holds.
	known  *registry.Registry
	secret []byte
	now    terms.Time
}

// put puts the secret.
func (b *bench) put(value string) {
	b.secret = []byte(value)
	b.known, _ = b.known.PutSecret(access.Secret{Pool: "default", Name: "db", Sealed: "sealed"},
		registry.Kept{Most: registry.SecretVersionsMax}, b.now)
}

func (b *bench) version() (v access.SecretVersion) {
	if s := b.known.Secret("default", "db", 0); s != nil {
		v = s.Put()
	}
	return v
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
		Log: slog.New(slog.DiscardHandler),
		Ask: func(context.Context, terms.AllocationID) (Given, error) {
			b.asked++
			return Given{Tokens: map[string]string{"vault": strconv.Itoa(b.asked)},
				Secrets: map[string][]byte{"db": b.secret}, Versions: map[string]access.SecretVersion{"db": b.version()}}, b.refuse
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
		if b.asked != before || len(b.due) != 0 {
			t.Errorf("for an instance that has ended %d tokens were asked for, and %v is due", b.asked-before, b.due)
		}
	})
}

// TestAnotherAuthority has what an instance shows follow the authorities of the cluster.
func TestAnotherAuthority(t *testing.T) {
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, folder)
		b.start(t)
		next, err := b.keys.Successor()
		if err != nil {
			t.Fatal(err)
		}
		if err := b.keys.Adopt(append(b.keys.Listed(), next)); err != nil {
			t.Fatal(err)
		}
		b.run(t, 2*lookEvery)
		b.wants(t, 2)
		shown, err := trust.ParseCredentials(b.machine.PrivateOf(b.id.String())[File])
		if err != nil {
			t.Fatal(err)
		}
		if len(shown.CAs) != 2 || !shown.CAs[0].Equal(b.keys.CA()) {
			t.Errorf("the instance knows %d authorities, and not the newest", len(shown.CAs))
		}
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
