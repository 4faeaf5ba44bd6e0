package process_test

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"starling/driver"
	"starling/driver/disk"
	"starling/driver/drivertest"
	"starling/driver/quota"
)

// quotaBench knows how often each writer has said how its writing went.
type quotaBench struct {
	*bench
	said map[string]int
}

// benchOnQuotas has its folder on a disk with project quotas.
func benchOnQuotas(t *testing.T, folder string) *quotaBench {
	t.Helper()
	b := &quotaBench{newBench(t), map[string]int{}}
	b.reopen(t, func() { b.folder = filepath.Join(folder, "driver") })
	if err := b.Unbounded(); err != nil {
		t.Fatal(err)
	}
	return b
}

const limit = 1 << 20

// writer writes as many KiB as it is told to by each line of its FIFO, which is in its folder, to a file there or
// elsewhere, and says how that went. It stays an ordinary user's.
func (b *quotaBench) writer(t *testing.T, id, to string) (tell func(kib string) string) {
	t.Helper()
	script := `mkfifo orders; echo ready; n=0
while :; do while read kib; do
	n=$((n+1)); head -c ${kib}k /dev/zero > "` + to + `/$n" && echo wrote || echo refused
done < orders; done`
	task := driver.Task{ID: id, Command: []string{"sh", "-c", script}, User: "nobody", Env: []string{"PATH=/bin:/usr/bin"},
		Volumes: []driver.Volume{{Set: "set of " + id, Name: "data", Variable: "DATA"}}}
	task.Limits.DiskBytes, task.Limits.VolumesBytes = limit, limit
	b.start(t, task)
	return func(kib string) string { return b.write(t, id, kib) }
}

// write has a writer write.
func (b *quotaBench) write(t *testing.T, id, kib string) string {
	t.Helper()
	log, err := b.Logs(b.ctx, id, driver.LogOptions{Stream: driver.Stdout, TailBytes: -1, Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	lines := bufio.NewReader(log)
	if line, err := lines.ReadString('\n'); line != "ready\n" {
		t.Fatalf("%s wrote %q, %v: %+v", id, line, err, b.status(id))
	}
	said := b.said[id]
	b.said[id]++
	for range said {
		if _, err := lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	orders, err := os.OpenFile(filepath.Join(b.work(id), "orders"), os.O_RDWR, 0) // waits for no reader
	if err != nil {
		t.Fatal(err)
	}
	defer orders.Close()
	if _, err := orders.WriteString(kib + "\n"); err != nil {
		t.Fatal(err)
	}
	line, err := lines.ReadString('\n')
	if err != nil {
		t.Fatalf("%s: %v: %+v", id, err, b.status(id))
	}
	return strings.TrimSpace(line)
}

func (b *quotaBench) work(id string) string { return filepath.Join(b.folder, "tasks", id, "work") }

// TestQuotaBounds has a task write more than it may: it is refused, goes on, and neither those of the same limit nor
// the disk are hurt. A new driver finds all that as it was, and what it forgets is given back.
func TestQuotaBounds(t *testing.T) {
	drivertest.OnQuotas(t, func(t *testing.T, folder string) {
		b := benchOnQuotas(t, folder)
		greedy, modest := b.writer(t, "greedy", "."), b.writer(t, "modest", ".")
		want(t, greedy("3000"), "refused")
		want(t, modest("800"), "wrote")
		number := drivertest.ProjectOf(t, b.work("greedy"))
		if other := drivertest.ProjectOf(t, b.work("modest")); number == 0 || other == 0 || other == number {
			t.Errorf("the projects are %d and %d", number, other)
		}
		before := drivertest.Account(t, folder, number)
		if before.Bytes > limit+128<<10 || before.BytesMax < limit {
			t.Errorf("it has written %+v", before)
		}
		b.reopen(t, func() {})
		want(t, greedy("3000"), "refused")
		want(t, modest("800"), "refused")
		if a := drivertest.Account(t, folder, number); drivertest.ProjectOf(t, b.work("greedy")) != number ||
			a.BytesMax != before.BytesMax {
			t.Errorf("a new driver finds %+v, want %+v", a, before)
		}
		b.look(t, "greedy", "modest")
		for _, id := range []string{"greedy", "modest"} {
			b.stop(t, id, 0)
			if got := b.exited(t, id); got.OutOfDisk != "" {
				t.Errorf("%s: %+v", id, got)
			}
			if err := b.Forget(id); err != nil {
				t.Error(err)
			}
		}
		drivertest.AwaitFree(t, folder, number)
	})
}

// look has a watcher look at tasks that run.
func (b *quotaBench) look(t *testing.T, ids ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	looks := 0
	w := disk.Watcher{Folder: b.folder, Tasks: func() (all []disk.Task) {
		if looks++; looks > 1 {
			cancel()
		}
		for _, id := range ids {
			if _, ok := quota.Used(b.work(id)); !ok {
				t.Errorf("the file system does not tell what %s takes", id)
			}
			all = append(all, disk.Task{ID: id, Folder: b.work(id), Use: disk.Use{Limit: limit}})
		}
		return all
	}, End: func(id, why string) { t.Errorf("%s is to end: %s", id, why) }}
	w.Watch(ctx)
}

// TestQuotaOfVolumes has the tasks of a set of volumes write one after the other, by which it is full, until it is
// deleted.
func TestQuotaOfVolumes(t *testing.T) {
	drivertest.OnQuotas(t, func(t *testing.T, folder string) {
		b := benchOnQuotas(t, folder)
		volumes := []driver.Volume{{Set: "set", Name: "data", Variable: "DATA"},
			{Set: "set", Name: "more", Variable: "MORE"}}
		run := func(id, script string, most int64) string {
			t.Helper()
			task := driver.Task{ID: id, Volumes: volumes, Command: []string{"sh", "-c", script},
				Env: []string{"PATH=/bin:/usr/bin"}}
			task.Limits.VolumesBytes = most
			b.start(t, task)
			if got := b.exited(t, id); got.OutOfDisk != "" {
				t.Errorf("%s: %+v", id, got)
			}
			return strings.TrimSpace(b.output(t, id, driver.Stdout))
		}
		const write, say = "head -c 700k /dev/zero > ", " && echo wrote || echo refused"
		want(t, run("first", write+`"$DATA/first"`+say, limit), "wrote")
		set := filepath.Join(b.folder, "volumes", "set")
		number := drivertest.ProjectOf(t, set)
		b.reopen(t, func() {})
		want(t, run("second", write+`"$MORE/second"`+say, limit), "refused")
		want(t, run("larger", write+`"$MORE/larger"`+say, 3*limit), "wrote")
		want(t, run("free", write+`"$DATA/free"`+say, 0), "wrote")
		if a := drivertest.Account(t, folder, number); a.BytesMax != 0 || a.Bytes < 2000<<10 {
			t.Errorf("of a task without a limit: %+v", a)
		}
		want(t, run("moves", `mv "$DATA/first" "$MORE" && echo $(ls "$MORE")`, 0), "first larger second")
		if now := drivertest.ProjectOf(t, set); now != number || number == 0 {
			t.Errorf("the project was %d and is %d", number, now)
		}
		if err := b.DeleteVolumes("set"); err != nil {
			t.Error(err)
		}
		drivertest.AwaitFree(t, folder, number)
	})
}

// TestQuotaOfFailed keeps the folder of a task that failed, without a limit, and gives the next one another project.
func TestQuotaOfFailed(t *testing.T) {
	drivertest.OnQuotas(t, func(t *testing.T, folder string) {
		b := benchOnQuotas(t, folder)
		task := driver.Task{ID: "failing", Command: []string{"sh", "-c", "echo why > word; mkdir -p a/b; exit 3"},
			Env: []string{"PATH=/bin:/usr/bin"}, Limits: driver.Limits{DiskBytes: limit}}
		b.start(t, task)
		b.exited(t, task.ID)
		if err := b.Forget(task.ID); err != nil {
			t.Fatal(err)
		}
		root, err := b.Folder(task.ID)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		text, err := root.ReadFile("word")
		kept := drivertest.ProjectOf(t, filepath.Join(b.folder, "failed", "failing"))
		a := drivertest.Account(t, folder, kept)
		if err != nil || string(text) != "why\n" || a.BytesMax != 0 || a.Files != 4 {
			t.Errorf("it has kept %q, %v; of its project there is %+v", text, err, a)
		}
	})
}

// TestQuotaIsKept has a task try to take its files out of what the file system counts: its own account may not.
func TestQuotaIsKept(t *testing.T) {
	drivertest.OnQuotas(t, func(t *testing.T, folder string) {
		b := benchOnQuotas(t, folder)
		for _, user := range []string{"", "nobody"} {
			id := "out" + user
			b.start(t, driver.Task{ID: id, User: user, Command: []string{"sh", "-c", `touch a; chattr -p 0 a; chattr +A a; lsattr -p a`},
				Env: []string{"PATH=/bin:/usr/bin"}, Limits: driver.Limits{DiskBytes: limit}})
			b.exited(t, id)
			out, refused := b.output(t, id, driver.Stdout), b.output(t, id, driver.Stderr)
			if strings.Count(refused, "not permitted") != 2 || strings.HasPrefix(strings.TrimSpace(out), "0 ") {
				t.Errorf("user %q: %q, %q", user, out, refused)
			}
		}
	})
}

// TestWithoutQuotas has the limits watched on a disk that has no quotas.
func TestWithoutQuotas(t *testing.T) {
	t.Parallel()
	b, _ := benchOnDisk(t, "size=64m")
	if err := b.Unbounded(); err == nil {
		t.Error("tmpfs has quotas of projects")
	}
	b.start(t, driver.Task{ID: "filler", Command: []string{b.binary, programWord, "fill", "3000000"},
		Limits: driver.Limits{DiskBytes: limit}})
	if got := b.exited(t, "filler"); !strings.HasPrefix(got.OutOfDisk, "it had taken ") {
		t.Errorf("got %+v, want it killed for want of disk", got)
	}
}

func want(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
