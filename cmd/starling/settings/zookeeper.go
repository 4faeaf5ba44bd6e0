package settings

import (
	"fmt"
	"os"
	"strings"

	"starling/journal/zookeeper"
)

func setZooKeeper(c *Agent, texts []string) (err error) {
	c.ZooKeeper.Servers, c.ZooKeeper.Chroot, err = zookeeper.Parse(texts[0])
	return err
}

func setZooKeeperAuth(c *Agent, texts []string) error {
	data, err := os.ReadFile(texts[0])
	if err != nil {
		return err
	}
	c.ZooKeeper.Auth = strings.TrimSpace(string(data))
	user, password, _ := strings.Cut(c.ZooKeeper.Auth, ":")
	if user == "" || password == "" || strings.Contains(password, "\n") {
		return fmt.Errorf("%s must hold one line USER:PASSWORD", texts[0])
	}
	return nil
}

// completeZooKeeper reads what the files hold, and lists what cannot be meant together with it.
func (c *Agent) completeZooKeeper() []error {
	var problems []error
	switch z := &c.ZooKeeper; {
	case len(z.Servers) == 0 && (z.Auth != "" || c.ZooKeeperFiles != zookeeper.Files{}):
		problems = append(problems, fmt.Errorf("zookeeper: nothing says where it is: give zookeeper.servers"))
	case len(z.Servers) > 0 && (len(c.Etcd.Endpoints) > 0 || c.Etcd.Listen != ""):
		problems = append(problems, fmt.Errorf("zookeeper, etcd: one of them keeps the journal: "+
			"drop zookeeper.servers, or etcd.listen and etcd.endpoints"))
	}
	if c.ZooKeeperFiles != (zookeeper.Files{}) {
		secure, err := c.ZooKeeperFiles.Load()
		if err != nil {
			problems = append(problems, fmt.Errorf("zookeeper: %w", err))
		}
		c.ZooKeeper.TLS = secure
	}
	return problems
}
