package container_test

import (
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"starling/driver"
	"starling/driver/drivertest"
)

// TestQuotaOfContainer has the file system bound the volumes of a container, which neither its program nor one beside
// it takes out of the quota; its fresh folder and what it changes of its image are watched.
func TestQuotaOfContainer(t *testing.T) {
	drivertest.OnQuotas(t, func(t *testing.T, folder string) {
		b := newBench(t)
		b.reopen(t, func() { b.folder = filepath.Join(folder, "driver") })
		if err := b.Unbounded(); err != nil {
			t.Fatal(err)
		}
		const out = `cd "$DATA"; touch a; chattr -p 0 a; chattr +A a; lsattr -p a; `
		task := driver.Task{ID: "writer", Container: hosted(t, v1.Config{}),
			Command: shell(out + `head -c 3m /dev/zero > file && echo wrote || echo refused; exec sleep 1000`),
			Volumes: []driver.Volume{{Set: "set", Name: "data", Variable: "DATA"}}}
		task.Limits.DiskBytes, task.Limits.VolumesBytes = 1<<20, 1<<20
		b.start(t, task)
		beside, said := task, strings.Builder{}
		beside.Command = shell(`cd "$DATA"; until [ -s file ]; do :; done; ` + out)
		if _, err := b.Exec(b.ctx, beside, driver.Session{Output: &said, Errors: &said}); err != nil {
			t.Error(err)
		}
		if err := b.Stop("writer", 0); err != nil {
			t.Error(err)
		}
		got := b.exited(t, "writer")
		log := b.output(t, "writer", false)
		if strings.Count(log, "refused") != 1 || strings.Count(log, "not permitted") != 2 || got.OutOfDisk != "" {
			t.Errorf("got %q, %+v", log, got)
		}
		if strings.Count(said.String(), "not permitted") != 2 {
			t.Errorf("beside it: %q", said.String())
		}
		for _, to := range []string{"/file", "file"} {
			task.ID, task.Command = "changer of "+to, shell(`head -c 3m /dev/zero > `+to+`; exec sleep 1000`)
			b.start(t, task)
			if got := b.exited(t, task.ID); !strings.HasPrefix(got.OutOfDisk, "it had taken ") {
				t.Errorf("%s: %+v", task.ID, got)
			}
		}
	})
}
