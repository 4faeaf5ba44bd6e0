package meter

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"starling/driver"
)

func TestMachine(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"proc/stat":    "cpu  100 20 30 5000 6000 4 1 9000 50 0\ncpu0 100 0 0 0\nintr 5\n",
		"proc/meminfo": "MemTotal:       1000 kB\nMemFree:         10 kB\nMemAvailable:    600 kB\n",
		"proc/diskstats": "7 0 loop0 1 0 900 0 1 0 900 0\n259 0 nvme0n1 5 0 8 0 7 0 4 0 0 0 0\n259 1 nvme0n1p1 5 0 8 0 7 0 4 0\n" +
			"8 0 sda 5 0 2 0 7 0 1 0\n",
		"sys/block/nvme0n1/device/model": "", "sys/block/sda/device/model": "", "sys/block/loop0/size": "",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := driver.Use{CPU: 1550 * time.Millisecond, MemoryBytes: 400 << 10, ReadBytes: 10 * 512, WrittenBytes: 5 * 512}
	if got, err := Machine(root); err != nil || got != want {
		t.Errorf("got %+v (%v), want %+v", got, err, want)
	}
	if got, err := Machine(t.TempDir()); err == nil {
		t.Errorf("of a machine that tells nothing: got %+v, want an error", got)
	}
}
