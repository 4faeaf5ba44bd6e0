package zookeeper_test

import (
	"path/filepath"
	"testing"
	"time"

	"starling/journal"
	"starling/journal/journaltest"
	"starling/journal/journaltest/engines"
	"starling/journal/zookeeper"
	"starling/journal/zookeeper/ensemble"
)

// alone is a ZooKeeper of one server for one test, and what starts it, or starts it again.
func alone(t *testing.T, folder string) (h journaltest.Harness, restart func()) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts servers")
	}
	ensemble.Need(t)
	e, err := ensemble.New(folder, engines.At("127.0.0.1", 1)...)
	must(t, err)
	t.Cleanup(e.Kill)
	restart = func() {
		e.Kill()
		must(t, e.Start())
	}
	config := zookeeper.Config{Servers: e.Addresses(), Chroot: "/test", PulseTTL: pulseTTL}
	return journaltest.Harness{PulseTTL: pulseTTL, PulseSlack: 3 * time.Second, Open: func(t testing.TB) journal.Journal {
		return open(t, config)
	}}, restart
}

func TestTrimKilled(t *testing.T) {
	h, restart := alone(t, t.TempDir())
	t.Parallel()
	restart()
	journaltest.TrimKilled(t, h, restart)
}

// TestFullDisk has room for the logs of two starts of the server, each of which is made 64 MB large at once.
func TestFullDisk(t *testing.T) {
	folder := t.TempDir()
	disk := journaltest.NewDisk(t, filepath.Join(folder, "disk"), 160<<20)
	h, restart := alone(t, disk.Folder)
	t.Parallel()
	restart()
	journaltest.FullDisk(t, h, disk, restart)
}
