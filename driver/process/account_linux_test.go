package process_test

import (
	"os"
	"os/exec"
	"testing"

	"starling/driver"
)

// TestOwnUserIsKnown has a task of a user that is its job's own ask who it is: the machine's files do not know it.
func TestOwnUserIsKnown(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only with namespaces")
	}
	b := &bench{ctx: t.Context(), folder: openFolder(t)}
	b.Driver = open(t, b.folder)
	t.Cleanup(func() { _ = b.Close() })
	b.start(t, driver.Task{ID: "asks", User: driver.OwnUser("job"), Env: []string{"PATH=/usr/bin:/bin"},
		Command: []string{"sh", "-c", "id -un; id -gn; head -1 /etc/passwd; ls /dev | grep account; ls -A"}})
	first, err := exec.Command("head", "-1", "/etc/passwd").Output()
	if err != nil {
		t.Fatal(err)
	}
	got := b.exited(t, "asks")
	if said, want := b.output(t, "asks", driver.Stdout), "task\ntask\n"+string(first); said != want {
		t.Errorf("got %+v, it wrote %q and %q, want %q", got, said, b.output(t, "asks", driver.Stderr), want)
	}
}
