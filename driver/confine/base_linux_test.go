package confine_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"starling/driver/confine"
	"starling/driver/family"
)

// apartVariable says that this process has mounts of its own.
const apartVariable = "STARLING_CONFINE_APART"

// apart runs the test in a process with mounts of its own, and tells whether it is that.
func apart(t *testing.T) bool {
	t.Helper()
	if os.Getenv(apartVariable) != "" {
		return true
	}
	if os.Getuid() != 0 {
		t.Skip("only root may make mounts")
	}
	again := exec.Command("/proc/self/exe", "-test.run", "^"+t.Name()+"$", "-test.v")
	again.Env = append(os.Environ(), apartVariable+"=yes")
	again.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	if output, err := again.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, output)
	}
	return false
}

// inThread does the work on a thread that ends with it.
func inThread(work func() error) (err error) {
	done := make(chan struct{})
	go family.OnThreadThatEnds(func() {
		defer close(done)
		err = work()
	})
	<-done
	return err
}

// confined runs a script of root as a task that begins with a base.
func confined(t *testing.T, rules confine.Rules, script string) string {
	t.Helper()
	var said []byte
	err := inThread(func() (err error) {
		if err = rules.Thread(true); err == nil {
			said, err = exec.Command("/bin/sh", "-c", script).CombinedOutput()
		}
		return err
	})
	if err != nil {
		t.Errorf("%v: %s", err, said)
	}
	return string(said)
}

// TestTasksOfOneBase has a task of root change whatever it can of what was made for it: the next finds nothing of that.
func TestTasksOfOneBase(t *testing.T) {
	if !apart(t) {
		return
	}
	hidden, covered := t.TempDir(), t.TempDir()
	own := []string{filepath.Join(hidden, "one"), filepath.Join(hidden, "two")}
	accounts := filepath.Join(t.TempDir(), "accounts")
	for _, path := range append(own, covered) {
		if err := errors.Join(os.MkdirAll(path, 0o755), os.WriteFile(filepath.Join(path, "secret"), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(accounts, []byte("machine"), 0o644); err != nil {
		t.Fatal(err)
	}
	base := (*confine.Base)(nil).Renew([]string{covered})
	if base == nil {
		t.Fatal("no base could be made")
	}
	defer base.Close()
	rules := func(own, account string) confine.Rules {
		return confine.Rules{Hidden: hidden, Shown: []confine.Folder{{Path: own}}, Covered: []string{covered}, Base: base,
			Accounts: map[string][]byte{accounts: []byte(account), accounts + ".none": nil}}
	}
	leave := `cd / && for d in /dev /dev/shm /dev/pts ` + covered + ` ` + hidden + ` ` + own[0] + `
		do echo left >$d/left; mkdir $d/left.d; ln -s / $d/left.l; done
		chmod 600 /dev/null; rm /dev/zero /dev/stdin; mv /dev/full /dev/moved; mount -o remount,rw /dev
		echo left >` + accounts + `; echo left >>/etc/left; cat ` + accounts + ` 2>&1; ls ` + hidden + `; ls /dev/shm; exit 0`
	look := `stat -c %a /dev/null; ls /dev/zero /dev/stdin /dev/full; find /dev /dev/shm /dev/pts ` + covered + ` ` + hidden +
		` -name 'left*' -o -name secret -o -name account; ls /dev/shm /dev/pts ` + hidden + `; cat ` + accounts
	said := confined(t, rules(own[0], "first"), leave)
	if !strings.HasSuffix(said, "first"+"one\nleft\nleft.d\nleft.l\n") {
		t.Errorf("the first could not do what it may: it wrote %q", said)
	}
	want := "666\n/dev/full\n/dev/stdin\n/dev/zero\n" + own[1] + "/secret\n" +
		"/dev/pts:\nptmx\n\n/dev/shm:\n\n" + hidden + ":\ntwo\nsecond"
	if got := confined(t, rules(own[1], "second"), look); got != want {
		t.Errorf("the next finds\n%s\nwant\n%s", got, want)
	}
	if text, err := os.ReadFile(accounts); string(text) != "machine" {
		t.Errorf("the machine's file has %q, %v", text, err)
	}
	if _, err := os.Stat("/etc/left"); err == nil {
		t.Error("a task could write below /etc")
		os.Remove("/etc/left")
	}
}
