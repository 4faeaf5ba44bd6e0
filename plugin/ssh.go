package plugin

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"starling/terms"
)

// ssh lets members log in to each other with a key pair of the job.
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
	if len(self.Keys.Private) == 0 || len(self.Keys.Public) == 0 {
		return nil, errors.New("the job's key pair is missing")
	}
	public := append(bytes.TrimRight(self.Keys.Public, "\n"), '\n')
	return []File{
		{Path: "ssh/authorized_keys", Content: public, Secret: true}, // sshd takes it only so
		{Path: "ssh/config", Content: s.config(r, self)},
		{Path: "ssh/id", Content: self.Keys.Private, Secret: true},
		{Path: "ssh/id.pub", Content: public},
	}, nil
}

// config names every member that has a node by its name and as worker-3. The keys of the servers are not known: who has
// the key of the job is trusted, and its traffic is as safe as the network that leads to the member.
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
			fmt.Fprintf(&text, "Host %s-%d %s\n    HostName %s\n    Port %d\n", t.Name, m.Index, m.Name, m.Address, port)
		}
	}
	fmt.Fprintf(&text, "Host *\n    IdentityFile \"%s/ssh/id\"\n    IdentitiesOnly yes\n    StrictHostKeyChecking no\n    UserKnownHostsFile /dev/null\n",
		self.Folder)
	return []byte(text.String())
}

// OnJobDelete returns the path of the private key.
func (s *ssh) OnJobDelete() []string { return []string{"ssh/id"} }
