package pool

import (
	"slices"
	"strings"
	"unicode/utf8"

	"starling/terms"
)

// Limits of a pool.
const (
	// ShareMax bounds a share.
	ShareMax = 1_000_000
	// OwnersMax bounds the users of a pool with one role, OwnerBytesMax the name of one.
	OwnersMax     = 64
	OwnerBytesMax = 256
)

// spec checks a pool by itself.
func (p *problems) spec(s *terms.Pool) {
	if reason := s.Path.Problem(); reason != "" {
		p.add("", "%s", reason)
	}
	p.quotas(&s.Quotas)
	if s.ControllerLimit > 100 && s.ControllerLimit != terms.NoPercent {
		p.add("controller_limit", "must be 0 to 100, is %d", s.ControllerLimit)
	}
	if s.SlackLimit > 100 {
		p.add("slack_limit", "must be 0 to 100, is %d", s.SlackLimit)
	}
	if s.JobScheduler > terms.JobPercentage {
		p.add("job_scheduler", "must be one of %s", strings.Join(terms.JobSchedulers(), ", "))
	}
	if s.PreemptionDelayMillis > terms.DelayMillisMax {
		p.add("preemption_delay", "must be at most 24 h, is %d ms", s.PreemptionDelayMillis)
	}
	if s.SpecBytes < 0 || s.SpecBytes > terms.BytesMax {
		p.add("spec_bytes", "must be 1 byte to 2^60, is %d: leave it out for %d", s.SpecBytes, terms.SpecBytesDefault)
	}
	p.users("owners", s.Owners)
	p.users("operators", s.Operators)
	p.users("submitters", s.Submitters)
	p.users("viewers", s.Viewers)
	p.users("run_as", s.RunAs)
	p.names("host_paths", s.HostPaths)
	p.names("devices", s.DeviceKinds)
	for _, name := range s.Capabilities {
		if !slices.Contains(terms.Capabilities(), name) {
			p.add("capabilities", `must be capabilities of Linux without their CAP_, as in "NET_ADMIN", not %q`, name)
		}
	}
	if len(s.Capabilities) > terms.CapabilitiesMax {
		p.add("capabilities", "must have at most %d names, has %d", terms.CapabilitiesMax, len(s.Capabilities))
	}
}

func (p *problems) quotas(all *[terms.AmountCount]terms.Quota) {
	for k, q := range all {
		k := terms.Kind(k)
		if q.Reservation < 0 || q.Reservation > terms.BytesMax {
			p.quota(k, "reservation", "must be 0 to 2^60, is %d", q.Reservation)
		}
		if q.Limit < q.Reservation {
			p.quota(k, "limit", "must be at least the reservation, %s, is %s", k.Text(q.Reservation), k.Text(q.Limit))
		}
		if q.Limit > terms.BytesMax && q.Limit != terms.Unlimited {
			p.quota(k, "limit", "must be at most 2^60, is %d: leave it out for no limit", q.Limit)
		}
		if q.Share < 0 || q.Share > ShareMax {
			p.quota(k, "share", "must be 0 to %d, is %d", ShareMax, q.Share)
		}
	}
}

// names checks those of host paths, or of kinds of devices.
func (p *problems) names(field string, names []string) {
	if len(names) > OwnersMax {
		p.add(field, "must have at most %d names, has %d", OwnersMax, len(names))
	}
	for _, name := range names {
		if reason := terms.NameProblem(name, false); reason != "" {
			p.add(field, "%q %s", name, reason)
		}
	}
}

func (p *problems) users(field string, names []string) {
	if len(names) > OwnersMax {
		p.add(field, "must have at most %d names, has %d", OwnersMax, len(names))
	}
	for _, name := range names {
		if name == "" || len(name) > OwnerBytesMax || strings.ContainsRune(name, 0) || !utf8.ValidString(name) {
			p.add(field, "a user's name must be 1 to %d bytes of UTF-8 without zero bytes, is %q", OwnerBytesMax, name)
		}
	}
}
