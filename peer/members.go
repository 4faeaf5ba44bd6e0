package peer

import (
	"context"
	"fmt"
	"slices"
	"syscall"

	"starling/driver"
	"starling/plugin"
	"starling/replica"
	"starling/secret"
	"starling/terms"
)

// fileSet says in the driver's terms what an allocation is told by files about the members of its job, with the job's
// keys.
func (p *Peer) fileSet(r *replica.Renewal) (*driver.FileSet, error) {
	set := &driver.FileSet{Version: uint64(r.Version), User: r.User}
	for _, f := range r.Files {
		key, err := p.key(r, f.Key)
		if err != nil {
			return nil, err
		}
		set.Files = append(set.Files, driver.File{Path: f.Path, Content: slices.Concat(f.Content, key), Secret: f.Secret})
	}
	return set, nil
}

// oddSecret tells why this node would write keys that open nothing on other nodes, "" if it has none to write or all is
// well.
func (p *Peer) oddSecret(files []plugin.File) string {
	if p.config.Secret == nil || !slices.ContainsFunc(files, func(f plugin.File) bool { return f.Key != plugin.NoKey }) {
		return ""
	}
	return p.config.Secret.Odd(p.core.state, p.config.Node)
}

// key derives one of the keys of a job.
func (p *Peer) key(r *replica.Renewal, key plugin.Key) ([]byte, error) {
	if key == plugin.NoKey {
		return nil, nil
	}
	if p.config.Secret == nil {
		return nil, fmt.Errorf("its plugins need the cluster's secret, and node %s has none: start its agent with secret_file", p.config.Node)
	}
	purpose := secret.Login
	if key == plugin.HostPrivate || key == plugin.HostPublic {
		purpose = secret.Host
	}
	pair, err := p.config.Secret.KeyPair(r.ID.Slot.Job, r.Job, purpose)
	if key == plugin.LoginPrivate || key == plugin.HostPrivate {
		return pair.Private, err
	}
	return pair.Public, err
}

// signals are those that a job may ask for.
var signals = [...]syscall.Signal{
	terms.NoSignal: 0, terms.SignalHangUp: syscall.SIGHUP, terms.SignalUser1: syscall.SIGUSR1,
	terms.SignalUser2: syscall.SIGUSR2,
}

// renew has the driver replace files beside the loop, all of these before it begins with others.
func (p *Peer) renew(ctx context.Context, all []replica.Renewal) {
	if len(all) == 0 {
		return
	}
	p.core.Renewing = true
	p.group.Add(1)
	go func() {
		defer p.group.Done()
		for _, one := range all {
			files, err := p.fileSet(&one)
			if err == nil {
				err = p.config.Driver.Renew(one.ID.String(), *files, signals[one.Signal])
			}
			if err != nil {
				p.log.Error("files could not be renewed; trying again", "allocation", one.ID.String(), "version", one.Version,
					"error", err)
				pause(ctx, publishEvery)
			}
		}
		p.post(ctx, func() {
			p.core.Renewing = false
			p.driverChanged(ctx)
		})
	}()
}

// environment is a list of variables in which each has one value, the last that was set.
type environment struct {
	all []string
	at  map[string]int
}

func (e *environment) set(name, value string) {
	if at, known := e.at[name]; known {
		e.all[at] = name + "=" + value
		return
	}
	if e.at == nil {
		e.at = map[string]int{}
	}
	e.at[name] = len(e.all)
	e.all = append(e.all, name+"="+value)
}
