package datadir_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"starling/journal"
	"starling/journal/etcd"
	"starling/journal/etcd/datadir"
)

// TestDamage damages each file of a member at several places: it does not start, says which file that is and what to
// do, and has changed nothing.
func TestDamage(t *testing.T) {
	whole, other := filled(t, here, 3000), filled(t, "http://localhost:0", 10)
	c, err := datadir.Check(whole)
	if err != nil || c.Member == 0 || c.Index < 3000 || c.Term == 0 || c.Committed > c.Index {
		t.Fatalf("got %+v, %v of a member that is whole", c, err)
	}
	const database, log = "member/snap/db", "member/wal/0000000000000000-0000000000000000.wal"
	logEnd := written(t, filepath.Join(whole, log))
	for _, test := range []struct {
		name   string
		damage func(t *testing.T, dir string)
		file   string
		says   string
	}{
		{"database cut off in the middle", cut(database, 1<<20), database, "its end is missing"},
		{"database cut off after its heads", cut(database, 2*4096), database, "its end is missing"},
		{"empty database", cut(database, 0), database, "does not begin as a database does"},
		{"heads of the database", overwrite(database, 0, 2*4096), database, "does not begin as a database does"},
		{"database", overwrite(database, 2*4096, 1<<30), database, "page"},
		{"no database", remove(database), database, "it is missing"},
		{"no folder of the database", remove("member/snap"), database, "it is missing"},
		{"a folder in place of the database", folder(database), database, "is a folder"},
		{"database of another", replace(database, other), database, "it is of another cluster"},
		{"no log", remove("member/wal"), "member/wal", "it is missing"},
		{"empty log", cut(log, 0), "member/wal", "it does not say whose it is"},
		{"log's head", overwrite(log, 0, 64), "member/wal", "it does not say whose it is"},
		{"log's middle", overwrite(log, logEnd/2, 64), log, "at byte"},
		{"log's end is lost", cut(log, logEnd/2), "member", "entry"},
		{"log of another", replace("member/wal", other), database, "older, or"},
		{"a folder in place of the log", folder(log), log, "is a directory"},
		{"a segment of the log is missing", skip(log), "member/wal", "is missing"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "etcd")
			must(t, os.CopyFS(dir, os.DirFS(whole)))
			test.damage(t, dir)
			before := sums(t, dir)
			m, err := etcd.Start(t.Context(), config(dir, here))
			if err == nil {
				m.Close()
			}
			var damage *datadir.Damage
			if !errors.As(err, &damage) || !strings.HasPrefix(damage.File, filepath.Join(dir, test.file)) ||
				!strings.Contains(damage.Error(), test.says) || !strings.Contains(damage.Error(), "hint: ") {
				t.Errorf("got %v, want damage of %s: %q", err, test.file, test.says)
			}
			if after := sums(t, dir); !maps.Equal(before, after) {
				t.Errorf("files have changed: %v, were %v", after, before)
			}
			if !datadir.HasMember(dir) {
				t.Error("it counts as a folder without a member")
			}
		})
	}
}

// TestTornLog cuts the log within what was written last, as a loss of power does: that is whole.
func TestTornLog(t *testing.T) {
	dir := filled(t, here, 0)
	path := filepath.Join(dir, "member/wal/0000000000000000-0000000000000000.wal")
	before, err := datadir.Check(dir)
	must(t, err)
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	must(t, err)
	// Of 2048 bytes that follow, two are there.
	_, err = file.WriteAt([]byte{0, 8, 0, 0, 0, 0, 0, 0, 8, 2}, written(t, path))
	must(t, errors.Join(err, file.Close()))
	if after, err := datadir.Check(dir); after != before || err != nil {
		t.Errorf("got %+v, %v, want %+v", after, err, before)
	}
	m := started(t, dir, here)
	must(t, m.Close())
}

// TestNone has folders in which there is nothing of a member.
func TestNone(t *testing.T) {
	for _, dir := range []string{filepath.Join(t.TempDir(), "none"), t.TempDir()} {
		if _, err := datadir.Check(dir); !errors.Is(err, datadir.ErrNoMember) || datadir.HasMember(dir) {
			t.Errorf("%s: got %v, want that there is none", dir, err)
		}
	}
}

// TestUnreadable has a file that the user may not read.
func TestUnreadable(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may read everything")
	}
	dir := filled(t, here, 0)
	must(t, os.Chmod(filepath.Join(dir, "member/snap/db"), 0))
	if _, err := datadir.Check(dir); err == nil || !strings.Contains(err.Error(), "let the agent's user read and write all in") {
		t.Errorf("got %v, want who may read", err)
	}
}

// BenchmarkCheck reads the files of a member whose database has a gigabyte.
func BenchmarkCheck(b *testing.B) {
	dir := filled(b, here, 1<<20)
	for b.Loop() {
		_, err := datadir.Check(dir)
		must(b, err)
	}
	info, err := os.Stat(filepath.Join(dir, "member/snap/db"))
	must(b, err)
	b.ReportMetric(float64(info.Size())/(1<<30), "GiB")
}

const here = "http://127.0.0.1:0"

func config(dir, url string) etcd.MemberConfig {
	return etcd.MemberConfig{Name: "only", DataDir: dir, ClientURL: url, PeerURL: url}
}

func started(t testing.TB, dir, url string) *etcd.Member {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	m, err := etcd.Start(ctx, config(dir, url))
	must(t, err)
	must(t, m.Ready(ctx))
	return m
}

// filled returns the folder of a member that has run, and has as many keys of 600 bytes each.
func filled(t testing.TB, url string, keys int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "etcd")
	m := started(t, dir, url)
	j := m.Journal()
	value := strings.Repeat("x", 600)
	var writers []chan error
	for w := range 64 {
		ended := make(chan error, 1)
		writers = append(writers, ended)
		go func() {
			for i := w; i < keys; i += 64 {
				if _, err := j.Client().Put(t.Context(), fmt.Sprintf("key/%09d", i), value); err != nil {
					ended <- err
					return
				}
			}
			ended <- nil
		}()
	}
	for _, ended := range writers {
		must(t, <-ended)
	}
	must(t, j.Append(t.Context(), journal.Record{Writer: "w", Seq: 1}))
	must(t, errors.Join(j.Close(), m.Close()))
	return dir
}

// written is how long a segment of a log is without the zeroes with which it is filled up.
func written(t testing.TB, path string) int64 {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	return int64(len(strings.TrimRight(string(data), "\x00"))+7) / 8 * 8
}

// The damages: to the bytes of a file, or to a whole one.

// cut leaves only the first bytes.
func cut(file string, bytes int64) func(*testing.T, string) {
	return func(t *testing.T, dir string) { must(t, os.Truncate(filepath.Join(dir, file), bytes)) }
}

func overwrite(file string, from, bytes int64) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
		must(t, err)
		info, err := f.Stat()
		must(t, err)
		_, err = f.WriteAt([]byte(strings.Repeat("#", int(min(bytes, info.Size()-from)))), from)
		must(t, errors.Join(err, f.Close()))
	}
}

func remove(file string) func(*testing.T, string) {
	return func(t *testing.T, dir string) { must(t, os.RemoveAll(filepath.Join(dir, file))) }
}

func folder(file string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		must(t, os.Remove(filepath.Join(dir, file)))
		must(t, os.Mkdir(filepath.Join(dir, file), 0o700))
	}
}

func replace(file, from string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		path, theirs := filepath.Join(dir, file), filepath.Join(from, file)
		must(t, os.RemoveAll(path))
		info, err := os.Stat(theirs)
		must(t, err)
		if info.IsDir() {
			must(t, os.CopyFS(path, os.DirFS(theirs)))
			return
		}
		data, err := os.ReadFile(theirs)
		must(t, err)
		must(t, os.WriteFile(path, data, 0o600))
	}
}

// skip lets the segment after the next one follow.
func skip(file string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		data, err := os.ReadFile(filepath.Join(dir, file))
		must(t, err)
		must(t, os.WriteFile(filepath.Join(dir, "member/wal/0000000000000002-0000000000001000.wal"), data, 0o600))
	}
}

// sums are of all files below a folder: enough to see a change.
func sums(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	must(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			all[path] = "folder"
			return err
		}
		data, err := os.ReadFile(path)
		all[path] = fmt.Sprint(len(data), hash(data))
		return err
	}))
	return all
}

func hash(data []byte) uint64 {
	h := fnv.New64a()
	h.Write(data)
	return h.Sum64()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
