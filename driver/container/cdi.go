package container

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
	"tags.cncf.io/container-device-interface/pkg/cdi"

	"starling/driver"
	"starling/driver/device"
)

// inject gives the container what specs of CDI say of the GPUs that the task was given. Those that no spec names are
// left to device files and variables, unless there is a spec that may name them and cannot be used.
func (e *engine) inject(t *driver.Task, spec *specs.Spec) error {
	given := device.Given(e.gpus, device.Numbers(t.Devices))
	if len(given) == 0 {
		return nil
	}
	cache, trouble := e.readCDI()
	var names []string
	for _, gpu := range given {
		name := e.nameOf(&gpu, cache)
		switch {
		case name != "":
			names = append(names, name)
		case len(trouble) > 0:
			return fmt.Errorf("find the GPU %s in CDI specs: %s", cmp.Or(gpu.ID, gpu.Files[0]), strings.Join(trouble, "; "))
		}
	}
	if _, err := cache.InjectDevices(spec, names...); err != nil {
		return fmt.Errorf("CDI devices %s: %w", strings.Join(names, ", "), err)
	}
	guard(spec.Hooks)
	if spec.Hooks != nil && len(spec.Hooks.Poststop) > 0 {
		return fmt.Errorf("CDI devices %s: they have a hook for the end of containers (poststop), which is not run here",
			strings.Join(names, ", "))
	}
	return nil
}

// guard gives each hook an environment. Runc runs one that has none in that of the container, which the job's author
// decides, as root and outside of it (CVE-2025-23266).
func guard(hooks *specs.Hooks) {
	if hooks == nil {
		return
	}
	//lint:ignore SA1019 specs of CDI may still have hooks of this kind
	for _, some := range [][]specs.Hook{hooks.Prestart, hooks.CreateRuntime, hooks.CreateContainer, hooks.StartContainer,
		hooks.Poststart} {
		for i := range some {
			if len(some[i].Env) == 0 {
				some[i].Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
			}
		}
	}
}

// nameOf returns the name of the CDI device that leads to the whole GPU and to no other, "" if there is none. The
// devices in it decide: what a spec calls a GPU, by a number or an identity, is of the time when it was written.
func (e *engine) nameOf(gpu *device.GPU, cache *cdi.Cache) (name string) {
	for _, one := range cache.ListDevices() {
		d := cache.GetDevice(one)
		spec := d.GetSpec()
		var files []string
		for _, node := range slices.Concat(d.ContainerEdits.DeviceNodes, spec.ContainerEdits.DeviceNodes) {
			files = append(files, cmp.Or(node.HostPath, node.Path))
		}
		if spec.Kind == gpu.CDIKind() && gpu.IsAll(files, e.gpus) && (name == "" || d.Name == gpu.ID) {
			name = one
		}
	}
	return name
}

// readCDI reads the specs of this machine, and tells what is wrong with those that name GPUs, or may.
func (e *engine) readCDI() (cache *cdi.Cache, trouble []string) {
	cache, _ = cdi.NewCache(cdi.WithSpecDirs(e.folders...), cdi.WithAutoRefresh(false)) // the error is always nil
	for _, folder := range cache.GetSpecDirectories() {                                 // the cache does not tell
		if _, err := os.ReadDir(folder); err != nil && !errors.Is(err, os.ErrNotExist) {
			trouble = append(trouble, fmt.Sprintf("read the folder of CDI specs: %v", err))
		}
	}
	wrong := cache.GetErrors()
	for _, vendor := range cache.ListVendors() {
		for _, spec := range cache.GetVendorSpecs(vendor) {
			if !slices.ContainsFunc(e.gpus, func(g device.GPU) bool { return g.CDIKind() == spec.Kind }) {
				delete(wrong, spec.GetPath())
			}
		}
	}
	for _, path := range slices.Sorted(maps.Keys(wrong)) {
		for _, err := range wrong[path] {
			text := strings.TrimPrefix(strings.Join(strings.Fields(err.Error()), " "), "failed to load CDI Spec ")
			if !strings.Contains(text, path) {
				text = path + ": " + text
			}
			if !slices.Contains(trouble, text) { // a conflict is told of both specs
				trouble = append(trouble, text)
			}
		}
	}
	e.trouble.Store(&trouble)
	return cache, trouble
}
