// Package depot keeps files of a cluster, such as its backups: in a folder, or in a bucket of an S3-compatible store.
//
// A backup's name tells of which cluster it is, after which entry and of when, so that the list needs no other file,
// and many clusters may share a place:
//
//	starling-CLUSTER-20261124T120000Z-4711.backup
//
// A cluster that was restored from an older backup, and kept its keys, makes backups of entries that lie before those
// of the past that was lost. They get a mark that grows with each such restore, and counts before the entry:
//
//	starling-CLUSTER-20261125T120000Z-r1-4203.backup
package depot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"starling/terms"
)

// ErrPlace tells that something is not where files can be kept.
var ErrPlace = errors.New("files are kept in a folder, or in a bucket: s3://BUCKET/PREFIX")

// Place says where files are kept, and how a store is reached.
type Place struct {
	// To is a folder, or s3://BUCKET/PREFIX.
	To string
	// Endpoint is the URL of the store, "" for Amazon's. Region may be "" where the store tells it.
	Endpoint, Region string
	// CredentialsFile is one as the AWS tools have it, "" for what the environment, ~/.aws or the machine's role say.
	CredentialsFile string
}

// File is one that is kept.
type File struct {
	Name  string
	Bytes int64
}

// Backup is one that is kept.
type Backup struct {
	Name    string
	Cluster string
	At      time.Time
	// Restores counts how often the journal was found to end before the newest backup, as after a restore.
	Restores uint64
	Index    terms.Index
	Bytes    int64
}

// Depot is a place that files are kept at. It is safe for concurrent use.
type Depot interface {
	// List returns what is there, in no order.
	List(ctx context.Context) ([]File, error)
	// Put keeps a file under a name. It is there when all of it is.
	Put(ctx context.Context, name, file string) error
	// Fetch writes what is kept under a name.
	Fetch(ctx context.Context, name string, to io.Writer) error
	// Delete deletes what is kept under a name.
	Delete(ctx context.Context, name string) error
}

// scheme begins the name of a place in a store.
const scheme = "s3://"

// IsStore tells whether a text names a place in a store.
func IsStore(text string) bool { return strings.HasPrefix(text, scheme) }

// Open returns the depot at a place. A store is not asked yet.
func Open(p Place) (Depot, error) {
	if IsStore(p.To) {
		return openBucket(p)
	}
	if p.To == "" || strings.Contains(p.To, "://") {
		return nil, fmt.Errorf("%q: %w", p.To, ErrPlace)
	}
	return folder(p.To), nil
}

// timeForm is how a name tells the time.
const timeForm = "20060102T150405Z"

var nameForm = regexp.MustCompile(`^starling-(.+)-(\d{8}T\d{6}Z)-(?:r(\d+)-)?(\d+)\.backup$`)

// nameOf returns the name of a backup.
func nameOf(b Backup) string {
	mark := ""
	if b.Restores > 0 {
		mark = fmt.Sprintf("r%d-", b.Restores)
	}
	return fmt.Sprintf("starling-%s-%s-%s%d.backup", b.Cluster, b.At.UTC().Format(timeForm), mark, b.Index)
}

// Next names the backup that a cluster makes now, of the last entry of its journal, so that it is newer than all that
// are there. Those of later entries are of a past that was lost.
func Next(all []Backup, cluster string, now time.Time, index terms.Index) Backup {
	b := Backup{Cluster: cluster, At: now.UTC().Truncate(time.Second), Index: index}
	if last := Newest(all, cluster); last.Index > index {
		b.Restores = last.Restores + 1
	} else {
		b.Restores = last.Restores
	}
	b.Name = nameOf(b)
	return b
}

// Compare tells which of two backups of a cluster is newer, by their entries.
func Compare(a, b Backup) int {
	return cmp.Or(cmp.Compare(a.Restores, b.Restores), cmp.Compare(a.Index, b.Index))
}

// Newest returns the newest backup of a cluster, an empty one if there is none.
func Newest(all []Backup, cluster string) Backup {
	for _, b := range all {
		if b.Cluster == cluster {
			return b
		}
	}
	return Backup{}
}

// parse reads a name; ok is false for one that no backup has.
func parse(name string) (b Backup, ok bool) {
	parts := nameForm.FindStringSubmatch(name)
	if parts == nil {
		return b, false
	}
	at, err := time.Parse(timeForm, parts[2])
	restores, err2 := strconv.ParseUint(cmp.Or(parts[3], "0"), 10, 64)
	index, err3 := strconv.ParseUint(parts[4], 10, 64)
	return Backup{Name: name, Cluster: parts[1], At: at, Restores: restores, Index: terms.Index(index)},
		err == nil && err2 == nil && err3 == nil
}

// Backups returns what is there and has the name of a backup, by clusters, and of each the newest first: that of the
// latest entry after the last restore, for the clock of a machine that made one may have been wrong.
func Backups(ctx context.Context, d Depot) ([]Backup, error) {
	files, err := d.List(ctx)
	if err != nil {
		return nil, err
	}
	var all []Backup
	for _, f := range files {
		if b, ok := parse(f.Name); ok {
			b.Bytes = f.Bytes
			all = append(all, b)
		}
	}
	slices.SortFunc(all, func(a, b Backup) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), Compare(b, a),
			b.At.Compare(a.At), cmp.Compare(a.Name, b.Name))
	})
	return all, nil
}

// Prune deletes all backups of a cluster but the newest and the one that was just made, and returns the names of those
// that it deleted.
func Prune(ctx context.Context, d Depot, made Backup, keep int) (gone []string, err error) {
	all, err := Backups(ctx, d)
	for _, b := range all {
		if b.Cluster != made.Cluster {
			continue
		}
		if keep--; keep >= 0 || b.Name == made.Name {
			continue
		}
		if failed := d.Delete(ctx, b.Name); failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		gone = append(gone, b.Name)
	}
	return gone, err
}

// Found is a backup that was written into a file.
type Found struct {
	// Path is the file, Name the backup, with its place.
	Path, Name string
	// Older is the backup that was made before, with its place; "" if there is none.
	Older string
}

// Find writes a backup into a new file in a folder of the system's: the one that is named, or the newest where a place
// is named.
func Find(ctx context.Context, p Place) (found Found, err error) {
	d, err := Open(p)
	if err != nil {
		return found, err
	}
	all, err := Backups(ctx, d)
	if err != nil {
		return found, err
	}
	within := strings.TrimSuffix(p.To, "/") + "/"
	for _, b := range all {
		if b.Cluster != all[0].Cluster {
			return found, fmt.Errorf("%s has backups of cluster %s and of %s: name one of them, such as %s", p.To, all[0].Cluster,
				b.Cluster, within+all[0].Name)
		}
	}
	name := ""
	switch info, err := os.Stat(p.To); {
	case len(all) > 0:
		name, found.Name = all[0].Name, within+all[0].Name
		if len(all) > 1 {
			found.Older = within + all[1].Name
		}
	case err == nil && info.IsDir():
		return found, fmt.Errorf("there is no backup in %s", p.To)
	default:
		found.Name = p.To
		at := strings.LastIndexByte(p.To, '/')
		p.To, name = p.To[:at+1], p.To[at+1:]
		if d, err = Open(p); err != nil {
			return found, err
		}
	}
	file, err := os.CreateTemp("", "starling-*.backup")
	if err != nil {
		return found, err
	}
	err = errors.Join(d.Fetch(ctx, name, file), file.Close())
	if err != nil {
		return found, errors.Join(err, os.Remove(file.Name()))
	}
	found.Path = file.Name()
	return found, nil
}

// folder is a depot on a disk.
type folder string

// List implements Depot.
func (f folder) List(context.Context) ([]File, error) {
	entries, err := os.ReadDir(string(f))
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		return nil, err
	}
	var all []File
	for _, e := range entries {
		if info, err := e.Info(); err == nil && !e.IsDir() {
			all = append(all, File{e.Name(), info.Size()})
		}
	}
	return all, nil
}

// Put implements Depot.
func (f folder) Put(_ context.Context, name, file string) error {
	if err := f.put(name, file); err != nil {
		return fmt.Errorf("keep %s: %w", name, err)
	}
	return nil
}

func (f folder) put(name, file string) error {
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return err
	}
	from, err := os.Open(file)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := Begin(string(f), "")
	if err != nil {
		return err
	}
	defer os.Remove(to.Name()) // it is not there any more when all went well
	_, err = io.Copy(to, from)
	if err = errors.Join(err, to.Sync(), to.Close()); err != nil {
		return err
	}
	return os.Rename(to.Name(), filepath.Join(string(f), name))
}

const (
	// unfinished ends the names of files that are being written.
	unfinished = ".unfinished"
	// abandonedAfter is how long nothing is written to a file that nobody goes on with.
	abandonedAfter = time.Hour
)

// Begin makes a file in a folder, under a name that begins with a prefix, in which something is put together that gets
// its own name when all of it is there. It deletes what others began under that prefix and were cut off from: files
// that are an hour older by the clock of the folder.
func Begin(dir, prefix string) (*os.File, error) {
	file, err := os.CreateTemp(dir, prefix+"*"+unfinished)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	own, err2 := file.Stat()
	if err != nil || err2 != nil {
		return file, nil // it is of no use only to those who clean up
	}
	for _, e := range entries {
		between, ends := strings.CutSuffix(strings.TrimPrefix(e.Name(), prefix), unfinished)
		if _, err := strconv.ParseUint(between, 10, 64); err != nil || !ends || !strings.HasPrefix(e.Name(), prefix) {
			continue
		}
		if info, err := e.Info(); err == nil && own.ModTime().Sub(info.ModTime()) > abandonedAfter {
			_ = os.Remove(filepath.Join(dir, e.Name())) // the next one tries again
		}
	}
	return file, nil
}

// Fetch implements Depot.
func (f folder) Fetch(_ context.Context, name string, to io.Writer) error {
	from, err := os.Open(filepath.Join(string(f), name))
	if err != nil {
		return fmt.Errorf("fetch %s: %w", name, err)
	}
	defer from.Close()
	_, err = io.Copy(to, from)
	return err
}

// Delete implements Depot.
func (f folder) Delete(_ context.Context, name string) error {
	return os.Remove(filepath.Join(string(f), name))
}
