package cgroup

import (
	"testing"
	"time"

	"starling/driver"
)

// files are those of a group, by name.
type files map[string]string

func (f files) read(name string) string { return f[name] }

func TestUse(t *testing.T) {
	cpu := files{"cpuacct.usage": "1500000000\n"}
	memory := files{"memory.usage_in_bytes": "5000000\n",
		"memory.stat": "cache 9\ninactive_file 7\ntotal_cache 9\ntotal_inactive_file 1000000\n"}
	unified := files{"cpu.stat": "usage_usec 2500000\nuser_usec 1\n", "memory.current": "3000\n",
		"memory.stat": "anon 1\ninactive_file 4000\n",
		"io.stat":     "8:0 rbytes=100 wbytes=30 rios=1 wios=2 dbytes=0 dios=0\n8:16 rbytes=5 wbytes=1 rios=1\n"}
	for _, c := range []struct {
		name    string
		read    func() (driver.Use, Counted)
		use     driver.Use
		counted Counted
	}{
		{"version 1", func() (driver.Use, Counted) { return useV1(cpu.read, memory.read) },
			driver.Use{CPU: 1500 * time.Millisecond, MemoryBytes: 4000000}, Counted{CPU: true, Memory: true}},
		{"version 1, no memory", func() (driver.Use, Counted) { return useV1(cpu.read, files{}.read) },
			driver.Use{CPU: 1500 * time.Millisecond}, Counted{CPU: true}},
		{"version 2", func() (driver.Use, Counted) { return useV2(unified.read) },
			driver.Use{CPU: 2500 * time.Millisecond, ReadBytes: 105, WrittenBytes: 31},
			Counted{CPU: true, Memory: true, IO: true}},
		{"version 2, gone", func() (driver.Use, Counted) { return useV2(files{}.read) }, driver.Use{}, Counted{}},
	} {
		if use, counted := c.read(); use != c.use || counted != c.counted {
			t.Errorf("%s: got %+v, %+v, want %+v, %+v", c.name, use, counted, c.use, c.counted)
		}
	}
}
