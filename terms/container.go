package terms

import (
	"slices"

	"starling/terms/constraint"
)

// Container says in which container the instances of a task run. Jobs have it since rules.Containers.
type Container struct {
	// Image is its name in a registry, with a tag or a digest; "" for no container.
	Image string
	// Arguments take the place of the image's, unless there are none.
	Arguments []string
	// ReadOnly leaves no file of the image to be changed.
	ReadOnly bool
	// Capabilities are those beside the usual ones, as in "NET_ADMIN".
	Capabilities []string
	Mounts       []Mount
	// PullSecret is the secret of the job's pool with which the registry is asked, a config.json of Docker; "" for
	// none. Jobs have it since rules.PullSecrets.
	PullSecret string
}

// Mount is a folder at a path of a container: one of the task's volumes or host paths, or an empty one in memory.
type Mount struct {
	Path string
	// Volume is the name of one of the task's volumes or host paths, "" for memory.
	Volume   string
	ReadOnly bool
}

// CapabilitiesMax bounds the capabilities that a task asks for, MountsMax the mounts.
const (
	CapabilitiesMax = 64
	MountsMax       = 64
)

// ContainersAttribute is the attribute of nodes that says whether they run containers, ContainersYes its value on those
// that do. On others it says why not.
const (
	ContainersAttribute = "containers"
	ContainersYes       = "yes"
)

// HostPathAttribute begins the names of the attributes by which nodes say which host paths they offer.
const HostPathAttribute = "host_path."

// VaultAttribute is the attribute by which nodes say that they ask a server of Vault or OpenBao, and which one.
const VaultAttribute = "vault"

// needsContainers is what must hold of the nodes of a task with a container.
func needsContainers() constraint.Constraint {
	return constraint.Constraint{Attribute: ContainersAttribute, Operator: constraint.Equal,
		Values: []string{ContainersYes}}
}

// needs lists what must hold of the nodes of the task because of its container, host paths and secrets.
func (t *Task) needs() (all []constraint.Constraint) {
	if t.Container.Image != "" {
		all = append(all, needsContainers())
	}
	for _, h := range t.HostPaths {
		all = append(all, constraint.Constraint{Attribute: HostPathAttribute + h.Name, Operator: constraint.Exists})
	}
	if t.AsksVault() {
		all = append(all, constraint.Constraint{Attribute: VaultAttribute, Operator: constraint.Exists})
	}
	return all
}

// Unasked lists what must hold of the nodes of the task, and is none of its constraints.
func (t *Task) Unasked() (all []constraint.Constraint) {
	for _, need := range t.needs() {
		if !slices.ContainsFunc(t.Constraints, func(c constraint.Constraint) bool { return constraint.Same(c, need) }) {
			all = append(all, need)
		}
	}
	return all
}

// AskForNodes has the task ask for nodes with all that its container, host paths and secrets need.
func (t *Task) AskForNodes() { t.Constraints = append(slices.Clip(t.Constraints), t.Unasked()...) }

// ContainerPaths are those at which every container has something of its machine. They are clean, and absolute.
func ContainerPaths() []string {
	return []string{"/proc", "/sys", "/dev", "/etc/hosts", "/etc/resolv.conf"}
}

// Capabilities returns the names of all that a container can be given, in the order of the kernel.
func Capabilities() []string {
	return []string{"CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP",
		"LINUX_IMMUTABLE", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN", "NET_RAW", "IPC_LOCK", "IPC_OWNER",
		"SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT", "SYS_PTRACE", "SYS_PACCT", "SYS_ADMIN", "SYS_BOOT", "SYS_NICE",
		"SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "MKNOD", "LEASE", "AUDIT_WRITE", "AUDIT_CONTROL", "SETFCAP",
		"MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG", "WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ", "PERFMON", "BPF",
		"CHECKPOINT_RESTORE"}
}
