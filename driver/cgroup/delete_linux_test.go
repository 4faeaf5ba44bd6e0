package cgroup_test

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"starling/driver"
	"starling/driver/cgroup"
)

// TestDeleteKills deletes a group in which a process still is.
func TestDeleteKills(t *testing.T) {
	place, _ := cgroup.Find(fmt.Sprintf("starling-test-%d", os.Getpid()), nil)
	if place.Version == 0 {
		t.Skip("no control groups can be made here")
	}
	t.Cleanup(place.Remove)
	group, err := place.Make("busy", driver.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	program := exec.Command("sleep", "1000")
	err = group.Start(func(a *syscall.SysProcAttr) error {
		program.SysProcAttr = a
		return program.Start()
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := group.Delete(); err != nil {
		t.Errorf("Delete: %v", err)
		_ = program.Process.Kill()
	}
	_ = program.Wait()
	if got := program.ProcessState.Sys().(syscall.WaitStatus); got.Signal() != syscall.SIGKILL {
		t.Errorf("the process ended with %v, want it killed", program.ProcessState)
	}
}
