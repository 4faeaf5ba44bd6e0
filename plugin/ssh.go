package plugin

import (
	"fmt"
	"slices"
	"strings"

	"starling/terms"
)

// ssh lets members log in to each other with a key pair of the job, and know each other's servers by another. A member
// that lets others in runs a server of its own: /usr/sbin/sshd -D -f $STARLING_SSHD_CONFIG
type ssh struct{ port portChoice }

func newSSH(a *arguments) Plugin { return &ssh{port: a.port("port", 22)} }

// Name returns ssh.
func (*ssh) Name() string { return "ssh" }

// OnJobAdd refuses a port that no task has. A task without it logs in to others, and nobody logs in to it.
func (s *ssh) OnJobAdd(job *terms.Job) error {
	if slices.ContainsFunc(job.Tasks, func(t terms.Task) bool { return s.port.missing(job, t.Name) == nil }) {
		return nil
	}
	return fmt.Errorf("argument %s: must be a number or a port of a task, is %q: add it to the ports of each task that others log in to",
		s.port.argument, s.port.name)
}

// OnInstanceCreate returns the keys, and where client and server find their configuration.
func (s *ssh) OnInstanceCreate(r *Roster, self *Self) (Environment, error) {
	files, err := s.OnJobUpdate(r, self)
	env := []terms.EnvVar{{Name: "STARLING_SSH_CONFIG", Value: self.Folder + "/" + clientConfig}}
	if slices.ContainsFunc(files, func(f File) bool { return f.Path == serverConfig }) {
		env = append(env, terms.EnvVar{Name: "STARLING_SSHD_CONFIG", Value: self.Folder + "/" + serverConfig})
	}
	return Environment{Env: env, Files: files}, err
}

const clientConfig, serverConfig = "ssh/config", "ssh/sshd_config"

// OnJobUpdate returns the keys, for the client and for the server, and the configuration of both.
func (s *ssh) OnJobUpdate(r *Roster, self *Self) ([]File, error) {
	all := []File{
		{Path: "ssh/authorized_keys", Key: LoginPublic, Secret: true}, // sshd takes it only so
		{Path: clientConfig, Content: s.client(r, self)},
		{Path: "ssh/host_key", Key: HostPrivate, Secret: true},
		{Path: "ssh/id", Key: LoginPrivate, Secret: true},
		{Path: "ssh/id.pub", Key: LoginPublic},
		{Path: "ssh/known_hosts", Content: []byte("* "), Key: HostPublic},
	}
	if at, listed := r.position(self); listed {
		if port, known := s.port.of(&r.members(self.Task)[at]); known {
			all = append(all, File{Path: serverConfig, Content: server(self, port)})
		}
	}
	return all, nil
}

// client names every member that has a node by its name, its address, and as worker-3. Of several at one address that
// means the first. The servers of all have one key, so that no list of keys has to follow who comes and goes. A server
// that has not begun yet, as when all members start at once, is tried again.
func (s *ssh) client(r *Roster, self *Self) []byte {
	var text strings.Builder
	for i := range r.Tasks {
		t := &r.Tasks[i]
		for k := range t.Members {
			m := &t.Members[k]
			port, known := s.port.of(m)
			if m.Address == "" || !known {
				continue
			}
			fmt.Fprintf(&text, "Host %s-%d %s %s\n    HostName %s\n    Port %d\n", t.Name, m.Index, m.Name, m.Address,
				m.Address, port)
		}
	}
	fmt.Fprintf(&text, "Host *\n    IdentityFile \"%s/ssh/id\"\n    IdentitiesOnly yes\n    StrictHostKeyChecking yes\n    UserKnownHostsFile \"%s/ssh/known_hosts\"\n"+
		"    BatchMode yes\n    ConnectTimeout 5\n    ConnectionAttempts 15\n", noTokens(self.Folder), noTokens(self.Folder))
	return []byte(text.String())
}

// server lets in who has the job's key, and leaves what belongs to the machine's own server alone: its file with a
// process number, and PAM, which would move who logs in out of the control group of the instance. Who may write the
// folders above the keys is not asked (StrictModes): they are the peer's, and those above them, such as /tmp, often are
// not as sshd wants them.
func server(self *Self, port uint16) []byte {
	return fmt.Appendf(nil, "Port %d\nHostKey \"%s/ssh/host_key\"\nAuthorizedKeysFile \"%s/ssh/authorized_keys\"\nAuthenticationMethods publickey\n"+
		"StrictModes no\nUsePAM no\nPidFile none\nSubsystem sftp internal-sftp\n", port, self.Folder, noTokens(self.Folder))
}

// noTokens returns a path as OpenSSH takes it where it looks for tokens such as %h. The names of folders of instances
// have such signs, because they stand for [ and #.
func noTokens(path string) string { return strings.ReplaceAll(path, "%", "%%") }
