// Package credential has what instances of this machine show who they are: a file of credentials for the API of their
// own peer, and id tokens for programs outside of the cluster.
//
// It compares levels: whatever runs and is not known here is renewed, as after a restart of the peer. What a task has
// is removed with its folder.
package credential

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"path"
	"slices"
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
	// due is when those of an instance are to be renewed that has some, never for never.
	due map[terms.AllocationID]time.Time
	// has are the secrets that an instance has.
	has map[terms.AllocationID][]held
	// under are the cluster's authorities as they were when all were looked at last.
	under []access.Authority
}

// held is a version of a secret that an instance has.
type held struct {
	use     terms.SecretUse
	version access.SecretVersion
}

// never is when credentials are due that are renewed only for another authority.
var never = time.Unix(1<<40, 0)

const (
	// lookEvery is the pause between two looks at what is due, retryAfter how long after a failure there is another try.
	lookEvery  = time.Second
	retryAfter = 5 * time.Second
	// givenWithin bounds the wait for what one instance is given.
	givenWithin = 10 * time.Second
)

// New returns the credentials of instances, none yet.
func New(config Config) *Credentials {
	return &Credentials{config: config, due: map[terms.AllocationID]time.Time{},
		has: map[terms.AllocationID][]held{}, under: config.Keys.Listed()}
}

// Make returns what an instance of the task begins with. An error says why it cannot begin yet.
func (c *Credentials) Make(ctx context.Context, id terms.AllocationID, task *terms.Task) ([]driver.File, error) {
	files, note, err := c.make(ctx, id, task)
	if err == nil {
		note()
	}
	return files, err
}

// Versions returns which versions of its secrets an instance has, by their names.
func (c *Credentials) Versions(id terms.AllocationID) map[string]uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := map[string]uint32{}
	for _, had := range c.has[id] {
		all[had.use.Name] = had.version.Version
	}
	return all
}

// make returns what an instance is to have, and what notes that it has it.
func (c *Credentials) make(ctx context.Context, id terms.AllocationID, task *terms.Task) (files []driver.File,
	note func(), err error) {
	one, err := c.config.Keys.Instance(trust.InstanceName(id.Slot), id.String(), c.config.Address)
	if err != nil {
		return nil, nil, fmt.Errorf("make credentials for %s: %w", id, err)
	}
	line, err := one.Line()
	if err != nil {
		return nil, nil, err
	}
	files = []driver.File{{Path: File, Content: []byte(line + "\n")}}
	due, given := never, Given{}
	if len(task.IDTokens)+len(task.Secrets) > 0 {
		ctx, cancel := context.WithTimeout(ctx, givenWithin)
		defer cancel()
		if given, err = c.config.Ask(ctx, id); err != nil {
			return nil, nil, fmt.Errorf("its id tokens and secrets: %w", err)
		}
		secrets, err := c.config.Vault.Read(ctx, given.Vault, task.Secrets)
		if err != nil {
			return nil, nil, fmt.Errorf("its secrets: %w", err)
		}
		maps.Copy(secrets, given.Secrets)
		given.Secrets = secrets
		more, err := filesOf(task, &given)
		if err != nil {
			return nil, nil, err
		}
		files, due = append(files, more...), time.Now().Add(c.pause(task))
	}
	var has []held
	for _, s := range task.PoolSecrets() {
		has = append(has, held{s, given.Versions[s.Name]})
	}
	return files, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.due[id], c.has[id] = due, has
	}, nil
}

// filesOf returns the files of what an instance was given.
func filesOf(task *terms.Task, given *Given) (files []driver.File, err error) {
	for _, k := range task.IDTokens {
		if given.Tokens[k.Name] == "" {
			return nil, fmt.Errorf("its id tokens: %s is missing in the answer", k.Name)
		}
		files = append(files, driver.File{Path: TokenFile(k.Name), Content: []byte(given.Tokens[k.Name])})
	}
	for _, s := range task.Secrets {
		value, ok := given.Secrets[s.Name]
		if !ok {
			return nil, fmt.Errorf("its secrets: %s is missing in the answer", s.Name)
		}
		files = append(files, driver.File{Path: SecretFile(&s), Content: value, InMemory: true,
			OnChange: Signals[s.OnChange]})
	}
	return files, nil
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
		clear(c.due)
	}
	runs := make(map[terms.AllocationID]bool, len(statuses))
	for _, status := range statuses {
		id, ok := terms.ParseAllocationID(status.ID)
		if !ok || status.State != driver.Running {
			continue
		}
		runs[id] = true
		if now.After(c.due[id]) || c.isOld(id) {
			all = append(all, id)
		}
	}
	for id := range c.due {
		if !runs[id] {
			delete(c.due, id)
			delete(c.has, id)
		}
	}
	return all
}

// isOld tells whether a secret was put again since an instance was given it.
func (c *Credentials) isOld(id terms.AllocationID) bool {
	for _, had := range c.has[id] {
		s := c.config.Known().Secret(id.Slot.Job.Pool(), had.use.Name, had.use.Version)
		if s != nil && s.Put() != had.version {
			return true
		}
	}
	return false
}

// renew gives an instance that runs other credentials.
func (c *Credentials) renew(ctx context.Context, id terms.AllocationID) {
	var files []driver.File
	note, err := func() {}, error(nil)
	task := c.config.TaskOf(ctx, id)
	if task != nil {
		files, note, err = c.make(ctx, id, task)
	}
	if err == nil && task != nil {
		err = c.config.Driver.RenewPrivate(id.String(), files)
	}
	if task != nil && err == nil {
		note()
	}
	if task != nil && err == nil || ctx.Err() != nil {
		return
	}
	if err != nil {
		c.config.Log.Warn("the credentials of an instance could not be renewed; trying again", "allocation", id.String(),
			"error", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.due[id], c.has[id] = time.Now().Add(retryAfter), nil
}
