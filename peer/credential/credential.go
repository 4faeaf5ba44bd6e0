// Package credential has what instances of this machine show who they are: a file of credentials for the API of their
// own peer, and id tokens for programs outside of the cluster.
//
// It compares levels: whatever runs and is not known here is renewed, as after a restart of the peer. What a task has
// is removed with its folder.
package credential

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"starling/cluster/registry"
	"starling/driver"
	"starling/peer/credential/vault"
	"starling/terms"
	"starling/terms/access"
	"starling/trust"
)

// File is the name of the file of credentials in an instance's private folder.
const File = "credentials"

// TokenFile is the name of the file of an id token.
func TokenFile(name string) string { return name + ".jwt" }

// SecretFile is the path of the file of a secret in an instance's private folder.
func SecretFile(s *terms.SecretUse) string {
	if s.Path == "" || path.IsAbs(s.Path) {
		return s.Name + ".secret"
	}
	return path.Join("secrets", s.Path)
}

// Signals are those that a job may ask for.
var Signals = [...]syscall.Signal{
	terms.NoSignal: 0, terms.SignalHangUp: syscall.SIGHUP, terms.SignalUser1: syscall.SIGUSR1,
	terms.SignalUser2: syscall.SIGUSR2,
}

// Given is what an instance has from a node that holds the authority's key: its id tokens, and what the secrets hold
// of its pool hold that it may read, with their versions.
type Given struct {
	Tokens   map[string]string
	Secrets  map[string][]byte
	Versions map[string]access.SecretVersion
	// Missing says of secrets that nobody can open why.
	Missing map[string]string
	// Vault is the id token with which its node reads what Vault keeps for it, "" if it needs nothing of that.
	Vault string
}

// Config is what credentials are made of.
type Config struct {
	// Keys are this node's, Address is where its API answers.
	Keys    *trust.Keys
	Address string
	Driver  driver.Driver
	// Ask has a node that holds the authority's key give what an allocation of this node is to have.
	Ask func(ctx context.Context, id terms.AllocationID) (Given, error)
	// Vault is the server that has what the journal has not, nil for none.
	Vault *vault.Server
	// Known is who is known to the cluster, and its secrets.
	Known func() *registry.Registry
	// TaskOf returns the task of an allocation of this node, nil if it has no such.
	TaskOf func(ctx context.Context, id terms.AllocationID) *terms.Task
	Log    *slog.Logger
}

// Credentials are those of all instances of this machine. They are safe for concurrent use.
type Credentials struct {
	config Config
	mu     sync.Mutex
	// all are the instances that have some.
	all map[terms.AllocationID]state
	// under are the cluster's authorities as they were when all were looked at last.
	under []access.Authority
}

// state is what is known of an instance that has credentials.
type state struct {
	// due is when they are to be renewed, never for never; nothing is done before again.
	due, again time.Time
	has        []held
	// lacks is what the instance was not given the last time, and why, nil for nothing; told is when that was logged.
	lacks error
	told  time.Time
}

// held is the version of a secret that an instance has, zero if that is not known, and the one that it was to be given
// last, which is another one if nobody could open that.
type held struct {
	use      terms.SecretUse
	has, was access.SecretVersion
}

// never is when credentials are due that are renewed only for another authority.
var never = time.Unix(1<<40, 0)

const (
	// lookEvery is the pause between two looks at what is due, retryAfter how long after a failure there is another try.
	lookEvery  = time.Second
	retryAfter = 5 * time.Second
	// tellEvery is how often it is logged that an instance lacks something.
	tellEvery = 10 * time.Minute
	// givenWithin bounds the wait for what one instance is given.
	givenWithin = 10 * time.Second
)

// New returns the credentials of instances, none yet.
func New(config Config) *Credentials {
	return &Credentials{config: config, all: map[terms.AllocationID]state{}, under: config.Keys.Listed()}
}

// Make returns what an instance of the task begins with, which is all. An error says why it cannot begin yet.
func (c *Credentials) Make(ctx context.Context, id terms.AllocationID, task *terms.Task) ([]driver.File, error) {
	files, now, err := c.make(ctx, id, task)
	if err == nil {
		err = now.lacks
	}
	if err != nil {
		return nil, err
	}
	c.note(id, now)
	return files, nil
}

// Versions returns which versions of its secrets an instance has, by their names.
func (c *Credentials) Versions(id terms.AllocationID) map[string]uint32 {
	all := map[string]uint32{}
	for _, one := range c.stateOf(id).has {
		if one.has != (access.SecretVersion{}) {
			all[one.use.Name] = one.has.Version
		}
	}
	return all
}

// Warnings lists what instances that run were not given.
func (c *Credentials) Warnings() (all []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range slices.SortedFunc(maps.Keys(c.all), terms.AllocationID.Compare) {
		if lacks := c.all[id].lacks; lacks != nil {
			all = append(all, fmt.Sprintf("%s keeps what it had of what it cannot be given: %v", id, lacks))
		}
	}
	return all
}

func (c *Credentials) stateOf(id terms.AllocationID) state {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[id]
}

func (c *Credentials) note(id terms.AllocationID, now state) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all[id] = now
}

// make returns what there is of what an instance is to have, and its state when it has that.
func (c *Credentials) make(ctx context.Context, id terms.AllocationID, task *terms.Task) (files []driver.File,
	now state, err error) {
	one, err := c.config.Keys.Instance(trust.InstanceName(id.Slot), id.String(), c.config.Address)
	if err != nil {
		return nil, now, fmt.Errorf("make credentials for %s: %w", id, err)
	}
	line, err := one.Line()
	if err != nil {
		return nil, now, err
	}
	files, now.due = []driver.File{{Path: File, Content: []byte(line + "\n")}}, never
	if len(task.IDTokens)+len(task.Secrets) == 0 {
		return files, now, nil
	}
	ctx, cancel := context.WithTimeout(ctx, givenWithin)
	defer cancel()
	before := c.stateOf(id)
	given, err := c.config.Ask(ctx, id)
	if err != nil {
		now.has, now.lacks = before.has, fmt.Errorf("its id tokens and secrets: %w", err)
		now.wait()
		return files, now, nil
	}
	now.due = time.Now().Add(c.pause(task))
	values, missing := c.config.Vault.Read(ctx, given.Vault, task.Secrets)
	if len(missing) > 0 {
		now.wait()
	}
	maps.Copy(values, given.Secrets)
	maps.Copy(missing, given.Missing)
	for _, s := range task.PoolSecrets() {
		one := held{s, given.Versions[s.Name], given.Versions[s.Name]}
		if missing[s.Name] != "" {
			one.has = before.version(s.Name)
		}
		now.has = append(now.has, one)
	}
	given.Secrets, given.Missing = values, missing
	more, lacks := filesOf(task, &given)
	now.lacks = lacks
	return append(files, more...), now, nil
}

// wait has the next try be soon, but not at once.
func (s *state) wait() {
	s.due = time.Now().Add(retryAfter)
	s.again = s.due
}

// version is the one that the instance has of a secret, zero if that is not known.
func (s *state) version(name string) (v access.SecretVersion) {
	for _, one := range s.has {
		if one.use.Name == name {
			v = one.has
		}
	}
	return v
}

// filesOf returns the files of what an instance was given; lacks says what is missing and why, nil for nothing.
func filesOf(task *terms.Task, given *Given) (files []driver.File, lacks error) {
	var missing []string
	for _, k := range task.IDTokens {
		if given.Tokens[k.Name] == "" {
			missing = append(missing, fmt.Sprintf("id token %s is missing in the answer", k.Name))
			continue
		}
		files = append(files, driver.File{Path: TokenFile(k.Name), Content: []byte(given.Tokens[k.Name])})
	}
	for _, s := range task.Secrets {
		value, ok := given.Secrets[s.Name]
		if !ok {
			missing = append(missing, fmt.Sprintf("secret %s: %s", s.Name,
				cmp.Or(given.Missing[s.Name], "it is missing in the answer")))
			continue
		}
		files = append(files, driver.File{Path: SecretFile(&s), Content: value, InMemory: true,
			OnChange: Signals[s.OnChange]})
	}
	if missing != nil {
		lacks = errors.New(strings.Join(missing, "; "))
	}
	return files, lacks
}

// pause is how long what a task was given stays: two thirds of the shortest life among its tokens, and no longer than
// what Vault keeps for it is good for.
func (c *Credentials) pause(task *terms.Task) time.Duration {
	shortest := uint32(terms.IDTokenLifeMax)
	for _, k := range task.IDTokens {
		shortest = min(shortest, k.LifeMillis)
	}
	pause := time.Duration(shortest) * time.Millisecond * 2 / 3
	if task.AsksVault() {
		pause = min(pause, c.config.Vault.Every())
	}
	return pause
}

// Run renews what is due, until ctx ends.
func (c *Credentials) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(lookEvery):
		}
		for _, id := range c.look() {
			c.renew(ctx, id)
		}
	}
}

// look lists the instances that run and whose credentials are due, and forgets those that do not run any more.
func (c *Credentials) look() (all []terms.AllocationID) {
	statuses, listed, now := c.config.Driver.Tasks(), c.config.Keys.Listed(), time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Equal(listed, c.under) {
		c.under = listed
		for id, one := range c.all {
			one.due = time.Time{}
			c.all[id] = one
		}
	}
	runs := make(map[terms.AllocationID]bool, len(statuses))
	for _, status := range statuses {
		id, ok := terms.ParseAllocationID(status.ID)
		if !ok || status.State != driver.Running {
			continue
		}
		runs[id] = true
		one := c.all[id]
		if now.After(one.again) && (now.After(one.due) || c.isOld(id, one.has)) {
			all = append(all, id)
		}
	}
	maps.DeleteFunc(c.all, func(id terms.AllocationID, _ state) bool { return !runs[id] })
	return all
}

// isOld tells whether a secret was put again since an instance was given it.
func (c *Credentials) isOld(id terms.AllocationID, has []held) bool {
	return slices.ContainsFunc(has, func(one held) bool {
		s := c.config.Known().Secret(id.Slot.Job.Pool(), one.use.Name, one.use.Version)
		return s != nil && s.Put() != one.was
	})
}

// renew gives an instance that runs other credentials, and keeps what it has of what is not to be had.
func (c *Credentials) renew(ctx context.Context, id terms.AllocationID) {
	before := c.stateOf(id)
	now, told := before, before.told
	now.wait()
	if task := c.config.TaskOf(ctx, id); task != nil {
		files, next, err := c.make(ctx, id, task)
		if err == nil {
			err = c.config.Driver.RenewPrivate(id.String(), files)
		}
		if now.lacks = err; err == nil {
			now = next
		}
	}
	if ctx.Err() != nil {
		return
	}
	now.told = time.Time{}
	switch {
	case now.lacks == nil && before.lacks != nil:
		c.config.Log.Info("an instance has all again that it is to be given", "allocation", id.String())
	case now.lacks != nil && time.Since(told) < tellEvery:
		now.told = told
	case now.lacks != nil:
		now.told = time.Now()
		c.config.Log.Warn("an instance keeps what it had of what it cannot be given", "allocation", id.String(),
			"error", now.lacks)
	}
	c.note(id, now)
}
