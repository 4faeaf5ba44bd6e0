package dns

import (
	"net"
	"net/netip"
	"slices"
	"strings"

	miekg "github.com/miekg/dns"

	"starling/terms/domain"
)

// Directory knows the instances. It is asked from many goroutines at once.
//
// Names come in lower case, since names in DNS have no case. A job, pool or task that is not called so, but differs
// from it in case alone, is meant as well; of several the first in the order of names.
type Directory interface {
	// Lookup returns the instances that a name means, ordered by their numbers, and without a task those of all tasks of
	// the job; found is false if there is no such job, task or instance. One that waits for a node is there and has no
	// address.
	Lookup(name domain.Name) (all []Instance, found bool)
	// Holds tells whether there is a job of this name or a pool of this path.
	Holds(path string) bool
}

// Instance is an instance and where it is found.
type Instance struct {
	Index     uint32
	Addresses []netip.Addr
	Ports     []Port
}

// Port is a TCP port of an instance by its name.
type Port struct {
	Name   string
	Number uint16
}

const (
	// ttlSeconds is how long an answer may be kept, also one that nothing is there. Instances move, and a look-up is
	// cheap. What is told to stop answers for longer than that: see terms.Task.StopDelay.
	ttlSeconds = 1
	// addressesMax and servicesMax bound the records of an answer; a service has its name and addresses beside it. Both
	// fit into 64 KiB.
	addressesMax, servicesMax = 1000, 100
	// datagramBytesMax bounds a datagram whatever the client takes: larger ones get lost on common networks.
	datagramBytesMax = 1232
)

// answer returns the reply to a question, of whatever length.
func (s *Server) answer(question *miekg.Msg) *miekg.Msg {
	reply := new(miekg.Msg).SetReply(question)
	if options := question.IsEdns0(); options != nil {
		reply.SetEdns0(datagramBytesMax, false)
		if options.Version() != 0 {
			reply.Rcode = miekg.RcodeBadVers
			return reply
		}
	}
	q := question.Question[0]
	name, within := s.zone.Within(q.Name)
	transfer := q.Qtype == miekg.TypeAXFR || q.Qtype == miekg.TypeIXFR
	switch {
	case question.Opcode != miekg.OpcodeQuery:
		reply.Rcode = miekg.RcodeNotImplemented
		return reply
	case !within || q.Qclass != miekg.ClassINET || transfer:
		reply.Rcode = miekg.RcodeRefused
		return reply
	}
	reply.Authoritative = true
	found := true
	switch {
	case name == "" && q.Qtype == miekg.TypeSOA:
		reply.Answer = []miekg.RR{s.authority()}
	case name == "":
	case strings.HasPrefix(name, "_"):
		found = s.services(reply, name)
	default:
		found = s.addresses(reply, name)
	}
	if !found {
		reply.Rcode = miekg.RcodeNameError
	}
	if len(reply.Answer) == 0 {
		reply.Ns = []miekg.RR{s.authority()}
	}
	return reply
}

// addresses adds the addresses that are asked for, each once, and tells whether the name is there.
func (s *Server) addresses(reply *miekg.Msg, name string) (found bool) {
	all, found := s.meant(name)
	q, seen := reply.Question[0], map[netip.Addr]bool{}
	for _, i := range turned(all, reply.Id) {
		fresh := slices.DeleteFunc(slices.Clone(i.Addresses), func(a netip.Addr) bool { return seen[a.Unmap()] })
		for _, a := range fresh {
			seen[a.Unmap()] = true
		}
		for _, record := range addressRecords(q.Name, fresh) {
			if kind := record.Header().Rrtype; q.Qtype == kind || q.Qtype == miekg.TypeANY {
				reply.Answer = append(reply.Answer, record)
			}
		}
	}
	reply.Answer = reply.Answer[:min(len(reply.Answer), addressesMax)]
	return found || s.holds(name)
}

// meant returns the instances that a name means: of a task, or else of all tasks of a job.
func (s *Server) meant(name string) (all []Instance, found bool) {
	if meaning, ok := domain.Parse(name); ok {
		if all, found = s.directory.Lookup(meaning); found {
			return all, true
		}
	}
	if job, ok := domain.Path(name); ok {
		return s.directory.Lookup(domain.Name{Job: job})
	}
	return nil, false
}

// services adds what a name such as _http._tcp.worker.train offers, and tells whether it is there.
func (s *Server) services(reply *miekg.Msg, name string) (found bool) {
	service, rest, _ := strings.Cut(name, ".")
	if service == "_tcp" {
		// What lies above the names of services.
		meaning, ok := domain.Parse(rest)
		if !ok {
			return false
		}
		_, found := s.directory.Lookup(meaning)
		return found
	}
	below, isTCP := strings.CutPrefix(rest, "_tcp.")
	meaning, ok := domain.Parse(below)
	if !isTCP || !ok {
		return false
	}
	all, _ := s.directory.Lookup(meaning)
	offered := slices.DeleteFunc(slices.Clone(all), func(i Instance) bool { return i.port(service[1:]) == 0 })
	if len(offered) == 0 {
		return false
	}
	q := reply.Question[0]
	if q.Qtype != miekg.TypeSRV && q.Qtype != miekg.TypeANY {
		return true
	}
	for n, i := range turned(offered, reply.Id) {
		if n == servicesMax {
			break
		}
		target := s.zone.Name(domain.Name{Job: meaning.Job, Task: meaning.Task, One: true, Index: i.Index}) + "."
		reply.Answer = append(reply.Answer,
			&miekg.SRV{Hdr: header(q.Name, miekg.TypeSRV), Port: i.port(service[1:]), Target: target})
		reply.Extra = append(reply.Extra, addressRecords(target, i.Addresses)...)
	}
	return true
}

// port returns the number of a port by its name in whatever case, 0 if there is none or the instance has no address
// yet.
func (i *Instance) port(name string) uint16 {
	for _, p := range i.Ports {
		if strings.EqualFold(p.Name, name) && len(i.Addresses) > 0 {
			return p.Number
		}
	}
	return 0
}

// holds tells whether something lies below a name that is not one of instances.
func (s *Server) holds(name string) bool {
	path, ok := domain.Path(name)
	return ok && s.directory.Holds(string(path))
}

// turned returns the instances in their order, begun at a place that follows from the number.
func turned(all []Instance, number uint16) []Instance {
	if len(all) == 0 {
		return nil
	}
	at := int(number) % len(all)
	return slices.Concat(all[at:], all[:at])
}

// addressRecords returns a record for each address.
func addressRecords(name string, addresses []netip.Addr) []miekg.RR {
	var all []miekg.RR
	for _, a := range addresses {
		switch a = a.Unmap(); {
		case a.Is4():
			all = append(all, &miekg.A{Hdr: header(name, miekg.TypeA), A: net.IP(a.AsSlice())})
		case a.Is6():
			all = append(all, &miekg.AAAA{Hdr: header(name, miekg.TypeAAAA), AAAA: net.IP(a.AsSlice())})
		}
	}
	return all
}

// authority is the record that every zone has; beside an answer without records it says how long that may be kept.
func (s *Server) authority() miekg.RR {
	zone := string(s.zone) + "."
	return &miekg.SOA{
		Hdr: header(zone, miekg.TypeSOA), Ns: "ns." + zone, Mbox: "hostmaster." + zone,
		// Nobody copies the zone, so that its number says nothing.
		Serial: 1, Refresh: ttlSeconds, Retry: ttlSeconds, Expire: ttlSeconds, Minttl: ttlSeconds,
	}
}

func header(name string, kind uint16) miekg.RR_Header {
	return miekg.RR_Header{Name: name, Rrtype: kind, Class: miekg.ClassINET, Ttl: ttlSeconds}
}
