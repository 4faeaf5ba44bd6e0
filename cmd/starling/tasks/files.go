package tasks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"starling/api/client"
	starlingv1 "starling/api/v1"
	"starling/cmd/starling/console"
	"starling/cmd/starling/exit"
	"starling/cmd/starling/remote"
	"starling/cmd/starling/target"
	"starling/cmd/starling/usage"
	"starling/terms"
)

// whoseFiles says what the commands read.
const whoseFiles = `A PATH is below the folder in which the instance works; of a container it is below the root of its file system.

When an instance has ended its folder is deleted, unless it failed by itself: its machine keeps what fifty of those left, the last three
of a job and 4 GiB at most, while the disk has room; the pool that keeps most there loses its oldest first. Of a container it is what that
has changed. What lay in volumes, in memory and in a
container's folders for temporary files is not kept. An instance that another has followed is named with its number, such as web.server[2]#4711.

It needs the role operator in the pool of the job.`

// newFiles returns "fs", with the commands that read what the working folder of an instance holds.
func newFiles(r *remote.Remote) *cobra.Command {
	return usage.Group("fs", "See and fetch the files of an instance", newFileList(r), newFileCat(r), newFileGet(r))
}

func newFileList(r *remote.Remote) *cobra.Command {
	return &cobra.Command{
		Use:               "ls INSTANCE [PATH]",
		Short:             "List the files of an instance",
		Long:              "List what a folder of an instance holds.\n\n" + whoseFiles,
		Example:           "  starling alloc fs ls web.server[2]\n  starling alloc fs ls db /var/log",
		Args:              usage.Arguments(1, 2),
		ValidArgsFunction: target.Complete(r),
		RunE: r.Asking(func(ctx context.Context, peer *client.Client, args []string) error {
			path := ""
			if len(args) > 1 {
				path = args[1]
			}
			f, err := open(ctx, r, peer, args[0])
			if err != nil {
				return err
			}
			all, err := f.list(ctx, path)
			if err != nil {
				return err
			}
			return r.Show(all, func() *console.Table {
				t := console.NewTable("MODE", "SIZE", "MODIFIED", "NAME")
				for _, one := range all.GetFiles() {
					t.Row(one.GetMode(), terms.Disk.Round(one.GetBytes()),
						console.Time(one.GetModified().AsTime()), shownName(one))
				}
				if all.GetMore() {
					t.Row("", "", "", "…")
				}
				return t
			})
		}),
	}
}

// shownName is how ls shows a name: with what it is, or leads to.
func shownName(one *starlingv1.FileInfo) string {
	name := console.Printable(one.GetName())
	switch {
	case one.GetFolder():
		return name + "/"
	case one.GetLink() != "":
		return name + " -> " + console.Printable(one.GetLink())
	}
	return name
}

func newFileCat(r *remote.Remote) *cobra.Command {
	return &cobra.Command{
		Use:               "cat INSTANCE PATH",
		Short:             "Print a file of an instance",
		Long:              "Print what a file of an instance holds.\n\n" + whoseFiles,
		Example:           "  starling alloc fs cat web.server[2] config/web.toml",
		Args:              usage.Arguments(2, 2),
		ValidArgsFunction: target.Complete(r),
		RunE: dialed(r, func(ctx context.Context, peer *client.Client, args []string) error {
			f, err := open(ctx, r, peer, args[0])
			if err != nil {
				return err
			}
			if err = f.read(ctx, args[1], r.Out); errors.Is(err, errFolder) {
				return fmt.Errorf("%s is a folder: starling alloc fs ls shows what it holds", args[1])
			}
			return err
		}),
	}
}

func newFileGet(r *remote.Remote) *cobra.Command {
	return &cobra.Command{
		Use:   "get INSTANCE PATH [TO]",
		Short: "Fetch a file or a folder of an instance",
		Long: "Fetch a file of an instance, or a folder with all that is in it, but for links, to this machine: as TO, or else under its own\n" +
			"name in the present folder. What is there already is not replaced.\n\n" + whoseFiles,
		Example:           "  starling alloc fs get train.worker[0] checkpoints ./checkpoints",
		Args:              usage.Arguments(2, 3),
		ValidArgsFunction: target.Complete(r),
		RunE: dialed(r, func(ctx context.Context, peer *client.Client, args []string) error {
			f, err := open(ctx, r, peer, args[0])
			if err != nil {
				return err
			}
			to := path.Base(path.Clean("/" + args[1]))
			if len(args) > 2 {
				to = args[2]
			}
			if to == "/" {
				return exit.Fail(exit.Usage, "say as what the whole folder is to be fetched: starling alloc fs get %s %s TO", args[0],
					args[1])
			}
			return f.fetch(ctx, args[1], to)
		}),
	}
}

// folder is that of one instance.
type folder struct {
	remote *remote.Remote
	peer   *client.Client
	of     target.Target
}

// open finds the instance that is meant.
func open(ctx context.Context, r *remote.Remote, peer *client.Client, text string) (*folder, error) {
	readings, err := target.Parse(text)
	if err != nil {
		return nil, exit.Fail(exit.Usage, "%w", err)
	}
	t, err := instance(ctx, r, readings)
	return &folder{r, peer, t}, err
}

// ask asks for a path, and visits the pieces of the answer.
func (f *folder) ask(ctx context.Context, path string, visit func(*starlingv1.FilesResponse) error) error {
	return f.peer.Files(ctx, &starlingv1.FilesRequest{Allocation: f.of.Allocation, Job: f.of.Job, Task: f.of.Task,
		Slot: uint32(max(f.of.Number, 0)), Path: path}, visit)
}

// list returns what a path holds, of a file only that. Data are passed over.
func (f *folder) list(ctx context.Context, path string) (*starlingv1.FilesResponse, error) {
	all, enough := &starlingv1.FilesResponse{}, errors.New("enough")
	err := f.ask(ctx, path, func(piece *starlingv1.FilesResponse) error {
		if piece.GetFile() != nil {
			all.Files = append(all.Files, piece.GetFile())
			return enough
		}
		if piece.GetAllocation() != "" {
			all.Index, all.Allocation, all.Node = piece.GetIndex(), piece.GetAllocation(), piece.GetNode()
		}
		all.Files, all.More = append(all.Files, piece.GetFiles()...), all.GetMore() || piece.GetMore()
		return nil
	})
	if errors.Is(err, enough) {
		err = nil
	}
	return all, err
}

// errFolder tells that a path is that of a folder.
var errFolder = errors.New("it is a folder")

// read writes what a file holds.
func (f *folder) read(ctx context.Context, path string, to io.Writer) error {
	return f.ask(ctx, path, func(piece *starlingv1.FilesResponse) error {
		if piece.GetAllocation() == "" && piece.GetFile() == nil && len(piece.GetData()) == 0 {
			return errFolder
		}
		_, err := to.Write(piece.GetData())
		return err
	})
}

// fetch brings a file, or a folder with all that is in it, under its name only once it is all there.
func (f *folder) fetch(ctx context.Context, from, to string) error {
	part := to + ".part"
	for _, name := range []string{to, part} {
		if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
			return exit.Fail(exit.Usage, "%s is there already: name what is not, as in starling alloc fs get INSTANCE PATH TO",
				name)
		}
	}
	var passed []string
	if err := f.copy(ctx, from, part, &passed); err != nil {
		return errors.Join(err, os.RemoveAll(part))
	}
	for _, text := range passed[:min(len(passed), passedShownMax)] {
		f.remote.Hint("%s", text)
	}
	if more := len(passed) - passedShownMax; more > 0 {
		f.remote.Hint("and %d more are passed over, such as links", more)
	}
	return os.Rename(part, to)
}

// passedShownMax bounds what is named of what is passed over.
const passedShownMax = 10

// kernels tells whether an entry of a container's topmost folder is the kernel's own: nobody writes there.
func kernels(above string, one *starlingv1.FileInfo) bool {
	return path.Clean("/"+above) == "/" && one.GetMode() == "dr-xr-xr-x" &&
		slices.Contains([]string{"proc", "sys"}, one.GetName())
}

// copy brings a file, or a folder with all that is in it, and says what it passes over.
func (f *folder) copy(ctx context.Context, from, to string, passed *[]string) error {
	file, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = f.read(ctx, from, file)
	if err = errors.Join(err, file.Close()); err == nil {
		return nil
	}
	if removed := os.Remove(to); !errors.Is(err, errFolder) || removed != nil {
		return errors.Join(err, removed)
	}
	all, err := f.list(ctx, from)
	if err != nil {
		return err
	}
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	for _, one := range all.GetFiles() {
		if name := one.GetName(); name != filepath.Base(name) || !filepath.IsLocal(name) {
			return fmt.Errorf("%s: %q is no name of a file", from, name)
		}
		switch {
		case kernels(from, one):
			f.remote.Hint("/%s is passed over: it is the kernel's", one.GetName())
			continue
		case !one.GetFolder() && !strings.HasPrefix(one.GetMode(), "-"):
			*passed = append(*passed, fmt.Sprintf("%s/%s is passed over: it is no file, or its name is not UTF-8",
				strings.TrimSuffix(from, "/"), one.GetName()))
			continue
		}
		if err := f.copy(ctx, path.Join(from, one.GetName()), filepath.Join(to, one.GetName()), passed); err != nil {
			return err
		}
	}
	if all.GetMore() {
		return fmt.Errorf("%s holds more than %d files: fetch the others by their names", from, len(all.GetFiles()))
	}
	return nil
}

// dialed lets a command talk with a peer for as long as it takes.
func dialed(r *remote.Remote,
	do func(ctx context.Context, peer *client.Client, args []string) error) func(*cobra.Command, []string) error {
	return func(command *cobra.Command, args []string) error {
		peer, err := r.Dial()
		if err != nil {
			return err
		}
		defer peer.Close()
		return do(command.Context(), peer, args)
	}
}
