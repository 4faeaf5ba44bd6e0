package settings

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v4"

	"starling/api/client"
	"starling/api/wire"
	"starling/journal/etcd"
	"starling/journal/zookeeper"
)

// Read puts together what the flags, the environment, the file and the defaults say, in this order of
// precedence. The error tells everything that is wrong.
func Read(command *cobra.Command, file string) (*Agent, error) {
	c, err := defaults()
	if err != nil {
		return nil, err
	}
	settings := all()
	var problems []error
	if file != "" {
		problems = append(problems, c.readFile(file, settings)...)
	}
	for _, s := range settings {
		texts, err := s.fromFlag(command)
		// A variable that a flag overrides may say what is no setting.
		text := os.Getenv(s.variable())
		if s.key == "address" {
			text, c.Hint = c.listenVariable()
		}
		if text != "" && texts == nil {
			if err := s.set(c, s.fromText(text)); err != nil {
				problems = append(problems, fmt.Errorf("%s: %w", s.variable(), err))
			}
		}
		if err == nil && texts != nil {
			err = s.set(c, texts)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("--%s: %w", s.flag(), err))
		}
	}
	return c.checked(problems)
}

// ReadFile puts together what the file and the defaults say.
func ReadFile(file string) (*Agent, error) {
	c, err := defaults()
	if err != nil {
		return nil, err
	}
	return c.checked(c.readFile(file, all()))
}

// checked returns the settings if there are no problems with them.
func (c *Agent) checked(problems []error) (*Agent, error) {
	if len(problems) == 0 {
		problems = c.contradictions()
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return c, c.complete()
}

// listenVariable returns where to listen by STARLING_ADDRESS, which is for commands first: what the file says comes
// before it.
func (c *Agent) listenVariable() (address, hint string) {
	if c.Address != client.DefaultAddress {
		return "", ""
	}
	return ListenVariable()
}

// ListenVariable returns where STARLING_ADDRESS says to listen. It is also where commands ask; if it can be only that,
// as several addresses are and a socket is, it is passed over, and a hint says so.
func ListenVariable() (address, hint string) {
	if text := os.Getenv("STARLING_ADDRESS"); Listens(text) {
		return text, ""
	}
	return "", "STARLING_ADDRESS is where commands ask, not where to listen: it is not used for that; --address says where"
}

// Listens tells whether a text may say where to listen, which several addresses cannot, nor a socket's.
func Listens(text string) bool {
	asked, err := client.Addresses(text)
	return err != nil || len(asked) == 1 && !strings.HasPrefix(asked[0], wire.UnixPrefix)
}

// Declare adds the flags of all settings to a command.
func Declare(command *cobra.Command) {
	for _, s := range all() {
		s.declare(command)
	}
}

// contradictions lists what cannot be meant together.
func (c *Agent) contradictions() []error {
	problems := c.completeZooKeeper()
	e := &c.Etcd
	files := e.Certificates
	if set := []string{files.CertFile, files.KeyFile, files.CAFile}; slices.Contains(set, "") &&
		files != (etcd.Certificates{}) {
		problems = append(problems, fmt.Errorf("etcd: cert, key and ca belong together: all three or none"))
	}
	if c.OIDC.Issuer == "" != (c.OIDC.Client == "") {
		problems = append(problems, fmt.Errorf("oidc: issuer and client belong together: both or none"))
	}
	data, err := resolved(c.Data)
	for _, name := range slices.Sorted(maps.Keys(c.HostPaths)) {
		if path := c.HostPaths[name]; err != nil || within(path, data) || within(data, path) {
			problems = append(problems, fmt.Errorf("host_paths: %s is %s, and the agent's own data are in %s: neither may lie in "+
				"the other", name, path, data))
		}
	}
	problems = append(problems, c.plainly()...)
	isExternal := len(e.Endpoints) > 0
	switch {
	case len(c.ZooKeeper.Servers) > 0:
	case isExternal && e.Listen != "":
		problems = append(problems, fmt.Errorf("etcd: etcd.endpoints name an etcd of your own, which has no place for etcd.listen\n"+
			"hint: drop etcd.endpoints; a machine joins a cluster whose machines keep the journal with join alone"))
	case !isExternal && (e.User != "" || e.PasswordFile != "" || files != (etcd.Certificates{})):
		problems = append(problems, fmt.Errorf("etcd: user, password_file, cert, key and ca are for an etcd of your own, which "+
			"etcd.endpoints names; between machines Starling has certificates of its own"))
	case (e.User == "") != (e.PasswordFile == ""):
		problems = append(problems, fmt.Errorf("etcd: user and password_file belong together: both or none"))
	case e.Peer != "" && e.Listen == "":
		problems = append(problems, fmt.Errorf("etcd: etcd.peer needs etcd.listen, at which the member answers clients"))
	}
	return problems
}

// plainly lists the engines of other machines that would be reached without TLS, and of which that was not said.
func (c *Agent) plainly() (problems []error) {
	const advice = "%s: %s would be reached without TLS, so that whoever is on the way reads and writes the journal\n" +
		"hint: give %s, or on a network that nobody else is on, %s: yes"
	for _, endpoint := range c.Etcd.Endpoints {
		if u, err := url.Parse(endpoint); err == nil && u.Scheme == "http" && !isLoopback(u.Hostname()) && !c.Etcd.Plaintext {
			problems = append(problems, fmt.Errorf(advice, "etcd", endpoint, "endpoints with https", "etcd.plaintext"))
		}
	}
	for _, server := range c.ZooKeeper.Servers {
		host, _, err := net.SplitHostPort(server)
		if err == nil && c.ZooKeeperFiles == (zookeeper.Files{}) && !isLoopback(host) && !c.ZooKeeperPlaintext {
			problems = append(problems,
				fmt.Errorf(advice, "zookeeper", server, "zookeeper.cert, key and ca", "zookeeper.plaintext"))
		}
	}
	return problems
}

// isLoopback tells whether a host is this machine, whatever the network.
func isLoopback(host string) bool {
	at, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && at.IsLoopback()
}

// resolved is a path without symbolic links, absolute; what is not there yet has none.
func resolved(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(path)
	if !errors.Is(err, os.ErrNotExist) {
		return real, err
	}
	above, err := resolved(filepath.Dir(path))
	return filepath.Join(above, filepath.Base(path)), err
}

// within tells whether a path is a folder or lies in it.
func within(path, folder string) bool {
	below, err := filepath.Rel(folder, path)
	return err == nil && below != ".." && !strings.HasPrefix(below, "../")
}

// complete adds what follows from the rest.
func (c *Agent) complete() error {
	e := &c.Etcd
	if e.Listen == "" || e.Peer != "" {
		return nil
	}
	u, err := url.Parse(e.Listen)
	if err != nil {
		return err
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	if err != nil {
		return fmt.Errorf("etcd.listen: %w", err)
	}
	u.Host = net.JoinHostPort(u.Hostname(), strconv.FormatUint(port+1, 10))
	e.Peer = u.String()
	return nil
}

// readFile reads the one YAML file, and refuses what it does not know.
func (c *Agent) readFile(file string, settings []setting) []error {
	data, err := os.ReadFile(file)
	if err != nil {
		return []error{fmt.Errorf("read the configuration: %w", err)}
	}
	var document yaml.Node
	err = yaml.Load(data, &document)
	if err != nil {
		return []error{fmt.Errorf("%s: %w", file, err)}
	}
	reader := fileReader{config: c, settings: settings}
	if len(document.Content) == 1 {
		reader.mapping(document.Content[0], "")
	}
	for i, problem := range reader.problems {
		reader.problems[i] = fmt.Errorf("%s:%w", file, problem)
	}
	return reader.problems
}

// fileReader walks the file.
type fileReader struct {
	config   *Agent
	settings []setting
	problems []error
}

func (f *fileReader) problem(node *yaml.Node, format string, args ...any) {
	f.problems = append(f.problems, &placed{node, fmt.Sprintf(format, args...)})
}

// mapping reads the keys of a mapping, whose own key and a dot are the prefix.
func (f *fileReader) mapping(node *yaml.Node, prefix string) {
	if node.Kind != yaml.MappingNode {
		f.problem(node, "must be a mapping of keys to values")
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		path := prefix + key.Value
		if seen[key.Value] {
			f.problem(key, "%s stands here twice", path)
			continue
		}
		seen[key.Value] = true
		at := slices.IndexFunc(f.settings, func(s setting) bool { return s.key == path })
		inside := slices.IndexFunc(f.settings, func(s setting) bool { return strings.HasPrefix(s.key, path+".") })
		switch {
		case at >= 0:
			f.value(&f.settings[at], value)
		case inside >= 0:
			f.mapping(value, path+".")
		default:
			f.problem(key, "unknown key %q%s", path, f.near(prefix, key.Value))
		}
	}
}

func (f *fileReader) value(s *setting, node *yaml.Node) {
	texts, err := s.fromNode(node)
	if err != nil {
		f.problems = append(f.problems, err)
		return
	}
	if err := s.set(f.config, texts); err != nil {
		f.problem(node, "%s: %v", s.key, err)
	}
}

// near says which key was probably meant. Cobra knows how to find what somebody meant to type.
func (f *fileReader) near(prefix, typed string) string {
	known := &cobra.Command{SuggestionsMinimumDistance: 2}
	for _, s := range f.settings {
		if rest, ok := strings.CutPrefix(s.key, prefix); ok {
			name, _, _ := strings.Cut(rest, ".")
			known.AddCommand(&cobra.Command{Use: name, Run: func(*cobra.Command, []string) {}})
		}
	}
	if meant := known.SuggestionsFor(typed); len(meant) > 0 {
		return fmt.Sprintf("; did you mean %q?", prefix+meant[0])
	}
	return ""
}
