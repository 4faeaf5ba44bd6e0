package depot_test

import (
	"bytes"
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"starling/archive/depot"
	"starling/terms"
)

// store returns a place in an empty bucket, and a file with credentials.
func store(t *testing.T) depot.Place {
	t.Helper()
	engine := s3mem.New()
	if err := engine.CreateBucket("safe"); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(gofakes3.New(engine).Server())
	t.Cleanup(server.Close)
	credentials := filepath.Join(t.TempDir(), "credentials")
	text := "[default]\naws_access_key_id = KEY\naws_secret_access_key = SECRET\n"
	if err := os.WriteFile(credentials, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return depot.Place{To: "s3://safe/flock", Endpoint: server.URL, CredentialsFile: credentials, Region: "us-east-1"}
}

// TestDepot keeps, lists, fetches and prunes backups of two clusters, on a disk and in a store.
func TestDepot(t *testing.T) {
	places := map[string]depot.Place{"folder": {To: filepath.Join(t.TempDir(), "backups")}, "store": store(t)}
	for name, place := range places {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			d, err := depot.Open(place)
			must(t, err)
			wantList(t, d)
			at := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
			first, second := nameOf("one", at, 17), nameOf("one", at.Add(time.Hour), 23)
			other := nameOf("two-and-a-half", at.Add(time.Minute), 5)
			for _, b := range []string{second, other, first} {
				must(t, d.Put(ctx, b, file(t, "the value of "+b)))
			}
			must(t, d.Put(ctx, "something-else", file(t, "x")))
			wantList(t, d, second, first, other)
			all, err := depot.Backups(ctx, d)
			must(t, err)
			want := depot.Backup{Name: other, Cluster: "two-and-a-half", At: at.Add(time.Minute), Index: 5,
				Bytes: int64(len("the value of " + other))}
			if all[2] != want {
				t.Errorf("the list says %+v, want %+v", all[2], want)
			}
			var got bytes.Buffer
			if must(t, d.Fetch(ctx, first, &got)); got.String() != "the value of "+first {
				t.Errorf("what comes back of %s is %q", first, got.String())
			}
			if err := d.Fetch(ctx, "nothing", &got); err == nil {
				t.Error("what was never kept is fetched")
			}
			_, err = depot.Find(ctx, place)
			if err == nil || !strings.Contains(err.Error(), "of cluster one and of two-and-a-half") {
				t.Errorf("of two clusters one is taken: %v", err)
			}
			one := place
			one.To += "/" + first
			found, err := depot.Find(ctx, one)
			if err != nil || found.Name != one.To || found.Older != "" {
				t.Errorf("of one that is named comes %+v: %v", found, err)
			}
			must(t, os.Remove(found.Path))

			must(t, d.Delete(ctx, other))
			found, err = depot.Find(ctx, place)
			if must(t, err); found.Name != place.To+"/"+second || found.Older != one.To {
				t.Errorf("the newest is said to be %+v, want %s, and before that %s", found, second, first)
			}
			must(t, os.Remove(found.Path))
			gone, err := depot.Prune(ctx, d, depot.Backup{Cluster: "one"}, 1)
			if must(t, err); !slices.Equal(gone, []string{first}) {
				t.Errorf("%v are deleted, want %s alone", gone, first)
			}
			wantList(t, d, second)
		})
	}
}

// TestNewestIsOfTheLatestEntry has a machine with a wrong clock make a backup: it is neither the one that is kept nor
// the one that is found.
func TestNewestIsOfTheLatestEntry(t *testing.T) {
	ctx := t.Context()
	place := depot.Place{To: t.TempDir()}
	d, err := depot.Open(place)
	must(t, err)
	at := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	wrong, right := nameOf("one", at.AddDate(10, 0, 0), 17), nameOf("one", at, 23)
	for _, b := range []string{wrong, right} {
		must(t, d.Put(ctx, b, file(t, "the value of "+b)))
	}
	found, err := depot.Find(ctx, place)
	if must(t, err); found.Name != place.To+"/"+right {
		t.Errorf("the newest is said to be %s, want %s", found.Name, right)
	}
	must(t, os.Remove(found.Path))
	gone, err := depot.Prune(ctx, d, depot.Backup{Cluster: "one"}, 1)
	if must(t, err); !slices.Equal(gone, []string{wrong}) {
		t.Errorf("%v are deleted, want %s alone", gone, wrong)
	}
}

func TestPlacesAreRefused(t *testing.T) {
	for text, want := range map[string]string{"": "files are kept in", "ftp://x/y": "files are kept in"} {
		if _, err := depot.Open(depot.Place{To: text}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
	place := store(t)
	place.To = "s3://nowhere/x"
	d, err := depot.Open(place)
	must(t, err)
	_, err = depot.Backups(t.Context(), d)
	if err == nil || !strings.Contains(err.Error(), "make the bucket, or name another") {
		t.Errorf("a bucket that is not there: got %v", err)
	}
	place.Endpoint = "example.com"
	if _, err := depot.Open(place); err == nil || !strings.Contains(err.Error(), "is not a URL such as") {
		t.Errorf("an endpoint without a scheme: got %v", err)
	}
}

// TestUnfinishedIsNotThere has a backup that cannot be kept whole.
func TestUnfinishedIsNotThere(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d, err := depot.Open(store(t))
	must(t, err)
	name := nameOf("one", time.Now(), 1)
	if err := d.Put(ctx, name, file(t, "x")); err == nil {
		t.Error("it is kept though nobody waits for that")
	}
	wantList(t, d)
}

// TestNewestIsOfTheLastRestore restores a cluster from an older backup, with its keys: what it makes then is newer than
// what was made of the past that was lost, and that goes first.
func TestNewestIsOfTheLastRestore(t *testing.T) {
	ctx := t.Context()
	place := depot.Place{To: t.TempDir()}
	d, err := depot.Open(place)
	must(t, err)
	at := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	var names []string
	keep := func(index terms.Index, want string) depot.Backup {
		t.Helper()
		all, err := depot.Backups(ctx, d)
		must(t, err)
		at = at.Add(time.Minute)
		b := depot.Next(all, "one", at, index)
		if got := strings.TrimPrefix(b.Name, "starling-one-"); got != at.Format("20060102T150405Z-")+want+".backup" {
			t.Errorf("the backup of entry %d is named %s, want %s", index, b.Name, want)
		}
		must(t, d.Put(ctx, b.Name, file(t, "the value of "+b.Name)))
		if names = append([]string{b.Name}, names...); depot.Newest(all, "two") != (depot.Backup{}) {
			t.Error("a backup is said to be of a cluster that has none")
		}
		wantList(t, d, names...)
		return b
	}
	keep(19, "19")
	keep(48, "48")
	keep(27, "r1-27")
	keep(48, "r1-48")
	last := keep(21, "r2-21")
	gone, err := depot.Prune(ctx, d, last, 2)
	if must(t, err); !slices.Equal(gone, names[2:]) {
		t.Errorf("%v are deleted, want %v", gone, names[2:])
	}
	older := depot.Next(nil, "one", at, 5)
	must(t, d.Put(ctx, older.Name, file(t, "x")))
	gone, err = depot.Prune(ctx, d, older, 1)
	if must(t, err); !slices.Equal(gone, names[1:2]) {
		t.Errorf("%v are deleted, want %s alone: never what was just made", gone, names[1])
	}
}

func nameOf(cluster string, at time.Time, index terms.Index) string {
	return depot.Next(nil, cluster, at, index).Name
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "value")
	must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func wantList(t *testing.T, d depot.Depot, want ...string) {
	t.Helper()
	all, err := depot.Backups(t.Context(), d)
	must(t, err)
	var got []string
	for _, b := range all {
		got = append(got, b.Name)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the list has %v, want %v", got, want)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestPartsOfBackups has backups be cut off: the next one deletes what is left of them, and nothing that is of others,
// or that may be written to now.
func TestPartsOfBackups(t *testing.T) {
	dir := t.TempDir()
	old := time.Now().Add(-2 * time.Hour)
	for name, at := range map[string]time.Time{"123.unfinished": old, "124.unfinished": time.Now(),
		"own.unfinished": old, "mine.125.unfinished": old} {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte("a part"), 0o600))
		must(t, os.Chtimes(path, at, at))
	}
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, []byte("a backup"), 0o600))
	d, err := depot.Open(depot.Place{To: dir})
	must(t, err)
	must(t, d.Put(t.Context(), "whole", file))
	begun, err := depot.Begin(dir, "mine.")
	must(t, err)
	must(t, errors.Join(begun.Close(), os.Remove(begun.Name())))
	entries, err := os.ReadDir(dir)
	must(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if want := []string{"124.unfinished", "own.unfinished", "whole"}; !slices.Equal(names, want) {
		t.Errorf("there are %v, want %v", names, want)
	}
}

// TestFindNothing says of a folder without backups that there are none.
func TestFindNothing(t *testing.T) {
	folder := t.TempDir()
	_, err := depot.Find(t.Context(), depot.Place{To: folder})
	if want := "there is no backup in " + folder; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
