package engines

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Network is a network of machines on this one: each has a namespace of its own, and all are on a bridge, of which this
// machine is a part. Only root on Linux makes one, with iproute2.
type Network struct {
	name  string // begins the names of all that is made
	third int    // byte of the addresses
	size  int
}

// newNetwork makes a network for so many machines.
func newNetwork(size int) (*Network, error) {
	at := rand.IntN(250)
	n := &Network{name: fmt.Sprintf("st%03d%04x", at, rand.IntN(1<<16)), third: at, size: size}
	lines := []string{"link add " + n.bridge() + " type bridge", "link add " + n.island() + " type bridge",
		"link set " + n.bridge() + " up", "link set " + n.island() + " up",
		fmt.Sprintf("address add %s/24 dev %s", n.Host(), n.bridge())}
	for i := range size {
		lines = append(lines, "netns add "+n.Namespace(i),
			fmt.Sprintf("link add %s type veth peer name eth0 netns %s", n.cable(i), n.Namespace(i)),
			fmt.Sprintf("link set %s master %s up", n.cable(i), n.bridge()))
	}
	if err := ip("", lines...); err != nil {
		return nil, errors.Join(err, n.remove())
	}
	for i := range size {
		err := ip(n.Namespace(i), "link set lo up", "address add "+n.Address(i)+"/24 dev eth0", "link set eth0 up")
		if err != nil {
			return nil, errors.Join(err, n.remove())
		}
	}
	return n, nil
}

func (n *Network) bridge() string     { return n.name + "b" }
func (n *Network) island() string     { return n.name + "i" }
func (n *Network) cable(i int) string { return fmt.Sprintf("%s.%d", n.name, i) }

// Host is where this machine is on the network.
func (n *Network) Host() string { return fmt.Sprintf("10.213.%d.254", n.third) }

// Address is where a machine is.
func (n *Network) Address(i int) string { return fmt.Sprintf("10.213.%d.%d", n.third, i+1) }

// Namespace names the network namespace of a machine.
func (n *Network) Namespace(i int) string { return fmt.Sprintf("%s.%d", n.name, i) }

// Cut divides the network: these machines reach each other, and nobody else.
func (n *Network) Cut(away ...int) error {
	var lines []string
	for i := range n.size {
		side := n.bridge()
		if slices.Contains(away, i) {
			side = n.island()
		}
		lines = append(lines, fmt.Sprintf("link set %s master %s", n.cable(i), side))
	}
	return ip("", lines...)
}

// remove takes all of it away. What runs in a namespace keeps that, and reaches nobody.
func (n *Network) remove() error {
	var errs []error
	for i := range n.size {
		errs = append(errs, ip("", "netns delete "+n.Namespace(i)))
	}
	return errors.Join(append(errs, ip("", "link delete "+n.bridge()), ip("", "link delete "+n.island()))...)
}

// ip lets the program of that name do what the lines say, in a namespace if one is named.
func ip(namespace string, lines ...string) error {
	arguments := []string{"-batch", "-"}
	if namespace != "" {
		arguments = append([]string{"-netns", namespace}, arguments...)
	}
	command := exec.Command("ip", arguments...)
	command.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	if said, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(lines, "; "), err, said)
	}
	return nil
}

// NeedNetwork makes a network that ends with the test, which is skipped where none can be made. On the machine that
// checks everything it fails.
func NeedNetwork(t testing.TB, size int) *Network {
	t.Helper()
	_, err := exec.LookPath("ip")
	switch may := err == nil && os.Geteuid() == 0; {
	case !may && os.Getenv("CI") == "true":
		t.Fatal("network namespaces need root and iproute2: apt-get install iproute2")
	case !may:
		t.Skip("network namespaces need root and iproute2")
	}
	n, err := newNetwork(size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.remove(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// Places are where the machines are.
func (n *Network) Places() []Place {
	var all []Place
	for i := range n.size {
		all = append(all, Place{n.Address(i), n.Namespace(i)})
	}
	return all
}
