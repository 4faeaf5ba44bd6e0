// Package scope asks systemd for a control group in which the groups of tasks can be made. It stands apart from package
// cgroup, which is in every supervisor: what it imports is not to be paid there.
package scope

import (
	"context"
	"fmt"
	"os"
	"time"

	systemd "github.com/coreos/go-systemd/v22/dbus"
	"github.com/godbus/dbus/v5"
)

// timeout is the longest wait for systemd.
const timeout = 5 * time.Second

// Leave has systemd move this process to a group of its own that it may divide: the systemd of the machine, or that of
// the user.
func Leave() error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	connect := systemd.NewSystemConnectionContext
	if os.Geteuid() != 0 {
		connect = systemd.NewUserConnectionContext
	}
	manager, err := connect(ctx)
	if err != nil {
		return fmt.Errorf("no systemd to ask for a group: %w", err)
	}
	defer manager.Close()
	name, done := fmt.Sprintf("starling-%d.scope", os.Getpid()), make(chan string, 1)
	if _, err := manager.StartTransientUnitContext(ctx, name, "fail", []systemd.Property{
		systemd.PropDescription("Starling and its tasks"), systemd.PropPids(uint32(os.Getpid())),
		{Name: "Delegate", Value: dbus.MakeVariant(true)},
	}, done); err != nil {
		return fmt.Errorf("systemd gives no group: %w", err)
	}
	select {
	case result := <-done:
		if result != "done" {
			return fmt.Errorf("systemd gives no group: %s of %s", result, name)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("systemd gives no group: %w", ctx.Err())
	}
}
