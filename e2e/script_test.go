package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"starling/driver/container/containertest"
	"starling/peer/credential/vault/vaulttest"
	"starling/terms/rules"
	"starling/trust/provider/providertest"
)

// binaryFolder is where TestMain put the binary; the scripts find it by their PATH.
func binaryFolder() string { return os.Getenv("STARLING_E2E_BINARY") }

func TestMain(m *testing.M) {
	os.Exit(withBinary(m))
}

// withBinary builds the binary once for all scripts.
func withBinary(m *testing.M) int {
	folder, err := os.MkdirTemp("", "starling-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)
	build := exec.Command("../.ci/build", filepath.Join(folder, "starling"))
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build the binary:", err)
		return 1
	}
	if err := os.Setenv("STARLING_E2E_BINARY", folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

func TestScripts(t *testing.T) {
	python, err := filepath.Abs("../api/python")
	if err != nil {
		t.Fatal(err)
	}
	all := &clusters{}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", binaryFolder()+string(os.PathListSeparator)+env.Getenv("PATH"))
			env.Setenv("STARLING_PYTHON", python)
			env.Setenv("PYTHONDONTWRITEBYTECODE", "1")
			env.Setenv("RULES", strconv.Itoa(int(rules.Released)))
			env.Setenv("NEXT_RULES", strconv.Itoa(int(rules.Released)+1))
			env.Setenv("TMPDIR", t.TempDir()) // short: sockets and FIFOs live below it
			env.Defer(func() { endRemains(env.WorkDir) })
			env.Values[programsKey{}] = map[string]*program{}
			env.Values[providerKey{}] = &providertest.Provider{}
			env.Values[vaultKey{}] = new(*vaulttest.Server)
			env.Values[failureKey{}] = t.Errorf
			env.Values[failedKey{}] = env.T().(interface{ Failed() bool }).Failed
			env.Values[registryKey{}] = new(*containertest.Registry)
			env.Values[skipKey{}] = env.T().Skip
			return nil
		},
		Condition: func(name string) (bool, error) {
			switch name {
			case "root":
				return os.Geteuid() == 0, nil
			case "ci": // where nothing may be skipped because it is missing
				return os.Getenv("CI") == "true", nil
			}
			return false, fmt.Errorf("unknown condition %q", name)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"dev": all.dev, "exits": exits, "start": start, "await": await, "until": until, "signal": signal,
			"ends": ends, "certificates": certificates, "value": value, "freeport": freePort, "lines": lines,
			"lookup": lookup, "idtoken": idToken, "containers": containers(t), "store": store, "collector": traces,
			"provider": signInWith, "enter": enter, "visit": visit, "push-app": pushApp(t),
			"containerd": startContainerd, "no-registry": endRegistry,
			"vault": vaultOf,
		},
	})
}

// exits runs a program and wants an exit status: exits 3 starling run job.yaml.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS PROGRAM [ARGUMENT...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var ended *exec.ExitError
		if !errors.As(err, &ended) {
			ts.Fatalf("run %s: %v", args[1], err)
		}
		got = ended.ExitCode()
	}
	if got != want {
		ts.Fatalf("got exit status %d, want %d", got, want)
	}
}
