//go:build !linux

package cgroup

import (
	"errors"
	"os"
	"syscall"

	"github.com/opencontainers/runtime-spec/specs-go"

	"starling/driver"
)

// Find finds no place: only Linux has control groups.
func Find(string, func() error) (Place, []string) {
	missing := errors.New("this system has no control groups")
	return Place{}, Place{}.warnings(map[string]error{memory: missing, processor: missing, processes: missing})
}

// Remove does nothing.
func (p Place) Remove() {}

// Relative is empty.
func (p Place) Relative(string) string { return "" }

// Resources are none.
func (p Place) Resources(driver.Limits) *specs.LinuxResources { return nil }

// Group is no group.
type Group struct{}

// Make makes nothing.
func (p Place) Make(string, driver.Limits) (*Group, error) { return &Group{}, nil }

// Open opens nothing.
func (p Place) Open(string) *Group { return &Group{} }

// Start calls start.
func (g *Group) Start(start func(*syscall.SysProcAttr) error) error {
	return start(&syscall.SysProcAttr{})
}

// MemoryAlarm is nil: nothing tells when memory is out.
func (g *Group) MemoryAlarm() (*os.File, error) { return nil, nil }

// MemoryKills is 0.
func (g *Group) MemoryKills() (int, error) { return 0, nil }

// Use is not known.
func (g *Group) Use() (driver.Use, Counted) { return driver.Use{}, Counted{} }

// Processes are none.
func (g *Group) Processes() []int { return nil }

// Kill finds nothing to kill.
func (g *Group) Kill() (int, error) { return 0, nil }

// Delete does nothing.
func (g *Group) Delete() error { return nil }
