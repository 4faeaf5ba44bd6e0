package doctor

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"starling/api/wire"
	"starling/cmd/starling/console"
	"starling/cmd/starling/settings"
	"starling/driver/container"
	"starling/driver/disk"
	"starling/driver/process"
	"starling/driver/scope"
	"starling/terms"
	"starling/trust"
)

// Limits below which a machine is not well.
const (
	diskBytesMin = 1 << 30
	diskBytesLow = 5 << 30
	filesMin     = 4096
	expirySoon   = 24 * time.Hour
)

// machine looks at this machine.
func machine(config *settings.Agent) []finding {
	all := []finding{kernel()}
	all = append(all, isolation(config)...)
	all = append(all, clock(), space(config.Data), inodes(config.Data), openFiles(), certificate(config))
	if answers(config.Address) {
		return append(all, finding{fine, "ports", "a peer answers at " + config.Address, ""})
	}
	return append(all, ports(config)...)
}

// answers tells whether this machine's peer runs.
func answers(address string) bool {
	socket, denied := wire.LocalPeer(address)
	return socket != "" || denied != ""
}

// isolation asks the driver what tasks go without, and whether there is a containerd.
func isolation(config *settings.Agent) (all []finding) {
	folder, err := os.MkdirTemp("", "starling-doctor-")
	if err != nil {
		return []finding{unknown("isolation", err)}
	}
	defer os.RemoveAll(folder)
	tasks, err := container.Open(container.Config{Socket: config.Containerd, Config: process.Config{
		Dir: folder, Supervisor: []string{os.Args[0]}, LeaveScope: scope.Leave}}) // nothing is started
	if err != nil {
		return []finding{{wrong, "isolation", err.Error(), ""}}
	}
	defer tasks.Close()
	remedy := "run the agent as root, on a machine whose control groups it may use"
	for _, warning := range tasks.Warnings() {
		all = append(all, finding{weak, "isolation", warning, remedy})
	}
	if len(all) == 0 {
		all = append(all, finding{fine, "isolation", "tasks are limited by control groups and contained in namespaces", ""})
	}
	if lack := tasks.MayContain(); lack != nil { // whatever is installed
		return append(all, finding{weak, "containers", lack.Error(), remedy})
	}
	if missing := tasks.Missing(); missing != nil {
		return append(all, finding{weak, "containers", missing.Error(), "for tasks with an image: " + containersRemedy() +
			"; others do without"})
	}
	return append(all, finding{fine, "containers", "containerd " + tasks.Version() + " at " + config.Containerd, ""})
}

// containersRemedy is what is to be done where no containers run.
func containersRemedy() string {
	for _, program := range []string{"containerd", "runc", "nsenter"} {
		if _, err := exec.LookPath(program); err != nil {
			return "apt-get install containerd runc util-linux"
		}
	}
	return "systemctl start containerd, or say with --containerd where it listens"
}

// space looks whether the data folder can be written, and how much is free.
func space(data string) finding {
	folder, err := existing(data)
	if err != nil {
		return unknown("disk", err)
	}
	if err := unix.Access(folder, unix.W_OK); err != nil {
		return finding{wrong, "disk", fmt.Sprintf("%s cannot be written: %v", folder, err),
			"choose another folder with --data, or run as the user that owns it"}
	}
	room, err := disk.RoomOf(folder)
	if err != nil {
		return unknown("disk", err)
	}
	bytes := room.Bytes.Free
	found := fmt.Sprintf("%s free for %s", terms.Disk.Round(bytes), data)
	switch {
	case bytes < diskBytesMin:
		return finding{wrong, "disk", found, "free space: a full disk stops the journal on this machine"}
	case bytes < diskBytesLow:
		return finding{weak, "disk", found, "the journal may take up to 8Gi, see etcd.quota"}
	}
	return finding{fine, "disk", found, ""}
}

// inodes looks how many more files the file system of the data folder takes.
func inodes(data string) finding {
	folder, err := existing(data)
	if err != nil {
		return unknown("inodes", err)
	}
	room, err := disk.RoomOf(folder)
	if err != nil {
		return unknown("inodes", err)
	}
	if room.Inodes.Total == 0 {
		return finding{fine, "inodes", "the file system has as many as it has room for", ""}
	}
	found := fmt.Sprintf("%d of %d free for %s, each file takes one", room.Inodes.Free, room.Inodes.Total, data)
	remedy := "delete files there that are not needed, or take a file system with more inodes"
	switch {
	case room.Inodes.Full():
		return finding{wrong, "inodes", found, remedy + ": till then no instance starts on this machine"}
	case room.Inodes.Tight():
		return finding{weak, "inodes", found, remedy}
	}
	return finding{fine, "inodes", found, ""}
}

// existing returns the folder, or the closest above it that is there.
func existing(folder string) (string, error) {
	folder, err := filepath.Abs(folder)
	for ; err == nil && folder != "/"; folder = filepath.Dir(folder) {
		if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
			return folder, err
		}
	}
	return folder, err
}

// openFiles looks how many files and connections this process may have.
func openFiles() finding {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return unknown("open files", err)
	}
	if limit.Max < filesMin {
		return finding{weak, "open files", fmt.Sprintf("at most %d", limit.Max),
			"raise the limit: LimitNOFILE=65536 in the unit, or ulimit -Hn"}
	}
	return finding{fine, "open files", fmt.Sprintf("at most %d", limit.Max), ""}
}

// certificate looks whether this node's certificate is good.
func certificate(config *settings.Agent) finding {
	keys, err := trust.Load(filepath.Join(config.Data, trust.Folder))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return finding{fine, "certificate", "none yet: the first start makes one, or joins with --join", ""}
	case err != nil:
		return finding{wrong, "certificate", err.Error(), "run this as the agent's user; if the files are damaged, restore them"}
	case keys.Node() != string(config.Node):
		return finding{wrong, "certificate", fmt.Sprintf("it is of node %s, not of %s", keys.Node(), config.Node),
			"give each node a data folder of its own"}
	}
	left := time.Until(keys.Expires())
	found := fmt.Sprintf("of node %s of cluster %s, until %s", keys.Node(), keys.Cluster(),
		console.Time(keys.Expires()))
	switch {
	case left <= 0:
		return finding{wrong, "certificate", found + ": it has expired", "start the agent: it has a keeper renew it"}
	case left < expirySoon:
		return finding{weak, "certificate", found, "the agent renews it by itself; see its log if it does not"}
	}
	return finding{fine, "certificate", found, ""}
}

// ports looks whether what the agent listens at is free, and whether others take the ports of tasks.
func ports(config *settings.Agent) (all []finding) {
	wanted := map[string]string{"address": config.Address}
	for name, at := range map[string]string{"etcd.listen": config.Etcd.Listen, "etcd.peer": config.Etcd.Peer} {
		if u, err := url.Parse(at); err == nil && u.Host != "" {
			wanted[name] = u.Host
		}
	}
	for _, name := range []string{"address", "etcd.listen", "etcd.peer"} {
		at := wanted[name]
		if at == "" {
			continue
		}
		listener, err := net.Listen("tcp", at)
		if err != nil {
			all = append(all, finding{wrong, "ports", fmt.Sprintf("%s: %v", name, err),
				"end what listens there, or choose another with --" + strings.ReplaceAll(name, ".", "-")})
			continue
		}
		listener.Close()
		all = append(all, finding{fine, "ports", name + ": " + at + " is free", ""})
	}
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	low, high := 0, 0
	if n, _ := fmt.Sscan(string(text), &low, &high); err != nil || n != 2 {
		return all
	}
	if int(config.PortFirst) <= high && int(config.PortLast) >= low {
		return append(all, finding{weak, "ports", fmt.Sprintf("%d-%d for tasks: the kernel gives %d-%d to connections",
			config.PortFirst, config.PortLast, low, high), "choose others with --ports, or change net.ipv4.ip_local_port_range"})
	}
	return append(all, finding{fine, "ports", fmt.Sprintf("%d-%d for tasks", config.PortFirst, config.PortLast), ""})
}
