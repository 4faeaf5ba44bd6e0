package host

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"starling/cluster"
	"starling/cluster/workload"
	"starling/dns"
	"starling/plugin/roster"
	"starling/terms"
	"starling/terms/domain"
)

// ServeNames answers the names of instances over DNS at an address until the host stops. Whoever reaches it learns
// where everything runs, for DNS knows no one.
func (h *Host) ServeNames(ctx context.Context, address string) error {
	at, err := netip.ParseAddrPort(strings.Replace(address, "localhost:", "127.0.0.1:", 1))
	if err != nil {
		return fmt.Errorf("%w: %q is not an IP:PORT such as 127.0.0.1:5300", ErrAddress, address)
	}
	server, err := dns.NewServer(domain.DefaultZone, directory{h.State})
	if err != nil {
		return err
	}
	packets, streams, err := dns.Listen(ctx, at.String())
	if err != nil {
		return fmt.Errorf("answer names: %w", err)
	}
	h.names = streams.Addr()
	ctx, cancel := context.WithCancel(ctx)
	h.serving.Go(func() {
		<-h.Done()
		cancel()
	})
	h.serving.Go(func() {
		if err := server.Serve(ctx, packets, streams); err != nil {
			h.config.Log.Error("names are not answered any more", "error", err)
		}
	})
	return nil
}

// Names is where names are answered, nil if they are not.
func (h *Host) Names() net.Addr { return h.names }

// lookupMax bounds the wait for the value; the peer answers at once unless it is about to stop.
const lookupMax = time.Second

// directory knows the instances from the value of a peer.
type directory struct {
	state func(ctx context.Context, least terms.Index) (*cluster.State, error)
}

// Lookup returns the instances that a name means.
func (d directory) Lookup(name domain.Name) (all []dns.Instance, found bool) {
	d.read(func(s *cluster.State) {
		j := jobCalled(s, name.Job)
		if j == nil {
			return
		}
		called := taskCalled(j, name.Task)
		for task := range j.Tasks {
			if name.Task != "" && task != called {
				continue
			}
			for _, m := range roster.Members(s, j, task) {
				if !name.One || m.Index == name.Index {
					all = append(all, instance(&m))
				}
			}
		}
		found = len(all) > 0 || !name.One && (name.Task == "" || called >= 0)
	})
	return all, found
}

// Holds tells whether there is a job of this name or a pool of this path.
func (d directory) Holds(path string) (held bool) {
	d.read(func(s *cluster.State) {
		for _, p := range s.Pools() {
			held = held || strings.EqualFold(string(p.Path), path)
		}
		held = held || jobCalled(s, terms.JobName(path)) != nil
	})
	return held
}

func (d directory) read(with func(*cluster.State)) {
	ctx, cancel := context.WithTimeout(context.Background(), lookupMax)
	defer cancel()
	if s, err := d.state(ctx, 0); err == nil {
		with(s)
	}
}

// jobCalled returns the job of a name, or else the first whose name differs from it in case alone.
func jobCalled(s *cluster.State, name terms.JobName) (found *workload.Job) {
	if found = s.JobOf(name); found != nil {
		return found
	}
	s.EachJobByName("", func(j *workload.Job) bool {
		if strings.EqualFold(string(j.Name()), string(name)) {
			found = j
		}
		return found == nil
	})
	return found
}

// taskCalled returns the number of the task of a name, or else of the first whose name differs from it in case alone;
// -1 if there is none.
func taskCalled(j *workload.Job, name terms.TaskName) int {
	number := j.TaskIndex(name)
	for i := range j.Tasks {
		if number < 0 && strings.EqualFold(string(j.Tasks[i].Name), string(name)) {
			number = i
		}
	}
	return number
}

// instance says where a member is found. Nodes that give no address but a name are not found over DNS.
func instance(m *roster.Member) dns.Instance {
	one := dns.Instance{Index: m.Index}
	if at, err := netip.ParseAddr(m.Address); err == nil {
		one.Addresses = []netip.Addr{at}
	}
	for _, p := range m.Ports {
		one.Ports = append(one.Ports, dns.Port{Name: p.Name, Number: p.Number})
	}
	return one
}
