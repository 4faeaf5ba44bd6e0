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
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"starling/api/client"
	"starling/archive/depot"
	"starling/driver/container"
	"starling/jobspec"
	"starling/journal/etcd"
	"starling/journal/zookeeper"
	"starling/peer/credential/vault"
	"starling/terms"
	"starling/trust"
	"starling/trust/provider"
)

// Agent is what the agent of a machine needs to know.
type Agent struct {
	// Node is the machine's name in the cluster.
	Node terms.NodeName
	// Data is the folder for what must survive a restart.
	Data string
	// Address is where the API listens.
	Address string
	// Hint is what to tell about a variable that was passed over, "" for nothing.
	Hint string
	// AdminGroup is the group whose members are admins on this machine, "" for none.
	AdminGroup string
	// Advertise is where other peers reach the API; "" lets that follow from the address.
	Advertise string
	// Issuer is who signs id tokens of instances, as outsiders know the cluster; "" for its SPIFFE id.
	Issuer string
	// OIDC is the provider with which users sign in; without an issuer they cannot.
	OIDC provider.Settings
	// Vault is the server of Vault or OpenBao that has secrets for instances; without an address there is none.
	Vault vault.Settings
	// DNS is where names of instances are answered, "" for nowhere.
	DNS string
	// Join is where the APIs of other machines of the cluster answer; without any, a machine that knows of none founds it.
	Join []string
	// Token admits this machine to the cluster, nil if it has its certificate.
	Token *trust.Token
	// Etcd is how this machine keeps the journal, or reaches it.
	Etcd Etcd
	// ZooKeeper is the ensemble that keeps the journal instead; it has no servers if etcd does.
	ZooKeeper      zookeeper.Config
	ZooKeeperFiles zookeeper.Files
	// ZooKeeperPlaintext says that servers that are not of this machine may be reached without TLS.
	ZooKeeperPlaintext bool
	// Restore is a backup with whose value a new cluster begins, "" for none.
	Restore string
	// SecretFile holds the cluster's secret, "" for none.
	SecretFile string
	// Containerd is the socket of the containerd that keeps images.
	Containerd string
	// KeepImages is for how long images are kept that no version of a job names any more.
	KeepImages time.Duration
	// Free leaves tasks whatever the agent may do itself.
	Free bool
	// Pulse is how long a silent peer is taken to live.
	Pulse time.Duration
	// Absence is how long what runs here stays this machine's when the agent was told to end; 0 gives no notice.
	Absence time.Duration
	// Slack is for how long cores must have been left alone before revocable jobs may have them; 0 offers none.
	Slack time.Duration
	// Capacity overrides what the machine has; negative means as it is.
	Capacity   terms.Resources
	Attributes map[string]string
	// HostPaths are folders that tasks may use, by their names, without symbolic links.
	HostPaths map[string]string
	Devices   []terms.DeviceOffer
	// PortFirst to PortLast are given to tasks.
	PortFirst, PortLast uint16
	// ArchiveBytes and ArchiveAge bound the archive of what the peer folds: 0 bytes are no archive, age 0 is no bound.
	ArchiveBytes int64
	ArchiveAge   time.Duration
	// ArchiveTo is where the archive is kept beyond this machine, "" for nowhere.
	ArchiveTo string
	// Backup is where backups are kept, which are made every so often; the newest are kept. Without a place none is made.
	Backup      depot.Place
	BackupEvery time.Duration
	BackupKeep  int
	// LogFile is "" for one in the data folder, "-" for standard error.
	LogFile  string
	LogLevel slog.Level
}

// Place says for people where the journal is kept. It is the same for all machines of a cluster.
func (c *Agent) Place() string {
	switch {
	case len(c.ZooKeeper.Servers) > 0:
		return "ZooKeeper at " + strings.Join(c.ZooKeeper.Servers, ",") + c.ZooKeeper.Chroot
	case len(c.Etcd.Endpoints) > 0:
		return "etcd at " + strings.Join(c.Etcd.Endpoints, ",") + " below " + c.Etcd.Prefix
	}
	return "the etcd of the cluster's own machines"
}

// OwnQuorum tells whether the machines of the cluster keep the journal.
func (c *Agent) OwnQuorum() bool { return len(c.ZooKeeper.Servers) == 0 && len(c.Etcd.Endpoints) == 0 }

// Etcd is what a machine needs to know about the journal's engine.
type Etcd struct {
	// Listen and Peer are where this machine's member answers other machines, and other members, once it is one; "" if it
	// is to be none.
	Listen, Peer string
	// AwayMax is how long a member may be away before another machine takes its place; members are spread over the values
	// of the attribute Spread.
	AwayMax time.Duration
	Spread  string
	// QuotaBytes is how large a member's file may become.
	QuotaBytes int64
	// Endpoints are those of an etcd that others keep, nil for Starling's own; Certificates, User, PasswordFile and Prefix
	// are for that.
	Endpoints          []string
	Certificates       etcd.Certificates
	User, PasswordFile string
	Prefix             string
	// Plaintext says that an endpoint that is not of this machine may be reached without TLS.
	Plaintext bool
}

// Defaults. The ports that are given to tasks lie below those that systems give to outgoing connections.
const (
	PortFirstDefault = 20000
	PortLastDefault  = 29999
	PulseDefault     = 5 * time.Second
	// ArchiveBytesDefault and ArchiveAgeDefault bound the archive.
	ArchiveBytesDefault = 1 << 30
	ArchiveAgeDefault   = 30 * 24 * time.Hour
	archiveBytesMin     = 16 << 20
	backupEveryDefault  = 24 * time.Hour
	backupKeepDefault   = 14
	pulseMin            = time.Second
	// EtcdListenDefault and EtcdPeerDefault are for the first machine, which must have a member.
	EtcdListenDefault = "https://127.0.0.1:2379"
	EtcdPeerDefault   = "https://127.0.0.1:2380"
	awayDefault       = 10 * time.Minute
	quotaMin          = 256 << 20
	// ContainerdDefault is where containerd usually listens.
	ContainerdDefault = "/run/containerd/containerd.sock"
)

func defaults() (*Agent, error) {
	name, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("find the host's name: %w", err)
	}
	return &Agent{
		Node: terms.NodeName(name), Data: "/var/lib/starling", Address: client.DefaultAddress, Pulse: PulseDefault,
		Etcd:      Etcd{AwayMax: awayDefault, Spread: "zone", QuotaBytes: etcd.QuotaDefault, Prefix: "starling/"},
		Capacity:  terms.Resources{-1, -1, -1},
		PortFirst: PortFirstDefault, PortLast: PortLastDefault,
		Containerd: ContainerdDefault, KeepImages: container.KeepDefault,
		OIDC:         provider.Settings{Claim: provider.EmailClaim},
		Vault:        vault.Settings{Auth: vault.AuthDefault, Every: vault.EveryDefault},
		ArchiveBytes: ArchiveBytesDefault, ArchiveAge: ArchiveAgeDefault,
		BackupEvery: backupEveryDefault, BackupKeep: backupKeepDefault,
	}, nil
}

// all are all settings of the agent, in the order in which help and errors list them.
func all() []setting { return slices.Concat(ofEntry(), vaultSettings(), ofWork()) }

// ofEntry are the settings of who this machine is, where it answers, and whom.
func ofEntry() []setting {
	return []setting{
		{"node", scalar, "`NAME` of this machine in the cluster (default: its host name)", setNode},
		{"data", scalar, "`DIR` for what must survive a restart (default /var/lib/starling)",
			setPath(func(c *Agent) *string { return &c.Data })},
		{"address", scalar, "`HOST:PORT` for the API", setAddress},
		{"admin_group", scalar, "`GROUP` of this machine whose members are admins, as root and the agent's own user are (default: none)", setAdminGroup},
		{"advertise", scalar, "`HOST:PORT` at which other peers reach the API (default: the address, or the machine's first)", setAdvertise},
		{"id_token_issuer", scalar, "`URL` as which id tokens of instances name their issuer, the same on all nodes; below it outsiders find .well-known/openid-configuration, which each peer serves (default: spiffe://CLUSTER; outsiders are told of a peer's .well-known/jwks.json then)", setIssuer},
		{"oidc.issuer", scalar, "`URL` of the OpenID Connect provider with which users sign in, the same on all nodes that hold the authority's key (default: none)", setOIDCIssuer},
		{"oidc.client", scalar, "`ID` of the cluster as a client of the provider, which must let it sign devices in (RFC 8628), or lead browsers back to their machine (RFC 8252)",
			setPath(func(c *Agent) *string { return &c.OIDC.Client })},
		{"oidc.secret_file", scalar, "`FILE` with the client's secret, if it has one", setOIDCSecret},
		{"oidc.claim", scalar, "`NAME` of the claim that is the user's name, in the id token or what the provider's userinfo_endpoint says; email counts only if it is verified (default email)",
			setPath(func(c *Agent) *string { return &c.OIDC.Claim })},
		{"dns", scalar, "`HOST:PORT` at which to answer the names of instances over DNS, such as 127.0.0.1:5300 (default: nowhere)", setDNS},
	}
}

// ofWork are the others.
func ofWork() []setting {
	return []setting{
		{"join", list, "`LINE` of `starling token create`, or a file with it, to join a cluster; or HOST:PORTs of the APIs of its machines, for one that has joined (default: those that it knew last; a new machine founds a cluster)", setJoin},
		{"etcd.listen", scalar, "`URL` at which this machine's member of the quorum answers other machines, once it is one; without it it is never one (default for the machine that founds the cluster: " + EtcdListenDefault + ")",
			setURL(func(c *Agent) *string { return &c.Etcd.Listen })},
		{"etcd.peer", scalar, "`URL` at which it answers other members (default: etcd.listen with the next port)",
			setURL(func(c *Agent) *string { return &c.Etcd.Peer })},
		{"etcd.away", scalar, "`DURATION` after which another machine takes the place of a member that is away (default 10m)", setAway},
		{"etcd.spread", scalar, "`ATTRIBUTE` over whose values members are spread (default zone)",
			setPath(func(c *Agent) *string { return &c.Etcd.Spread })},
		{"etcd.quota", scalar, "`BYTES` that a member's file may have, such as 8Gi, which is the default", setQuota},
		{"etcd.endpoints", list, "`URL`s of an etcd of your own that is to keep the journal, instead of Starling's", setEndpoints},
		{"etcd.cert", scalar, "PEM `FILE` of this node's certificate for that etcd, if it wants TLS",
			setPath(func(c *Agent) *string { return &c.Etcd.Certificates.CertFile })},
		{"etcd.key", scalar, "PEM `FILE` of its key",
			setPath(func(c *Agent) *string { return &c.Etcd.Certificates.KeyFile })},
		{"etcd.ca", scalar, "PEM `FILE` of the authority that signs the certificates of that etcd",
			setPath(func(c *Agent) *string { return &c.Etcd.Certificates.CAFile })},
		{"etcd.user", scalar, "`NAME` of a user of that etcd", setPath(func(c *Agent) *string { return &c.Etcd.User })},
		{"etcd.password_file", scalar, "`FILE` that holds the user's password",
			setPath(func(c *Agent) *string { return &c.Etcd.PasswordFile })},
		{"etcd.plaintext", scalar, "`yes` to reach that etcd without TLS at addresses of other machines, by a network that nobody else is on (default no)",
			setYes(func(c *Agent) *bool { return &c.Etcd.Plaintext })},
		{"etcd.prefix", scalar, "`TEXT` with which all keys in that etcd begin (default starling/)",
			setPath(func(c *Agent) *string { return &c.Etcd.Prefix })},
		{"zookeeper.servers", scalar, "`HOST:PORT,...` of an ensemble of ZooKeeper, and /CHROOT, if that keeps the journal instead of etcd (default /starling)",
			setZooKeeper},
		{"zookeeper.auth_file", scalar, "`FILE` with USER:PASSWORD for it, for digest authentication", setZooKeeperAuth},
		{"zookeeper.plaintext", scalar, "`yes` to reach it without TLS at addresses of other machines, by a network that nobody else is on (default no)",
			setYes(func(c *Agent) *bool { return &c.ZooKeeperPlaintext })},
		{"zookeeper.cert", scalar, "PEM `FILE` of this node's certificate, for servers that want TLS",
			setPath(func(c *Agent) *string { return &c.ZooKeeperFiles.CertFile })},
		{"zookeeper.key", scalar, "PEM `FILE` of its key",
			setPath(func(c *Agent) *string { return &c.ZooKeeperFiles.KeyFile })},
		{"zookeeper.ca", scalar, "PEM `FILE` of the authority that signs the servers' certificates",
			setPath(func(c *Agent) *string { return &c.ZooKeeperFiles.CAFile })},
		{"backup.to", scalar, "`PLACE` at which to keep a backup now and then: a folder, or s3://BUCKET/PREFIX; machines that share it share the work (default: nowhere)", setPlace(func(c *Agent) *string { return &c.Backup.To })},
		{"backup.every", scalar, "`DURATION` from one backup to the next (default 24h)", setBackupEvery},
		{"backup.keep", scalar, "`NUMBER` of backups to keep, of which older ones are deleted (default 14)", setBackupKeep},
		{"backup.endpoint", scalar, "`URL` of the store, if it is not Amazon's", setPath(func(c *Agent) *string { return &c.Backup.Endpoint })},
		{"backup.region", scalar, "`NAME` of the store's region, if it does not tell it",
			setPath(func(c *Agent) *string { return &c.Backup.Region })},
		{"backup.credentials_file", scalar, "`FILE` with credentials for the store, as the AWS tools have it (default: what AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, ~/.aws or the machine's role say)",
			setPath(func(c *Agent) *string { return &c.Backup.CredentialsFile })},
		{"restore", scalar, "`FILE` or s3://BUCKET/PREFIX/NAME of \"starling backup\", or a place of which to take the newest, with whose jobs, pools and settings a new cluster begins", setPath(func(c *Agent) *string { return &c.Restore })},
		{"secret_file", scalar, "`FILE` of the cluster's secret, the same on all nodes, for jobs with the plugins ssh and mpi", setPath(func(c *Agent) *string { return &c.SecretFile })},
		{"pulse_ttl", scalar, "`DURATION` after which a silent peer counts as dead (default 5s)", setPulse},
		{"absence", scalar, "`DURATION` for which what runs here stays this machine's when the agent is told to end, as for an upgrade of its package, and is not back yet; others have it as soon as its time is over, or at once when the machine goes down, or when the agent comes back after its pulse has ended and an instance with stop_after is there (default 0: as soon as its pulse has ended)", setAbsence},
		{"capacity.cpu", scalar, "`CORES` to give to tasks (default: all)", setCapacity(terms.CPU, jobspec.ParseCPU)},
		{"capacity.memory", scalar, "`BYTES` of memory to give to tasks, such as 8Gi (default: all)",
			setCapacity(terms.Memory, jobspec.ParseBytes)},
		{"capacity.disk", scalar, "`BYTES` of disk to give to tasks (default: what is free)",
			setCapacity(terms.Disk, jobspec.ParseBytes)},
		{"attributes", pairs, "what constraints may ask for, as `NAME=VALUE`,...; os, arch, cores, node, confined, quotas, containers, keeper and secret are there", setAttributes},
		{"devices", pairs, "devices to give to tasks, as `KIND=COUNT`,... or KIND=COUNT:MODEL,...; peers are the virtual peers (default: one for each processor, and the GPUs that are found)", setDevices},
		{"slack", scalar, "`DURATION` for which instances must have left cores alone that they were promised before revocable jobs may have those as the device slack, as long as that stays so, such as 5m (default 0: never)", setSlack},
		{"host_paths", pairs, "folders of this machine that tasks may use whose pools let them, as `NAME=PATH`,... (default: none)", setHostPaths},
		{"containerd", scalar, "`SOCKET` of the containerd that keeps images for containers (default " + ContainerdDefault + ")",
			setPath(func(c *Agent) *string { return &c.Containerd })},
		{"keep_images", scalar, "`DURATION` for which an image is kept that no version of a job names any more; on a disk that is nearly full it is half an hour at most (default 24h)", setKeepImages},
		{"confine", scalar, "`yes`, or no to leave tasks whatever the agent itself may do, such as to mount and to change the system (default yes)", setConfine},
		{"ports", scalar, "`FIRST-LAST` TCP ports to give to tasks (default 20000-29999)", setPorts},
		{"archive.bytes", scalar, "`BYTES` of the past to keep, which --at, diff, blame and report read (default 1Gi; 0 for none)", setArchiveBytes},
		{"archive.age", scalar, "`DURATION` of the past to keep (default 720h; 0 for all that there is room for)", setArchiveAge},
		{"archive.to", scalar, "`PLACE` at which to keep the past beyond this machine's bytes and age, for all machines that share it: a folder, or s3://BUCKET/PREFIX, reached as the backup settings say; what is too old there is deleted by the place's own rules (default: nowhere)", setPlace(func(c *Agent) *string { return &c.ArchiveTo })},
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

func setConfine(c *Agent, texts []string) error {
	confined := false
	err := setYes(func(*Agent) *bool { return &confined })(c, texts)
	c.Free = !confined
	return err
}

func setAddress(c *Agent, texts []string) error {
	if _, err := netip.ParseAddrPort(strings.Replace(texts[0], "localhost:", "127.0.0.1:", 1)); err != nil {
		return fmt.Errorf("%q is not an IP:PORT such as 127.0.0.1:7460", texts[0])
	}
	c.Address = texts[0]
	return nil
}

func setAdvertise(c *Agent, texts []string) error {
	if _, _, err := net.SplitHostPort(texts[0]); err != nil {
		return fmt.Errorf("%q is not a HOST:PORT", texts[0])
	}
	c.Advertise = texts[0]
	return nil
}

func setIssuer(c *Agent, texts []string) error {
	c.Issuer = texts[0]
	return httpsURL(texts[0])
}

func setOIDCIssuer(c *Agent, texts []string) error {
	c.OIDC.Issuer = texts[0]
	return httpsURL(texts[0])
}

func setOIDCSecret(c *Agent, texts []string) error {
	text, err := trust.ReadPrivate(texts[0])
	if c.OIDC.Secret = strings.TrimSpace(string(text)); err == nil && c.OIDC.Secret == "" {
		err = fmt.Errorf("%s is empty", texts[0])
	}
	return err
}

// httpsURL checks the URL of an issuer of tokens.
func httpsURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return fmt.Errorf("%q is not a URL such as https://starling.example.com", text)
	}
	return nil
}

func setDNS(c *Agent, texts []string) error {
	c.DNS = texts[0]
	if _, _, err := net.SplitHostPort(c.DNS); err != nil {
		return fmt.Errorf("%q is not a HOST:PORT such as 127.0.0.1:5300", c.DNS)
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

// etcdURL checks a URL of the engine, which has one of the schemes.
func etcdURL(text string, schemes ...string) error {
	u, err := url.Parse(text)
	if err != nil || !slices.Contains(schemes, u.Scheme) || u.Port() == "" || u.Path != "" {
		return fmt.Errorf("%q is not a URL such as %s://10.0.0.1:2380", text, schemes[0])
	}
	return nil
}

// setURL takes where a member answers, which it does over TLS only.
func setURL(field func(*Agent) *string) func(*Agent, []string) error {
	return func(c *Agent, texts []string) error {
		*field(c) = texts[0]
		return etcdURL(texts[0], "https")
	}
}

// setJoin takes addresses, and a token or the file that holds one, which is no argument that others can see.
func setJoin(c *Agent, texts []string) error {
	c.Join, c.Token = nil, nil
	for _, text := range texts {
		if _, _, err := net.SplitHostPort(text); err == nil && !strings.Contains(text, "/") &&
			!strings.HasPrefix(text, trust.TokenPrefix) {
			c.Join = append(c.Join, text)
			continue
		}
		if !strings.HasPrefix(text, trust.TokenPrefix) {
			line, err := os.ReadFile(text)
			if err != nil {
				return fmt.Errorf("%q is not a line that begins with %s, not a file with one, and not a HOST:PORT such as 10.0.0.1:7460: %w",
					text, trust.TokenPrefix, err)
			}
			text = string(line)
		}
		token, err := trust.ParseToken(text)
		if err != nil {
			return err
		}
		c.Token, c.Join = token, append(c.Join, token.Addresses...)
	}
	return nil
}

func setEndpoints(c *Agent, texts []string) error {
	for _, text := range texts {
		if err := etcdURL(text, "https", "http"); err != nil {
			return err
		}
	}
	c.Etcd.Endpoints = texts
	return nil
}

func setAway(c *Agent, texts []string) error {
	millis, err := jobspec.ParseDuration(texts[0], int64(30*24*time.Hour/time.Millisecond))
	if err != nil {
		return err
	}
	if c.Etcd.AwayMax = time.Duration(millis) * time.Millisecond; c.Etcd.AwayMax < time.Second {
		return fmt.Errorf("must be at least 1s, is %s", texts[0])
	}
	return nil
}

func setQuota(c *Agent, texts []string) (err error) {
	if c.Etcd.QuotaBytes, err = jobspec.ParseBytes(texts[0]); err == nil && c.Etcd.QuotaBytes < quotaMin {
		err = fmt.Errorf("must be at least 256Mi, is %s", texts[0])
	}
	return err
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

func setAbsence(c *Agent, texts []string) error {
	millis, err := jobspec.ParseDuration(texts[0], terms.AwayMillisMax)
	c.Absence = time.Duration(millis) * time.Millisecond
	return err
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
			return fmt.Errorf("%q is not a NAME=VALUE", text)
		}
		c.Attributes[name] = value
	}
	return nil
}

func setYes(field func(*Agent) *bool) func(*Agent, []string) error {
	return func(c *Agent, texts []string) error {
		if texts[0] != "yes" && texts[0] != "no" {
			return fmt.Errorf("%q is neither yes nor no", texts[0])
		}
		*field(c) = texts[0] == "yes"
		return nil
	}
}

func setHostPaths(c *Agent, texts []string) error {
	c.HostPaths = map[string]string{}
	for _, text := range texts {
		name, path, found := strings.Cut(text, "=")
		if reason := terms.NameProblem(name, false); !found || reason != "" || !filepath.IsAbs(path) {
			return fmt.Errorf("%q is not a NAME=PATH such as data=/srv/data: a name that jobs use, and an absolute path", text)
		}
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			return fmt.Errorf("%s: %w\nhint: make the folder; it is not made for you", name, err)
		}
		if info, err := os.Stat(real); err != nil || !info.IsDir() {
			return fmt.Errorf("%s: %s is not a folder", name, path)
		}
		c.HostPaths[name] = real
	}
	return nil
}

func setDevices(c *Agent, texts []string) (err error) {
	c.Devices, err = Devices(texts)
	return err
}

// Devices reads devices such as gpu=2 or gpu=2:A100, and orders them by their kind.
func Devices(texts []string) (all []terms.DeviceOffer, err error) {
	for _, text := range texts {
		kind, count, _ := strings.Cut(text, "=")
		count, model, told := strings.Cut(count, ":")
		number, err := strconv.ParseUint(count, 10, 16)
		isWrong := err != nil || terms.NameProblem(kind, false) != "" || told && terms.NameProblem(model, false) != ""
		if isWrong {
			return nil, fmt.Errorf("%q is not a KIND=COUNT such as gpu=2, or KIND=COUNT:MODEL such as gpu=2:A100", text)
		}
		if slices.ContainsFunc(all, func(d terms.DeviceOffer) bool { return d.Kind == kind }) {
			return nil, fmt.Errorf("%q gives devices of kind %s a second time: give each kind once", text, kind)
		}
		all = append(all, terms.DeviceOffer{Kind: kind, Model: model, Count: uint32(number)})
	}
	slices.SortFunc(all, func(a, b terms.DeviceOffer) int { return cmp.Compare(a.Kind, b.Kind) })
	return all, nil
}

func setArchiveBytes(c *Agent, texts []string) (err error) {
	c.ArchiveBytes, err = jobspec.ParseBytes(texts[0])
	if err == nil && c.ArchiveBytes != 0 && c.ArchiveBytes < archiveBytesMin {
		err = fmt.Errorf("must be at least 16Mi, or 0 for no archive, is %s", texts[0])
	}
	return err
}

func setArchiveAge(c *Agent, texts []string) (err error) {
	if c.ArchiveAge, err = time.ParseDuration(texts[0]); err != nil || c.ArchiveAge < 0 {
		return fmt.Errorf("must be a duration such as 720h, or 0 for no bound, is %q", texts[0])
	}
	return nil
}

func setKeepImages(c *Agent, texts []string) (err error) {
	if c.KeepImages, err = time.ParseDuration(texts[0]); err != nil || c.KeepImages < time.Second {
		return fmt.Errorf("must be a duration such as 24h, at least 1s, is %q", texts[0])
	}
	return nil
}

func setPlace(of func(*Agent) *string) func(*Agent, []string) error {
	return func(c *Agent, texts []string) error {
		*of(c) = texts[0]
		_, err := depot.Open(depot.Place{To: texts[0]})
		return err
	}
}

func setBackupEvery(c *Agent, texts []string) (err error) {
	if c.BackupEvery, err = time.ParseDuration(texts[0]); err != nil || c.BackupEvery < time.Second {
		return fmt.Errorf("must be a duration such as 24h, at least 1s, is %q", texts[0])
	}
	return nil
}

func setBackupKeep(c *Agent, texts []string) (err error) {
	if c.BackupKeep, err = strconv.Atoi(texts[0]); err != nil || c.BackupKeep < 1 {
		return fmt.Errorf("must be a number, at least 1, is %q", texts[0])
	}
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
		return 0, 0, fmt.Errorf("%q is not a range of ports such as 20000-29999", text)
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
