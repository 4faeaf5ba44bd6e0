package device

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"starling/driver"
)

// Use reads what is used of the GPUs: of those of AMD what the kernel tells, of those of NVIDIA what their program
// does. Those of which nothing tells are left out.
func Use(ctx context.Context, gpus []GPU) (all []driver.GPUUse) {
	told := nvidiaUse(ctx, gpus)
	for i, gpu := range gpus {
		use, ok := told[gpu.ID]
		if gpu.vendor == amd {
			use, ok = gpu.amdUse()
		}
		if ok {
			use.Number, use.MemoryTotalBytes = uint32(i), max(use.MemoryTotalBytes, gpu.MemoryBytes)
			all = append(all, use)
		}
	}
	return all
}

// amdUse reads the files that the kernel's driver shows.
func (g *GPU) amdUse() (use driver.GPUUse, ok bool) {
	read := func(name string) (int64, error) {
		text, err := os.ReadFile(filepath.Join(g.folder, name))
		if err != nil {
			return 0, err
		}
		return strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	}
	busy, err := read("gpu_busy_percent")
	if err != nil {
		return use, false
	}
	memory, err := read("mem_info_vram_used")
	return driver.GPUUse{MemoryBytes: memory, BusyPercent: uint32(max(busy, 0))}, err == nil
}

// nvidiaUse asks NVIDIA's program, by what GPUs are called there.
func nvidiaUse(ctx context.Context, gpus []GPU) map[string]driver.GPUUse {
	if !slices.ContainsFunc(gpus, func(g GPU) bool { return g.vendor == nvidia }) {
		return nil
	}
	text, err := exec.CommandContext(ctx, "nvidia-smi", "--query-gpu=uuid,memory.used,memory.total,utilization.gpu",
		"--format=csv,noheader,nounits").Output()
	if err != nil {
		return nil
	}
	all := map[string]driver.GPUUse{}
	for line := range strings.Lines(string(text)) {
		var numbers []int64
		id, rest, _ := strings.Cut(line, ",")
		for word := range strings.SplitSeq(rest, ",") {
			number, err := strconv.ParseInt(strings.TrimSpace(word), 10, 64)
			if err != nil { // "[N/A]"
				break
			}
			numbers = append(numbers, number)
		}
		if len(numbers) == 3 {
			all[strings.TrimSpace(id)] = driver.GPUUse{MemoryBytes: numbers[0] << 20, MemoryTotalBytes: numbers[1] << 20,
				BusyPercent: uint32(max(numbers[2], 0))}
		}
	}
	return all
}
