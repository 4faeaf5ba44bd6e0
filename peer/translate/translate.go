// Package translate says in the driver's terms what the value asks of a task.
package translate

import (
	"errors"
	"slices"
	"syscall"
	"time"

	"starling/driver"
	"starling/plugin"
	"starling/replica/reaction"
	"starling/secret"
	"starling/terms"
)

// Limits are what a task may use of its machine.
func Limits(spec *terms.Task) driver.Limits {
	asks := &spec.Resources
	return driver.Limits{CPUMillicores: asks[terms.CPU] + int64(spec.Slack()), Background: spec.Slack() > 0,
		MemoryBytes: asks[terms.Memory], Processes: int64(spec.ProcessesMax),
		DiskBytes: spec.DiskBytesMax, DiskBytesAsked: asks[terms.Disk], VolumesBytes: spec.VolumesBytesMax}
}

// StopSignal is what asks a task to end, 0 for the driver's choice.
func StopSignal(spec *terms.Task) syscall.Signal { return stopSignals[spec.StopSignal] }

var stopSignals = [...]syscall.Signal{
	terms.StopDefault: 0, terms.StopTerminate: syscall.SIGTERM, terms.StopInterrupt: syscall.SIGINT,
	terms.StopQuit: syscall.SIGQUIT, terms.StopHangUp: syscall.SIGHUP, terms.StopUser1: syscall.SIGUSR1,
	terms.StopUser2: syscall.SIGUSR2, terms.StopWindowChange: syscall.SIGWINCH,
}

// Container is what a task runs in, nil for no container.
func Container(spec *terms.Container) *driver.Container {
	if spec.Image == "" {
		return nil
	}
	c := &driver.Container{Image: spec.Image, Arguments: spec.Arguments, ReadOnly: spec.ReadOnly,
		Capabilities: spec.Capabilities}
	for _, m := range spec.Mounts {
		c.Mounts = append(c.Mounts, driver.Mount{Path: m.Path, Volume: m.Volume, ReadOnly: m.ReadOnly})
	}
	return c
}

// Proofs are those that the supervisor of a task wants.
func Proofs(spec *terms.Task) driver.Proofs {
	return driver.Proofs{
		StopAfter: time.Duration(spec.Disconnect.StopAfterMillis) * time.Millisecond,
		StopGrace: time.Duration(spec.StopGraceMillis) * time.Millisecond,
	}
}

// Files are those by which an allocation is told of the members of its job, with the job's keys, which come from the
// cluster's secret. Without one, nil, there is an error for what needs keys.
func Files(r *reaction.Renewal, from *secret.Secret) (*driver.FileSet, error) {
	set := &driver.FileSet{Version: uint64(r.Version), User: r.User}
	for _, f := range r.Files {
		key, err := key(r, f.Key, from)
		if err != nil {
			return nil, err
		}
		set.Files = append(set.Files, driver.File{Path: f.Path, Content: slices.Concat(f.Content, key), Secret: f.Secret})
	}
	return set, nil
}

// key derives one of the keys of a job.
func key(r *reaction.Renewal, key plugin.Key, from *secret.Secret) ([]byte, error) {
	if key == plugin.NoKey {
		return nil, nil
	}
	if from == nil {
		return nil, errors.New("its plugins need the cluster's secret, and its node has none: start the agent there with secret_file")
	}
	purpose := secret.Login
	if key == plugin.HostPrivate || key == plugin.HostPublic {
		purpose = secret.Host
	}
	pair, err := from.KeyPair(r.ID.Slot.Job, r.Job, purpose)
	if key == plugin.LoginPrivate || key == plugin.HostPrivate {
		return pair.Private, err
	}
	return pair.Public, err
}
