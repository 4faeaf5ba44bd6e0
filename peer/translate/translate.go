// Package translate says in the driver's terms what the value asks of a task.
package translate

import (
	"syscall"
	"time"

	"starling/driver"
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
