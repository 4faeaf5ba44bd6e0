package process_test

import (
	"os"
	"testing"

	"starling/driver"
	"starling/driver/drivertest"
	"starling/driver/process"
)

// The words that make the test binary something else than tests.
const (
	superviseWord = "supervise"
	programWord   = "program"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case superviseWord:
			os.Exit(process.Supervise(os.Args[2]))
		case programWord:
			os.Exit(drivertest.Program(os.Args[2:]))
		}
	}
	os.Exit(m.Run())
}

func testBinary(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t testing.TB, folder string) *process.Driver {
	t.Helper()
	d, err := process.Open(process.Config{Dir: folder, Supervisor: []string{testBinary(t), superviseWord}})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestContract(t *testing.T) {
	drivertest.Test(t, drivertest.Machine{
		Open:    func(t *testing.T, folder string) driver.Driver { return open(t, folder) },
		Command: []string{testBinary(t), programWord},
	})
}
