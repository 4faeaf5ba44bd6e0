package drivertest

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Program runs one verb and returns its exit code. It is what the tasks of the suite run: a test binary calls it
// from TestMain when it is run as [Machine.Command] says.
//
//	exit CODE               writes "exit" and ends
//	signal NUMBER           kills itself
//	run                     writes "ready" and runs until it is killed
//	terminate CODE          the same, but ends with CODE at SIGTERM and writes "terminated"
//	ignore                  the same, but ignores SIGTERM
//	print OUT ERR           writes OUT to stdout and ERR to stderr
//	environment             writes its environment
//	folder                  writes its working directory
//	leave CODE              writes the files core and deep/log, says where, and ends
//	talk CODE               copies its input to stdout, writes "ended" to stderr and ends
//	terminal                writes the size of its terminal, and again whenever that changes
//	burn BYTES              fills memory, writes "ready" and keeps a processor busy
//	follow PATH             writes the file at PATH, and again at each SIGHUP
//	keep VARIABLE LINE      adds LINE to a file in the folder that VARIABLE names, and writes the file
//	fill BYTES              writes a file of so many bytes, in the volume DATA if there is one, says "ready" and waits
//	family LOCK stay|leave  starts descendants that ignore SIGTERM, all holding LOCK, as FamilyLock returns it; then
//	                        ignores it too, or leaves with 6
//	member LOCK [verb...]   one of the family; starts the rest
//	gate FIFO LOCK CODE     holds LOCK, writes "ready", waits for FIFO to be opened, writes "through" and ends
func Program(arguments []string) int {
	verb, rest := arguments[0], append(arguments[1:], "", "", "")
	switch verb {
	case "exit":
		fmt.Println("exit")
		return number(rest[0])
	case "signal":
		must(syscall.Kill(os.Getpid(), syscall.Signal(number(rest[0]))))
		select {}
	case "run":
		return wait()
	case "terminate":
		return terminate(number(rest[0]))
	case "ignore":
		signal.Ignore(syscall.SIGTERM)
		return wait()
	case "print":
		fmt.Fprint(os.Stdout, rest[0])
		fmt.Fprint(os.Stderr, rest[1])
	case "environment":
		fmt.Println(strings.Join(os.Environ(), "\n"))
	case "folder":
		folder, err := os.Getwd()
		must(err)
		fmt.Println(folder)
	case "talk":
		return talk(number(rest[0]))
	case "terminal":
		return terminal()
	case "burn", "follow", "fill", "leave":
		by := map[string]func(string) int{"burn": burn, "follow": follow, "fill": fill, "leave": leave}
		return by[verb](rest[0])
	case "keep":
		keep(filepath.Join(os.Getenv(rest[0]), "kept"), rest[1])
	case "family", "member":
		return family(verb == "family", rest[0], rest[1])
	case "gate":
		return gate(rest[0], rest[1], number(rest[2]))
	default:
		fmt.Fprintf(os.Stderr, "no such verb: %q\n", verb)
		return 2
	}
	return 0
}

func fill(bytes string) int {
	path := filepath.Join(os.Getenv("DATA"), fmt.Sprintf("fill-%d", os.Getpid()))
	must(os.WriteFile(path, make([]byte, number(bytes)), 0o600))
	return wait()
}

func keep(path, line string) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	must(err)
	defer file.Close()
	_, err = fmt.Fprintln(file, line)
	must(err)
	text, err := os.ReadFile(path)
	must(err)
	fmt.Print(string(text))
}

func leave(code string) int {
	must(os.Mkdir("deep", 0o700))
	must(os.WriteFile("core", []byte("left"), 0o600))
	must(os.WriteFile("deep/log", []byte("left"), 0o600))
	folder, err := os.Getwd()
	must(err)
	fmt.Println(folder)
	return number(code)
}

// wait says that the program is ready and waits for a signal that ends it.
func wait() int {
	fmt.Println("ready")
	never := make(chan os.Signal, 1)
	signal.Notify(never, syscall.SIGUSR2) // without it the runtime would see a deadlock
	<-never
	return 0
}

func terminate(code int) int {
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	fmt.Println("ready")
	<-terminated
	fmt.Println("terminated")
	return code
}

// family starts a member in this process group and one in a session of its own, and that one another.
func family(first bool, lock, then string) int {
	signal.Ignore(syscall.SIGTERM)
	hold(lock)
	switch {
	case first:
		member(lock, "", false)
		member(lock, "child", true)
	case then == "child":
		member(lock, "", false)
	}
	if first && then == "leave" {
		return 6
	}
	return outlast(lock + testSuffix)
}

// outlast says that the program is ready and waits until nobody holds a lock any more.
func outlast(path string) int {
	file, err := os.Open(path)
	must(err)
	fmt.Println("ready")
	must(syscall.Flock(int(file.Fd()), syscall.LOCK_SH))
	return 0
}

// member starts one of the family and returns when it, and what it starts, is ready.
func member(lock, then string, session bool) {
	executable, err := os.Executable()
	must(err)
	command := exec.Command(executable, append(prefix(), "member", lock, then)...)
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: session}
	ready, err := command.StdoutPipe()
	must(err)
	must(command.Start())
	_, err = ready.Read(make([]byte, 1))
	must(err)
}

// prefix is what makes the test binary this program.
func prefix() []string {
	for i, argument := range os.Args {
		if argument == "family" || argument == "member" {
			return os.Args[1:i]
		}
	}
	return nil
}

// hold takes a shared lock until this process ends.
func hold(path string) {
	file, err := syscall.Open(path, syscall.O_RDWR|syscall.O_CREAT|syscall.O_CLOEXEC, 0o666)
	must(err)
	must(syscall.Flock(file, syscall.LOCK_SH))
}

func gate(fifo, lock string, code int) int {
	hold(lock)
	fmt.Println("ready")
	opened, err := os.Open(fifo)
	must(err)
	must(opened.Close())
	fmt.Println("through")
	return code
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	must(err)
	return n
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(99)
	}
}

// burn keeps memory and a processor until it is killed.
func burn(bytes string) int {
	kept := make([]byte, number(bytes))
	for i := range kept {
		kept[i] = byte(i)
	}
	fmt.Println("ready")
	for i := 0; ; i = (i + 1) % len(kept) {
		kept[i]++
	}
}

// follow writes the file that the path names at the start, and whenever it is told to by SIGHUP.
func follow(path string) int {
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGHUP)
	for {
		text, err := os.ReadFile(path)
		must(err)
		fmt.Printf("%s\n", text)
		<-told
	}
}
