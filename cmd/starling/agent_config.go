package main

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"starling/api/client"
	"starling/cluster"
	"starling/jobspec"
	"starling/journal/etcd"
)

// agentConfig is what the agent of a machine needs to know.
type agentConfig struct {
	node     cluster.NodeName
	data     string
	address  string
	insecure bool
	// members maps the names of the nodes that form the etcd quorum to the URLs at which they meet; endpoints are
	// where a node that is none of them finds it. etcdListen is where this node's member answers those.
	members    map[string]string
	endpoints  []string
	etcdListen string
	// certificates are for etcd beyond this machine.
	certificates etcd.Certificates
	pulse        time.Duration
	// capacity overrides what the machine has; negative means as it is.
	capacity            cluster.Resources
	attributes          map[string]string
	devices             []cluster.DeviceRequest
	portFirst, portLast uint16
	logFile             string
	logLevel            slog.Level
}

// The default range of ports that are given to tasks lies below those that systems give to outgoing connections.
const (
	portFirstDefault = 20000
	portLastDefault  = 29999
	pulseDefault     = 5 * time.Second
	pulseMin         = time.Second
)

func defaultAgentConfig() (*agentConfig, error) {
	name, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("find the host's name: %w", err)
	}
	return &agentConfig{
		node: cluster.NodeName(name), data: "/var/lib/starling", address: client.DefaultAddress, pulse: pulseDefault,
		etcdListen: "http://127.0.0.1:2379", capacity: cluster.Resources{-1, -1, -1},
		portFirst: portFirstDefault, portLast: portLastDefault,
	}, nil
}

// agentSettings are all settings of the agent, in the order in which help and errors list them.
func agentSettings() []setting {
	return []setting{
		{"node", scalar, "`NAME` of this machine in the cluster (default: its host name)", setNode},
		{"data", scalar, "`DIR` for what must survive a restart (default /var/lib/starling)", setPath(func(c *agentConfig) *string { return &c.data })},
		{"address", scalar, "`HOST:PORT` for the API", setAddress},
		{"insecure", scalar, "`true` lets the API listen beyond this machine although nothing protects it yet", setInsecure},
		{"etcd.members", pairs, "the nodes that form the quorum, one or three, as `NAME=http://HOST:PORT`,...", setMembers},
		{"etcd.endpoints", list, "`URL`s of the quorum's members, for a node that is none of them", setEndpoints},
		{"etcd.listen", scalar, "`URL` at which this node's member answers the other nodes (default http://127.0.0.1:2379)", setEtcdListen},
		{"etcd.cert", scalar, "PEM `FILE` of this node's certificate, for etcd beyond one machine", setPath(func(c *agentConfig) *string { return &c.certificates.CertFile })},
		{"etcd.key", scalar, "PEM `FILE` of its key", setPath(func(c *agentConfig) *string { return &c.certificates.KeyFile })},
		{"etcd.ca", scalar, "PEM `FILE` of who signs the nodes' certificates", setPath(func(c *agentConfig) *string { return &c.certificates.CAFile })},
		{"pulse_ttl", scalar, "`DURATION` after which a silent peer counts as dead (default 5s)", setPulse},
		{"capacity.cpu", scalar, "`CORES` to give to tasks (default: all)", setCapacity(cluster.CPU, jobspec.ParseCPU)},
		{"capacity.memory", scalar, "`BYTES` of memory to give to tasks, such as 8Gi (default: all)", setCapacity(cluster.Memory, jobspec.ParseBytes)},
		{"capacity.disk", scalar, "`BYTES` of disk to give to tasks (default: what is free)", setCapacity(cluster.Disk, jobspec.ParseBytes)},
		{"attributes", pairs, "what constraints may ask for, as `NAME=VALUE`,...; os, arch, cores and node are there", setAttributes},
		{"devices", pairs, "whole devices to give to tasks, as `KIND=COUNT`,...", setDevices},
		{"ports", scalar, "`FIRST-LAST` TCP ports to give to tasks (default 20000-29999)", setPorts},
		{"log.file", scalar, "`FILE` for the log (default: DIR/starling.log; - for stderr)", setLogFile},
		{"log.level", scalar, "`LEVEL` of what is logged: debug, info, warn or error (default info)", setLogLevel},
	}
}

func setNode(c *agentConfig, texts []string) error {
	if reason := cluster.NameProblem(texts[0], true); reason != "" {
		return fmt.Errorf("%s", reason)
	}
	c.node = cluster.NodeName(texts[0])
	return nil
}

func setPath(field func(*agentConfig) *string) func(*agentConfig, []string) error {
	return func(c *agentConfig, texts []string) error {
		if texts[0] == "" {
			return fmt.Errorf("must not be empty")
		}
		*field(c) = texts[0]
		return nil
	}
}

func setAddress(c *agentConfig, texts []string) error {
	if _, err := netip.ParseAddrPort(strings.Replace(texts[0], "localhost:", "127.0.0.1:", 1)); err != nil {
		return fmt.Errorf("%q is no IP:PORT such as 127.0.0.1:7460", texts[0])
	}
	c.address = texts[0]
	return nil
}

func setInsecure(c *agentConfig, texts []string) (err error) {
	if c.insecure, err = strconv.ParseBool(texts[0]); err != nil {
		return fmt.Errorf("must be true or false, is %q", texts[0])
	}
	return nil
}

// etcdURL checks a URL of the engine.
func etcdURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Port() == "" || u.Path != "" {
		return fmt.Errorf("%q is no URL such as http://10.0.0.1:2380", text)
	}
	return nil
}

func setMembers(c *agentConfig, texts []string) error {
	c.members = map[string]string{}
	for _, text := range texts {
		name, at, _ := strings.Cut(text, "=")
		if reason := cluster.NameProblem(name, true); reason != "" {
			return fmt.Errorf("the name of a member %s", reason)
		}
		if err := etcdURL(at); err != nil {
			return fmt.Errorf("member %s: %w", name, err)
		}
		for other, taken := range c.members {
			if taken == at || other == name {
				return fmt.Errorf("member %s: the name or its URL is that of member %s as well", name, other)
			}
		}
		c.members[name] = at
	}
	if n := len(c.members); n != 1 && n != 3 {
		return fmt.Errorf("one or three nodes form the quorum, not %d: more join as clients, with etcd.endpoints", n)
	}
	return nil
}

func setEndpoints(c *agentConfig, texts []string) error {
	for _, text := range texts {
		if err := etcdURL(text); err != nil {
			return err
		}
	}
	c.endpoints = texts
	return nil
}

func setEtcdListen(c *agentConfig, texts []string) error {
	c.etcdListen = texts[0]
	return etcdURL(texts[0])
}

func setPulse(c *agentConfig, texts []string) error {
	millis, err := jobspec.ParseDuration(texts[0], int64(time.Hour/time.Millisecond))
	if err != nil {
		return err
	}
	if c.pulse = time.Duration(millis) * time.Millisecond; c.pulse < pulseMin || c.pulse%time.Second != 0 {
		return fmt.Errorf("must be in whole seconds, at least %s, is %s", pulseMin, texts[0])
	}
	return nil
}

func setCapacity(kind cluster.Kind, parse func(string) (int64, error)) func(*agentConfig, []string) error {
	return func(c *agentConfig, texts []string) (err error) {
		c.capacity[kind], err = parse(texts[0])
		return err
	}
}

func setAttributes(c *agentConfig, texts []string) error {
	c.attributes = map[string]string{}
	for _, text := range texts {
		name, value, found := strings.Cut(text, "=")
		if !found || name == "" {
			return fmt.Errorf("%q is no NAME=VALUE", text)
		}
		c.attributes[name] = value
	}
	return nil
}

func setDevices(c *agentConfig, texts []string) error {
	c.devices = nil
	for _, text := range texts {
		kind, count, _ := strings.Cut(text, "=")
		number, err := strconv.ParseUint(count, 10, 16)
		if reason := cluster.NameProblem(kind, false); reason != "" || err != nil {
			return fmt.Errorf("%q is no KIND=COUNT such as gpu=2", text)
		}
		c.devices = append(c.devices, cluster.DeviceRequest{Kind: kind, Count: uint32(number)})
	}
	slices.SortFunc(c.devices, func(a, b cluster.DeviceRequest) int { return cmp.Compare(a.Kind, b.Kind) })
	return nil
}

func setPorts(c *agentConfig, texts []string) error {
	low, high, _ := strings.Cut(texts[0], "-")
	first, err1 := strconv.ParseUint(low, 10, 16)
	last, err2 := strconv.ParseUint(high, 10, 16)
	if err1 != nil || err2 != nil || first == 0 || first > last {
		return fmt.Errorf("%q is no range of ports such as 20000-29999", texts[0])
	}
	c.portFirst, c.portLast = uint16(first), uint16(last)
	return nil
}

func setLogFile(c *agentConfig, texts []string) error {
	c.logFile = texts[0]
	return nil
}

func setLogLevel(c *agentConfig, texts []string) error {
	levels := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
	level, known := levels[texts[0]]
	if !known {
		return fmt.Errorf("must be debug, info, warn or error, is %q", texts[0])
	}
	c.logLevel = level
	return nil
}
