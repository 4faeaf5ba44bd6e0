package plugin

import (
	"fmt"
	"strings"

	"starling/terms"
)

// ssh lets members log in to each other with a key pair of the job, and know each other's servers by another. A member that
// lets others in starts a server of its own, with the port that the plugin is told:
//
//	/usr/sbin/sshd -D -f /dev/null -p PORT -h $STARLING_MEMBERS/ssh/host_key -o AuthorizedKeysFile=$STARLING_MEMBERS/ssh/authorized_keys
type ssh struct{ port portChoice }

func newSSH(a *arguments) Plugin { return &ssh{port: a.port("port", 22)} }

// Name returns ssh.
func (*ssh) Name() string { return "ssh" }

// OnJobAdd refuses a port that some task does not have.
func (s *ssh) OnJobAdd(job *terms.Job) error {
	for i := range job.Tasks {
		if err := s.port.missing(job, job.Tasks[i].Name); err != nil {
			return err
		}
	}
	return nil
}

// OnInstanceCreate returns the keys, and where the client finds its configuration.
func (s *ssh) OnInstanceCreate(r *Roster, self *Self) (Outfit, error) {
	files, err := s.OnJobUpdate(r, self)
	return Outfit{Env: []terms.EnvVar{{Name: "STARLING_SSH_CONFIG", Value: self.Folder + "/ssh/config"}}, Files: files}, err
}

// OnJobUpdate returns the keys, for the client and for the server, and the configuration of the client.
func (s *ssh) OnJobUpdate(r *Roster, self *Self) ([]File, error) {
	return []File{
		{Path: "ssh/authorized_keys", Key: LoginPublic, Secret: true}, // sshd takes it only so
		{Path: "ssh/config", Content: s.config(r, self)},
		{Path: "ssh/host_key", Key: HostPrivate, Secret: true},
		{Path: "ssh/id", Key: LoginPrivate, Secret: true},
		{Path: "ssh/id.pub", Key: LoginPublic},
		{Path: "ssh/known_hosts", Content: []byte("* "), Key: HostPublic},
	}, nil
}

// config names every member that has a node by its name, its address, and as worker-3. Of several at one address that means the
// first. The servers of all have one key, so that no list of
// keys has to follow who comes and goes.
func (s *ssh) config(r *Roster, self *Self) []byte {
	var text strings.Builder
	for i := range r.Tasks {
		t := &r.Tasks[i]
		for k := range t.Members {
			m := &t.Members[k]
			port, known := s.port.of(m)
			if m.Address == "" || !known {
				continue
			}
			fmt.Fprintf(&text, "Host %s-%d %s %s\n    HostName %s\n    Port %d\n", t.Name, m.Index, m.Name, m.Address, m.Address, port)
		}
	}
	fmt.Fprintf(&text, "Host *\n    IdentityFile \"%s/ssh/id\"\n    IdentitiesOnly yes\n    StrictHostKeyChecking yes\n    UserKnownHostsFile \"%s/ssh/known_hosts\"\n",
		self.Folder, self.Folder)
	return []byte(text.String())
}

// OnJobDelete returns the paths of the private keys.
func (s *ssh) OnJobDelete() []string { return []string{"ssh/host_key", "ssh/id"} }
