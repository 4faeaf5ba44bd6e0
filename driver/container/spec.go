package container

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/containerd/containerd/v2/contrib/seccomp"
	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/containerd/v2/core/leases"
	"github.com/containerd/containerd/v2/core/mount"
	"github.com/containerd/containerd/v2/pkg/oci"
	"github.com/containerd/errdefs"
	"github.com/moby/sys/signal"
	"github.com/opencontainers/image-spec/identity"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/opencontainers/runtime-spec/specs-go"

	"starling/driver"
	"starling/driver/runc"
)

// Prepare makes the file system and the description of a task's container.
func (e *engine) Prepare(ctx context.Context, key string, t *driver.Task) (*runc.Container, error) {
	name, err := e.Pull(ctx, driver.Image{Name: t.Container.Image, Task: t.ID}, func(string) {})
	if err != nil {
		return nil, err
	}
	ctx = e.within(ctx)
	image, err := e.client.GetImage(ctx, name)
	if err != nil {
		return nil, err
	}
	made, err := image.Spec(ctx)
	if err != nil {
		return nil, fmt.Errorf("image %q: %w", name, err)
	}
	c := &runc.Container{Program: e.Runtime(), User: t.User}
	if c.User == "" {
		c.User = made.Config.User
	}
	if s := made.Config.StopSignal; s != "" {
		if c.StopSignal, err = signal.ParseSignal(s); err != nil {
			return nil, fmt.Errorf("image %q: %w", name, err)
		}
	}
	spec, err := e.spec(ctx, t, &made.Config)
	if err != nil {
		return nil, fmt.Errorf("image %q: %w", name, err)
	}
	if err := e.inject(t, spec); err != nil {
		return nil, err
	}
	if c.Spec, err = json.Marshal(spec); err != nil {
		return nil, err
	}
	name = e.lease(key)
	release, err := e.lock(ctx, name)
	if err != nil {
		return nil, err
	}
	defer release()
	root, err := e.writable(ctx, name, identity.ChainID(made.RootFS.DiffIDs).String())
	if err != nil {
		return nil, err
	}
	for _, m := range root {
		c.Root = append(c.Root, specs.Mount{Type: m.Type, Source: m.Source, Destination: m.Target, Options: m.Options})
	}
	return c, nil
}

// writable makes a writable file system above that of an image.
func (e *engine) writable(ctx context.Context, name, base string) ([]mount.Mount, error) {
	_, err := e.client.LeasesService().Create(ctx, leases.WithID(name), leases.WithLabel(ownerLabel, e.owner))
	if err != nil && !errdefs.IsAlreadyExists(err) {
		return nil, fmt.Errorf("make a lease in containerd: %w", err)
	}
	ctx = leases.WithLease(ctx, name)
	snapshots := e.client.SnapshotService(e.there.Load().snapshotter)
	root, err := snapshots.Prepare(ctx, name, base)
	if errdefs.IsAlreadyExists(err) { // of a start that nothing confirmed
		if err = snapshots.Remove(ctx, name); err == nil {
			root, err = snapshots.Prepare(ctx, name, base)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("make a file system in containerd: %w", err)
	}
	return root, nil
}

// Mount mounts the file systems of containers: it is the runc.Mounter of their supervisors.
func Mount(path string, mounts ...specs.Mount) error {
	for _, m := range mounts {
		one := mount.Mount{Type: m.Type, Source: m.Source, Target: m.Destination, Options: m.Options}
		if err := one.Mount(path); err != nil {
			return err
		}
	}
	return nil
}

// errNoProgram is what an image is that has nothing to run.
var errNoProgram = errors.New("it names no program: give the task a command")

// spec describes the container, but for what its supervisor adds: account, control group and folders.
func (e *engine) spec(ctx context.Context, t *driver.Task, image *ocispec.ImageConfig) (*specs.Spec, error) {
	spec, err := oci.GenerateSpec(ctx, e.client, &containers.Container{ID: t.ID},
		oci.WithHostNamespace(specs.PIDNamespace), oci.WithHostNamespace(specs.NetworkNamespace),
		oci.WithDroppedCapabilities([]string{"CAP_MKNOD"})) // a device in a volume may be there for a task that finds more
	if err != nil {
		return nil, err
	}
	p := spec.Process
	p.Args = append(slices.Clone(image.Entrypoint), image.Cmd...)
	switch {
	case len(t.Command) > 0:
		p.Args = append(slices.Clone(t.Command), t.Container.Arguments...)
	case len(t.Container.Arguments) > 0:
		p.Args = append(slices.Clone(image.Entrypoint), t.Container.Arguments...)
	}
	if len(p.Args) == 0 || p.Args[0] == "" {
		return nil, errNoProgram
	}
	for _, text := range slices.Concat(p.Args, t.Env) {
		if !utf8.ValidString(text) {
			return nil, fmt.Errorf("%q is not UTF-8, as all that is told to a container must be", text)
		}
	}
	p.Cwd, p.Rlimits = image.WorkingDir, nil
	bundle := &runc.Bundle{Spec: spec}
	bundle.Set("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	bundle.Set(image.Env...)
	bundle.Set(t.Env...)
	spec.Root.Readonly = t.Container.ReadOnly
	addCapabilities(p.Capabilities, t.Container.Capabilities)
	for _, file := range []string{"/etc/resolv.conf", "/etc/hosts"} { // the network is the machine's
		if _, err := os.Stat(file); err == nil {
			bundle.Bind(file, file, true)
		}
	}
	for _, m := range t.Container.Mounts {
		if m.Folder == "" && m.Volume == "" {
			spec.Mounts = append(spec.Mounts, specs.Mount{Destination: m.Path, Type: "tmpfs", Source: "tmpfs",
				Options: []string{"nosuid", "nodev", "mode=1777"}})
		}
	}
	spec.Linux.Seccomp = seccomp.DefaultProfile(spec)
	return spec, nil
}

// addCapabilities gives the program more than the usual capabilities, whatever its account.
func addCapabilities(to *specs.LinuxCapabilities, more []string) {
	for _, one := range more {
		one = "CAP_" + strings.TrimPrefix(one, "CAP_")
		for _, set := range []*[]string{&to.Bounding, &to.Effective, &to.Permitted, &to.Inheritable, &to.Ambient} {
			if !slices.Contains(*set, one) {
				*set = append(*set, one)
			}
		}
	}
}
