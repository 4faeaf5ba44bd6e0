package device

import (
	"context"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// AskMemory completes what the kernel does not tell, the memory of NVIDIA's GPUs, by asking their program. Without it
// nothing is known, and that is no error.
func AskMemory(ctx context.Context, gpus []GPU) {
	if !slices.ContainsFunc(gpus, func(g GPU) bool { return g.vendor == nvidia }) {
		return
	}
	text, err := exec.CommandContext(ctx, "nvidia-smi", "--query-gpu=uuid,memory.total",
		"--format=csv,noheader,nounits").Output()
	if err != nil {
		return
	}
	for line := range strings.Lines(string(text)) {
		id, mebibytes, _ := strings.Cut(line, ",")
		number, err := strconv.ParseInt(strings.TrimSpace(mebibytes), 10, 64)
		at := slices.IndexFunc(gpus, func(g GPU) bool { return g.ID == strings.TrimSpace(id) })
		if err == nil && at >= 0 {
			gpus[at].MemoryBytes = number << 20
		}
	}
}
