// Package device finds the GPUs of this machine, and says how a task that was given some is to find these and no
// others.
//
// It reads what the kernel's drivers show, in /proc and /sys; only the memory of NVIDIA's GPUs is asked of their own
// program, nvidia-smi, where that is installed. The number of a GPU is its place in the list, in the order of the bus.
package device

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"starling/driver"
)

// Kind is what GPUs are called as devices of a node.
const Kind = "gpu"

// GPU is one graphics processor.
type GPU struct {
	// Model is what its vendor calls it, ID what it is called by programs of its vendor whichever others there are.
	Model, ID string
	// MemoryBytes is 0 if nothing tells.
	MemoryBytes int64
	// Files are the devices by which it is reached, below /dev.
	Files  []string
	vendor *vendor
	bus    string
	// folder is where the kernel's driver tells about it, if that is AMD's.
	folder string
}

// vendor is what the GPUs of one have in common.
type vendor struct {
	// variables tell programs which GPUs to use.
	variables []string
	// files are the devices that lead to none of its GPUs, and are needed for all.
	files []string
	// kind is what specs of CDI call its GPUs.
	kind string
}

var (
	nvidia = &vendor{
		variables: []string{"CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"},
		files:     []string{"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset"},
		kind:      "nvidia.com/gpu",
	}
	amd = &vendor{variables: []string{"ROCR_VISIBLE_DEVICES"}, files: []string{"/dev/kfd"}, kind: "amd.com/gpu"}
)

// Find lists the GPUs of a machine whose /proc and /sys are below root.
func Find(root string) []GPU {
	found := slices.Concat(findNvidia(root), findAMD(root))
	slices.SortFunc(found, func(a, b GPU) int { return strings.Compare(a.bus, b.bus) })
	return found
}

func findNvidia(root string) (found []GPU) {
	about, _ := filepath.Glob(filepath.Join(root, "proc/driver/nvidia/gpus/*/information"))
	for _, path := range about {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		told := map[string]string{}
		for line := range strings.Lines(string(text)) {
			name, value, _ := strings.Cut(line, ":")
			told[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
		minor, err := strconv.Atoi(told["Device Minor"])
		if err != nil {
			continue
		}
		found = append(found, GPU{Model: told["Model"], ID: told["GPU UUID"], vendor: nvidia,
			bus: filepath.Base(filepath.Dir(path)), Files: []string{fmt.Sprintf("/dev/nvidia%d", minor)}})
	}
	return found
}

// amdVendor is AMD's number among those of the bus.
const amdVendor = "0x1002"

// findAMD takes the nodes for computing; those for screens are the same processors.
func findAMD(root string) (found []GPU) {
	nodes, _ := filepath.Glob(filepath.Join(root, "sys/class/drm/renderD*"))
	for _, node := range nodes {
		read := func(name string) string {
			text, _ := os.ReadFile(filepath.Join(node, "device", name))
			return strings.TrimSpace(string(text))
		}
		memory, err := strconv.ParseInt(read("mem_info_vram_total"), 10, 64)
		if read("vendor") != amdVendor || err != nil {
			continue
		}
		bus, err := filepath.EvalSymlinks(filepath.Join(node, "device"))
		if err != nil {
			continue
		}
		gpu := GPU{Model: cmp.Or(read("product_name"), "AMD "+read("device")), MemoryBytes: memory, vendor: amd,
			bus: filepath.Base(bus), folder: bus, Files: []string{"/dev/dri/" + filepath.Base(node)}}
		if id := read("unique_id"); id != "" {
			gpu.ID = "GPU-" + id
		}
		found = append(found, gpu)
	}
	return found
}

// Files are the devices of these GPUs, and those that they need beside.
func Files(given []GPU) (files []string) {
	for _, gpu := range given {
		files = append(files, gpu.Files...)
		if gpu.vendor != nil {
			files = append(files, gpu.vendor.files...)
		}
	}
	slices.Sort(files)
	return slices.Compact(files)
}

// Environment tells programs which GPUs they were given: those of these numbers in the list of all. One that nobody has
// found, because the node offers more than there is, is told to the programs of every vendor by its number.
func Environment(all []GPU, numbers []uint32) (env []string) {
	if len(numbers) == 0 {
		return nil
	}
	told := map[string][]string{}
	for _, number := range numbers {
		name, variables := strconv.FormatUint(uint64(number), 10), slices.Concat(nvidia.variables, amd.variables)
		if int(number) < len(all) && all[number].vendor != nil {
			gpu := all[number]
			name, variables = cmp.Or(gpu.ID, name), gpu.vendor.variables
		}
		for _, variable := range variables {
			told[variable] = append(told[variable], name)
		}
	}
	for _, variable := range slices.Concat(nvidia.variables, amd.variables) {
		if names, ok := told[variable]; ok {
			env = append(env, variable+"="+strings.Join(names, ","))
		}
	}
	return env
}

// Numbers are those of the GPUs among devices.
func Numbers(devices []driver.Device) (numbers []uint32) {
	for _, one := range devices {
		if one.Kind == Kind {
			numbers = append(numbers, one.Number)
		}
	}
	return numbers
}

// Given are the GPUs of these numbers, but for those that nobody has found.
func Given(all []GPU, numbers []uint32) (given []GPU) {
	for _, number := range numbers {
		if int(number) < len(all) {
			given = append(given, all[number])
		}
	}
	return given
}
