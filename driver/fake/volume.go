package fake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"starling/driver"
	"starling/driver/pack"
)

// MakeVolume makes a folder below Volumes.
func (d *Driver) MakeVolume(v driver.Volume) (path string, err error) {
	if d.machine.Volumes == "" {
		return "", fmt.Errorf("make the volume %q of %q: this machine has no folder for it", v.Name, v.Set)
	}
	d.machine.mu.Lock()
	defer d.machine.mu.Unlock()
	d.machine.volumes[v.Set] = true
	path = filepath.Join(d.machine.Volumes, v.Set, v.Name)
	return path, os.MkdirAll(path, 0o700)
}

// VolumeSets lists the sets of the volumes that tasks were started with.
func (d *Driver) VolumeSets() []string {
	d.machine.mu.Lock()
	defer d.machine.mu.Unlock()
	return slices.Sorted(maps.Keys(d.machine.volumes))
}

// DeleteVolumes forgets the volumes of a set.
func (d *Driver) DeleteVolumes(set string) error {
	d.machine.mu.Lock()
	defer d.machine.mu.Unlock()
	delete(d.machine.volumes, set)
	if d.machine.Volumes == "" {
		return nil
	}
	return os.RemoveAll(filepath.Join(d.machine.Volumes, set))
}

// SetVolumesAside renames what is below Volumes.
func (d *Driver) SetVolumesAside(set string) (folder string, err error) {
	d.machine.mu.Lock()
	defer d.machine.mu.Unlock()
	if !d.machine.volumes[set] {
		return "", nil
	}
	delete(d.machine.volumes, set)
	if d.machine.Volumes == "" {
		return "aside", nil
	}
	folder = filepath.Join(d.machine.Volumes, "aside of "+set)
	return folder, os.Rename(filepath.Join(d.machine.Volumes, set), folder)
}

// VolumeBytes has each volume take a kibibyte.
func (d *Driver) VolumeBytes(_ context.Context, set string) (map[string]int64, error) {
	if !slices.Contains(d.VolumeSets(), set) {
		return nil, fmt.Errorf("measure the volumes %q: %w", set, os.ErrNotExist)
	}
	return map[string]int64{"data": 1 << 10}, nil
}

// SendVolumes writes what is below Volumes.
func (d *Driver) SendVolumes(ctx context.Context, set string, to io.Writer) error {
	switch {
	case !slices.Contains(d.VolumeSets(), set):
		return fmt.Errorf("send the volumes %q: %w", set, os.ErrNotExist)
	case d.machine.Volumes == "":
		return nil
	}
	folder := filepath.Join(d.machine.Volumes, set)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	return pack.Write(ctx, folder, to, func(string) bool { return false })
}

// ReceiveVolumes makes a folder below Volumes.
func (d *Driver) ReceiveVolumes(set string, from io.Reader) error {
	if slices.Contains(d.VolumeSets(), set) {
		return fmt.Errorf("receive the volumes %q: %w", set, os.ErrExist)
	}
	if err := d.receive(set, from); err != nil {
		return fmt.Errorf("receive the volumes %q: %w", set, err)
	}
	d.machine.mu.Lock()
	defer d.machine.mu.Unlock()
	d.machine.volumes[set] = true
	d.machine.tell()
	return nil
}

func (d *Driver) receive(set string, from io.Reader) error {
	if d.machine.Volumes == "" {
		_, err := io.Copy(io.Discard, from)
		return err
	}
	folder := filepath.Join(d.machine.Volumes, set)
	err := os.MkdirAll(folder, 0o700)
	if err == nil {
		err = pack.Read(from, folder, func() error { return nil })
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(folder))
	}
	return nil
}
