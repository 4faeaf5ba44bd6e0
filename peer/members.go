package peer

import (
	"context"
	"syscall"

	"starling/driver"
	"starling/plugin"
	"starling/replica"
	"starling/terms"
)

// fileSet says in the driver's terms what an allocation is told by files about the members of its job.
func fileSet(version terms.Index, files []plugin.File, user string) driver.FileSet {
	set := driver.FileSet{Version: uint64(version), User: user}
	for _, f := range files {
		set.Files = append(set.Files, driver.File{Path: f.Path, Content: f.Content, Secret: f.Secret})
	}
	return set
}

// signals are those that a job may ask for.
var signals = [...]syscall.Signal{
	terms.NoSignal: 0, terms.SignalHangUp: syscall.SIGHUP, terms.SignalUser1: syscall.SIGUSR1, terms.SignalUser2: syscall.SIGUSR2,
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
			err := p.config.Driver.Renew(one.ID.String(), fileSet(one.Version, one.Files, one.User), signals[one.Signal])
			if err != nil {
				p.log.Error("files could not be renewed; trying again", "allocation", one.ID.String(), "version", one.Version, "error", err)
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
