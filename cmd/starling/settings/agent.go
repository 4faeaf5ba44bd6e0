// Package settings is what an agent is told: by flags, by the environment, by one YAML file, and otherwise by
// defaults.
//
// All settings stand in one table, so that each has the same name, checks and help wherever it is given.
package settings

import (
	"cmp"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	"starling/api/client"
	"starling/jobspec"
	"starling/terms"
	"starling/trust"
)

// Agent is what the agent of a machine needs to know.
type Agent struct {
	// Node is the machine's name in the cluster.
	Node terms.NodeName
	// Data is the folder for what must survive a restart.
	Data string
	// Address is where the API listens.
	Address string
	// AdminGroup is the group whose members are admins on this machine, "" for none.
	AdminGroup string
	// Join admits this machine to a cluster, nil for one that is in a cluster or makes it.
	Join *trust.Token
	// Advertise is where other peers reach the API; "" lets that follow from the address.
	Advertise string
	// DNS is where names of instances are answered, "" for nowhere.
	DNS string
	// Members maps the names of the nodes that form the etcd quorum to the URLs at which they meet; Endpoints are
	// where a node that is none of them finds it. EtcdListen is where this node's member answers those.
	Members    map[string]string
	Endpoints  []string
	EtcdListen string
	// SecretFile holds the cluster's secret, "" for none.
	SecretFile string
	// Pulse is how long a silent peer is taken to live.
	Pulse time.Duration
	// Capacity overrides what the machine has; negative means as it is.
	Capacity   terms.Resources
	Attributes map[string]string
	Devices    []terms.DeviceOffer
	// PortFirst to PortLast are given to tasks.
	PortFirst, PortLast uint16
	// LogFile is "" for one in the data folder, "-" for standard error.
	LogFile  string
	LogLevel slog.Level
}

// Defaults. The ports that are given to tasks lie below those that systems give to outgoing connections.
const (
	PortFirstDefault = 20000
	PortLastDefault  = 29999
	PulseDefault     = 5 * time.Second
	pulseMin         = time.Second
)

func defaults() (*Agent, error) {
	name, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("find the host's name: %w", err)
	}
	return &Agent{
		Node: terms.NodeName(name), Data: "/var/lib/starling", Address: client.DefaultAddress, Pulse: PulseDefault,
		EtcdListen: "https://127.0.0.1:2379", Capacity: terms.Resources{-1, -1, -1},
		PortFirst: PortFirstDefault, PortLast: PortLastDefault,
	}, nil
}

// all are all settings of the agent, in the order in which help and errors list them.
func all() []setting {
	return []setting{
		{"node", scalar, "`NAME` of this machine in the cluster (default: its host name)", setNode},
		{"data", scalar, "`DIR` for what must survive a restart (default /var/lib/starling)",
			setPath(func(c *Agent) *string { return &c.Data })},
		{"address", scalar, "`HOST:PORT` for the API", setAddress},
		{"join", scalar, "`LINE` of `starling token create`, or a file with it, by which this machine joins its cluster when it is in none", setJoin},
		{"admin_group", scalar, "`GROUP` of this machine whose members are admins, as root and the agent's own user are (default: none)", setAdminGroup},
		{"advertise", scalar, "`HOST:PORT` at which other peers reach the API (default: the address, or the machine's first)", setAdvertise},
		{"dns", scalar, "`HOST:PORT` at which to answer the names of instances over DNS, such as 127.0.0.1:5300 (default: nowhere)", setDNS},
		{"etcd.members", pairs, "the nodes that form the quorum, one or three, as `NAME=https://HOST:PORT`,...", setMembers},
		{"etcd.endpoints", list, "`URL`s of the quorum's members, for a node that is none of them", setEndpoints},
		{"etcd.listen", scalar, "`URL` at which this node's member answers the other nodes (default https://127.0.0.1:2379)",
			setEtcdListen},
		{"secret_file", scalar, "`FILE` of the cluster's secret, the same on all nodes, for jobs with the plugins ssh and mpi", setPath(func(c *Agent) *string { return &c.SecretFile })},
		{"pulse_ttl", scalar, "`DURATION` after which a silent peer counts as dead (default 5s)", setPulse},
		{"capacity.cpu", scalar, "`CORES` to give to tasks (default: all)", setCapacity(terms.CPU, jobspec.ParseCPU)},
		{"capacity.memory", scalar, "`BYTES` of memory to give to tasks, such as 8Gi (default: all)",
			setCapacity(terms.Memory, jobspec.ParseBytes)},
		{"capacity.disk", scalar, "`BYTES` of disk to give to tasks (default: what is free)",
			setCapacity(terms.Disk, jobspec.ParseBytes)},
		{"attributes", pairs, "what constraints may ask for, as `NAME=VALUE`,...; os, arch, cores, node and secret are there", setAttributes},
		{"devices", pairs, "devices to give to tasks, as `KIND=COUNT`,... or KIND=COUNT:MODEL,...; peers are the virtual peers (default: one for each processor)", setDevices},
		{"ports", scalar, "`FIRST-LAST` TCP ports to give to tasks (default 20000-29999)", setPorts},
		{"log.file", scalar, "`FILE` for the log (default: DIR/starling.log; - for stderr)", setLogFile},
		{"log.level", scalar, "`LEVEL` of what is logged: debug, info, warn or error (default info)", setLogLevel},
	}
}

func setNode(c *Agent, texts []string) error {
	if reason := terms.NameProblem(texts[0], true); reason != "" {
		return fmt.Errorf("%s", reason)
	}
	c.Node = terms.NodeName(texts[0])
	return nil
}

func setPath(field func(*Agent) *string) func(*Agent, []string) error {
	return func(c *Agent, texts []string) error {
		if texts[0] == "" {
			return fmt.Errorf("must not be empty")
		}
		*field(c) = texts[0]
		return nil
	}
}

func setAddress(c *Agent, texts []string) error {
	if _, err := netip.ParseAddrPort(strings.Replace(texts[0], "localhost:", "127.0.0.1:", 1)); err != nil {
		return fmt.Errorf("%q is no IP:PORT such as 127.0.0.1:7460", texts[0])
	}
	c.Address = texts[0]
	return nil
}

func setAdvertise(c *Agent, texts []string) error {
	if _, _, err := net.SplitHostPort(texts[0]); err != nil {
		return fmt.Errorf("%q is no HOST:PORT", texts[0])
	}
	c.Advertise = texts[0]
	return nil
}

func setDNS(c *Agent, texts []string) error {
	c.DNS = texts[0]
	if _, _, err := net.SplitHostPort(c.DNS); err != nil {
		return fmt.Errorf("%q is no HOST:PORT such as 127.0.0.1:5300", c.DNS)
	}
	return nil
}

func setAdminGroup(c *Agent, texts []string) error {
	c.AdminGroup = texts[0]
	if _, err := user.LookupGroup(texts[0]); err != nil {
		return fmt.Errorf("this machine has no group %q: %w", texts[0], err)
	}
	return nil
}

// setJoin takes a token or the file that holds one, which is no argument that others can see.
func setJoin(c *Agent, texts []string) (err error) {
	line := texts[0]
	if !strings.HasPrefix(line, trust.TokenPrefix) {
		text, err := os.ReadFile(line)
		if err != nil {
			return fmt.Errorf("it is no line that begins with %s, and no file with one: %w", trust.TokenPrefix, err)
		}
		line = string(text)
	}
	c.Join, err = trust.ParseToken(line)
	return err
}

// etcdURL checks a URL of the engine.
func etcdURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Port() == "" || u.Path != "" {
		return fmt.Errorf("%q is no URL such as https://10.0.0.1:2380", text)
	}
	return nil
}

func setMembers(c *Agent, texts []string) error {
	c.Members = map[string]string{}
	for _, text := range texts {
		name, at, _ := strings.Cut(text, "=")
		if reason := terms.NameProblem(name, true); reason != "" {
			return fmt.Errorf("the name of a member %s", reason)
		}
		if err := etcdURL(at); err != nil {
			return fmt.Errorf("member %s: %w", name, err)
		}
		for other, taken := range c.Members {
			if taken == at || other == name {
				return fmt.Errorf("member %s: the name or its URL is that of member %s as well", name, other)
			}
		}
		c.Members[name] = at
	}
	if n := len(c.Members); n != 1 && n != 3 {
		return fmt.Errorf("one or three nodes form the quorum, not %d: more join as clients, with etcd.endpoints", n)
	}
	return nil
}

func setEndpoints(c *Agent, texts []string) error {
	for _, text := range texts {
		if err := etcdURL(text); err != nil {
			return err
		}
	}
	c.Endpoints = texts
	return nil
}

func setEtcdListen(c *Agent, texts []string) error {
	c.EtcdListen = texts[0]
	return etcdURL(texts[0])
}

func setPulse(c *Agent, texts []string) error {
	millis, err := jobspec.ParseDuration(texts[0], int64(time.Hour/time.Millisecond))
	if err != nil {
		return err
	}
	if c.Pulse = time.Duration(millis) * time.Millisecond; c.Pulse < pulseMin || c.Pulse%time.Second != 0 {
		return fmt.Errorf("must be in whole seconds, at least %s, is %s", pulseMin, texts[0])
	}
	return nil
}

func setCapacity(kind terms.Kind, parse func(string) (int64, error)) func(*Agent, []string) error {
	return func(c *Agent, texts []string) (err error) {
		c.Capacity[kind], err = parse(texts[0])
		return err
	}
}

func setAttributes(c *Agent, texts []string) error {
	c.Attributes = map[string]string{}
	for _, text := range texts {
		name, value, found := strings.Cut(text, "=")
		if !found || name == "" {
			return fmt.Errorf("%q is no NAME=VALUE", text)
		}
		c.Attributes[name] = value
	}
	return nil
}

func setDevices(c *Agent, texts []string) error {
	c.Devices = nil
	for _, text := range texts {
		kind, count, _ := strings.Cut(text, "=")
		count, model, told := strings.Cut(count, ":")
		number, err := strconv.ParseUint(count, 10, 16)
		isWrong := err != nil || terms.NameProblem(kind, false) != "" || told && terms.NameProblem(model, false) != ""
		if isWrong {
			return fmt.Errorf("%q is no KIND=COUNT such as gpu=2, or KIND=COUNT:MODEL such as gpu=2:A100", text)
		}
		if slices.ContainsFunc(c.Devices, func(d terms.DeviceOffer) bool { return d.Kind == kind }) {
			return fmt.Errorf("%q gives devices of kind %s a second time: give each kind once", text, kind)
		}
		c.Devices = append(c.Devices, terms.DeviceOffer{Kind: kind, Model: model, Count: uint32(number)})
	}
	slices.SortFunc(c.Devices, func(a, b terms.DeviceOffer) int { return cmp.Compare(a.Kind, b.Kind) })
	return nil
}

func setPorts(c *Agent, texts []string) (err error) {
	c.PortFirst, c.PortLast, err = Ports(texts[0])
	return err
}

// Ports reads a range of ports such as 20000-29999.
func Ports(text string) (first, last uint16, err error) {
	low, high, _ := strings.Cut(text, "-")
	from, err1 := strconv.ParseUint(low, 10, 16)
	to, err2 := strconv.ParseUint(high, 10, 16)
	if err1 != nil || err2 != nil || from == 0 || from > to {
		return 0, 0, fmt.Errorf("%q is no range of ports such as 20000-29999", text)
	}
	return uint16(from), uint16(to), nil
}

func setLogFile(c *Agent, texts []string) error {
	c.LogFile = texts[0]
	return nil
}

func setLogLevel(c *Agent, texts []string) error {
	levels := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn,
		"error": slog.LevelError}
	level, known := levels[texts[0]]
	if !known {
		return fmt.Errorf("must be debug, info, warn or error, is %q", texts[0])
	}
	c.LogLevel = level
	return nil
}
