package device_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"starling/driver"
	"starling/driver/device"
)

// machine writes the files that a kernel shows of two NVIDIA GPUs, in another order than that of their devices, of one
// of AMD, and of a screen that is none.
func machine(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for path, text := range map[string]string{
		"proc/driver/nvidia/gpus/0000:3b:00.0/information": "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 12\n" +
			"GPU UUID: \t GPU-aaaa\nDevice Minor: \t 1\n",
		"proc/driver/nvidia/gpus/0000:af:00.0/information": "Model: \t\t NVIDIA H100 80GB HBM3\nGPU UUID: \t GPU-bbbb\nDevice Minor: \t 0\n",
		"proc/driver/nvidia/gpus/0000:b0:00.0/information": "Model: \t\t Unknown\n",
		"sys/bus/0000:5e:00.0/vendor":                      "0x1002\n",
		"sys/bus/0000:5e:00.0/mem_info_vram_total":         "68702699520\n",
		"sys/bus/0000:5e:00.0/product_name":                "AMD Instinct MI210\n",
		"sys/bus/0000:5e:00.0/unique_id":                   "cccc\n",
		"sys/bus/0000:5e:00.0/gpu_busy_percent":            "37\n",
		"sys/bus/0000:5e:00.0/mem_info_vram_used":          "4096\n",
		"sys/bus/0000:01:00.0/vendor":                      "0x1a03\n",
	} {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for node, bus := range map[string]string{"renderD128": "0000:01:00.0", "renderD129": "0000:5e:00.0"} {
		path := filepath.Join(root, "sys/class/drm", node)
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(root, "sys/bus", bus), filepath.Join(path, "device")); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestFind(t *testing.T) {
	got := device.Find(machine(t))
	want := []struct {
		model, id, file string
		memory          int64
	}{
		{"NVIDIA H100 80GB HBM3", "GPU-aaaa", "/dev/nvidia1", 0},
		{"AMD Instinct MI210", "GPU-cccc", "/dev/dri/renderD129", 68702699520},
		{"NVIDIA H100 80GB HBM3", "GPU-bbbb", "/dev/nvidia0", 0},
	}
	if len(got) != len(want) {
		t.Fatalf("got %+v, want %d GPUs", got, len(want))
	}
	for i, w := range want {
		if g := got[i]; g.Model != w.model || g.ID != w.id || !slices.Equal(g.Files, []string{w.file}) ||
			g.MemoryBytes != w.memory {
			t.Errorf("GPU %d: got %+v, want %+v", i, g, w)
		}
	}
	if found := device.Find(t.TempDir()); found != nil {
		t.Errorf("a machine without any: got %+v", found)
	}
}

func TestTasksAreToldWhichTheyWereGiven(t *testing.T) {
	all := device.Find(machine(t))
	for _, test := range []struct {
		numbers    []uint32
		env, files []string
	}{
		{nil, nil, nil},
		{[]uint32{2}, []string{"CUDA_VISIBLE_DEVICES=GPU-bbbb", "NVIDIA_VISIBLE_DEVICES=GPU-bbbb"},
			[]string{"/dev/nvidia-modeset", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia0", "/dev/nvidiactl"}},
		{[]uint32{1}, []string{"ROCR_VISIBLE_DEVICES=GPU-cccc"}, []string{"/dev/dri/renderD129", "/dev/kfd"}},
		{[]uint32{7, 8}, []string{"CUDA_VISIBLE_DEVICES=7,8", "NVIDIA_VISIBLE_DEVICES=7,8", "ROCR_VISIBLE_DEVICES=7,8"}, nil},
	} {
		if got := device.Environment(all, test.numbers); !slices.Equal(got, test.env) {
			t.Errorf("%d: got the environment %q, want %q", test.numbers, got, test.env)
		}
		if got := device.Files(device.Given(all, test.numbers)); !slices.Equal(got, test.files) {
			t.Errorf("%d: got the files %q, want %q", test.numbers, got, test.files)
		}
	}
}

func TestMemoryOfNvidia(t *testing.T) {
	all := device.Find(machine(t))
	folder := t.TempDir()
	script := "#!/bin/sh\necho 'GPU-bbbb, 81559'\necho 'GPU-dddd, 1'\necho strange\n"
	if err := os.WriteFile(filepath.Join(folder, "nvidia-smi"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder+":/bin:/usr/bin")
	device.AskMemory(t.Context(), all)
	if got := []int64{all[0].MemoryBytes, all[2].MemoryBytes}; !slices.Equal(got, []int64{0, 81559 << 20}) {
		t.Errorf("got %d, want none and what the program says", got)
	}
}

func TestUse(t *testing.T) {
	all := device.Find(machine(t))
	folder := t.TempDir()
	script := "#!/bin/sh\necho 'GPU-bbbb, 100, 81559, 98'\necho 'GPU-aaaa, 100, 81559, [N/A]'\necho strange\n"
	if err := os.WriteFile(filepath.Join(folder, "nvidia-smi"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	amd := driver.GPUUse{Number: 1, MemoryBytes: 4096, MemoryTotalBytes: 68702699520, BusyPercent: 37}
	t.Setenv("PATH", folder)
	want := []driver.GPUUse{amd, {Number: 2, MemoryBytes: 100 << 20, MemoryTotalBytes: 81559 << 20, BusyPercent: 98}}
	if got := device.Use(t.Context(), all); !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	t.Setenv("PATH", t.TempDir())
	if got := device.Use(t.Context(), all); !slices.Equal(got, []driver.GPUUse{amd}) {
		t.Errorf("without the program: got %+v, want only %+v", got, amd)
	}
}

func TestWhatLeadsToOneGPU(t *testing.T) {
	all := device.Find(machine(t))
	for _, test := range []struct {
		files []string
		want  bool
	}{
		{[]string{"/dev/nvidia0", "/dev/nvidiactl", "/dev/dri/card1"}, true},
		{[]string{"/dev/nvidiactl"}, false},
		{[]string{"/dev/nvidia0", "/dev/nvidia1"}, false},
		{[]string{"/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap7"}, false},
		{nil, false},
	} {
		if got := all[2].IsAll(test.files, all); got != test.want {
			t.Errorf("%q: got %t, want %t", test.files, got, test.want)
		}
	}
	if got := []string{all[0].CDIKind(), all[1].CDIKind(), (&device.GPU{}).CDIKind()}; !slices.Equal(got,
		[]string{"nvidia.com/gpu", "amd.com/gpu", ""}) {
		t.Errorf("got the kinds %q", got)
	}
}
