package sim

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"

	"starling/cluster"
	"starling/cluster/facts"
	"starling/command"
	"starling/journal"
	"starling/peer/outbox"
	"starling/replica/report"
	"starling/sim/wishes"
	"starling/terms"
	"starling/terms/access"
	"starling/terms/rules"
)

// registrar lets users come and go, lets some of them ask for what they may and may not, removes machines and lets them
// join again by a token, and fills the journal for a while. It draws from a source of its own.
type registrar struct {
	w   *World
	rng *rand.Rand
	// on tells that this run has one. Removals counts the machines that may be removed yet.
	on       bool
	removals int
	// asked numbers what it asked for.
	asked int
	// joined are the keys by which each token was used, usesOf how many may.
	joined map[string]map[access.Key]bool
	usesOf map[string]uint32
}

// One run in registrarOneIn has a registrar.
const registrarOneIn = 3

func newRegistrar(w *World) registrar {
	r := registrar{w: w, rng: rand.New(rand.NewPCG(w.seed, 0xacce5)), joined: map[string]map[access.Key]bool{},
		usesOf: map[string]uint32{}}
	r.on, r.removals = r.rng.IntN(registrarOneIn) == 0, r.rng.IntN(3)
	return r
}

func (r *registrar) between(low, high int) int { return low + r.rng.IntN(high-low+1) }

func (r *registrar) begin() {
	if r.on {
		r.w.after(r.between(100, 2000), r.work)
	}
}

// keyOf is the key of a machine; it gets another each time that it joins by a token.
func (r *registrar) keyOf(m *machine) (key access.Key) {
	if r.on {
		key = sha256.Sum256(fmt.Append(nil, m.label, m.joins))
	}
	return key
}

func (r *registrar) id() string {
	r.asked++
	return fmt.Sprint("registrar ", r.asked)
}

// token is one for any machine, for so long.
func (r *registrar) token(millis int) *command.AddToken {
	t := access.Token{ID: fmt.Sprint("token ", r.asked), Uses: uint32(r.between(1, 2))}
	r.usesOf[t.ID] = t.Uses
	return &command.AddToken{RequestID: r.id(), Token: t, LifeMillis: uint64(millis)}
}

// work does something about who is known, and comes again.
func (r *registrar) work() {
	if r.w.calm {
		return
	}
	user := wishes.Users()[r.rng.IntN(len(wishes.Users()))]
	switch r.rng.IntN(24) {
	case 0, 1, 2:
		r.w.clients.request(&command.AddUser{RequestID: r.id(), Credential: access.Credential{
			Key: sha256.Sum256(fmt.Append(nil, user, r.rng.IntN(2))), Kind: access.OfUser, Name: user,
			Role: access.Role(r.between(0, int(access.Admin))), Until: r.w.now + terms.Time(r.between(-100, 40_000))}})
	case 10:
		r.w.clients.request(&command.RemoveUser{RequestID: r.id(), Name: user})
	case 3:
		one := r.token(r.between(0, 8000))
		r.w.clients.request(one)
		r.w.after(r.between(1000, 5000), func() {
			r.w.clients.request(&command.RemoveToken{RequestID: r.id(), ID: one.Token.ID})
		})
	case 4:
		r.remove()
	case 5:
		r.fill()
	case 6:
		r.replace()
	case 7, 8, 9, 20, 21, 22, 23:
		r.secret()
	default:
		for range 3 {
			r.ask(user)
		}
	}
	r.w.after(r.between(10, 3000), r.work)
}

// ask lets somebody ask for something, in whose name a machine writes it.
func (r *registrar) ask(user string) {
	m := r.w.machines[r.rng.IntN(len(r.w.machines))]
	if m.core == nil || len(r.w.clients.Names) == 0 {
		return
	}
	names, s := r.w.clients.Names, m.core.State()
	one := r.w.clients.Wish(s, names[r.rng.IntN(len(names))])
	if r.rng.IntN(2) == 0 {
		one = r.w.clients.NewJob(s)
	}
	if submit, ok := one.(*command.SubmitJob); ok {
		wishes.Privileged(r.rng, &submit.Spec, s.Rules)
	}
	who := access.Subject{Kind: access.OfUser, Name: user}
	if r.rng.IntN(8) == 0 {
		who.Kind = access.Kind(r.between(0, int(access.OfLocal)))
	}
	if one != nil {
		r.w.clients.request(&command.As{Subject: who, Command: one})
	}
}

// read has tasks of a job read versions of secrets that are there, or of such that Vault has under their names.
func (r *registrar) read(s *cluster.State, spec *terms.Job) {
	all := s.Registry().SecretsOf(spec.Name.Pool())
	for i := range spec.Tasks {
		if s.Rules >= rules.SecretVersions && len(all) > 0 {
			one := &all[r.rng.IntN(len(all))]
			use := terms.SecretUse{Name: one.Name, Version: one.Version}
			if s.Rules >= rules.VaultSecrets && r.rng.IntN(4) == 0 {
				use.Vault = terms.VaultSecret{Mount: "kv", Path: one.Name}
			}
			spec.Tasks[i].Secrets = []terms.SecretUse{use}
			spec.Tasks[i].AskForNodes()
		}
	}
}

// replace lets another authority sign, or ends one.
func (r *registrar) replace() {
	m := r.w.machines[r.rng.IntN(len(r.w.machines))]
	if m.core == nil {
		return
	}
	add := &command.AddAuthority{RequestID: r.id(), Certificate: fmt.Sprint("authority ", r.asked)}
	if all := m.core.State().Registry(); all != nil && len(all.Authorities) > 0 {
		signs := len(all.Authorities) - 1
		add.Against = all.Authorities[signs].ID()
		if r.rng.IntN(2) == 0 {
			end := all.Authorities[r.between(0, signs)].ID()
			r.w.clients.request(&command.RemoveAuthority{RequestID: r.id(), ID: end})
			return
		}
	}
	r.w.clients.request(add)
}

// secret puts a secret, seals it anew, or removes it; now and then with a key that does not count.
func (r *registrar) secret() {
	m := r.w.machines[r.rng.IntN(len(r.w.machines))]
	if m.core == nil {
		return
	}
	s := m.core.State()
	one := access.Secret{Pool: s.Pools()[r.rng.IntN(len(s.Pools()))].Path, Name: fmt.Sprint("secret", r.rng.IntN(2)),
		Version: uint32(r.between(0, 8)), Sealed: fmt.Sprint("sealed ", r.asked)}
	if names := r.w.clients.Names; len(names) > 0 && r.rng.IntN(4) > 0 {
		one.Pool = names[r.rng.IntN(len(names))].Pool() // which may have a job that reads it
	}
	if all := s.Registry(); all != nil && len(all.Authorities) > 0 {
		one.Key = all.Authorities[r.rng.IntN(len(all.Authorities))].ID()
	}
	switch r.rng.IntN(8) {
	case 0:
		remove := &command.RemoveSecret{RequestID: r.id(), Pool: one.Pool, Name: one.Name}
		if s.Rules >= rules.KeptVolumes && r.rng.IntN(3) > 0 {
			remove.Version = one.Version
		}
		r.w.clients.request(remove)
	case 1, 2:
		r.w.clients.request(&command.SealSecret{Secret: one})
	case 3, 4:
		if submit, ok := r.w.clients.NewJob(s).(*command.SubmitJob); ok {
			r.read(s, &submit.Spec)
			r.w.clients.request(submit)
		}
	default:
		for range r.between(1, 5) { // more than are kept, in the end
			r.w.clients.request(&command.PutSecret{RequestID: r.id(), Secret: one})
		}
	}
}

// remove takes a machine out for good.
func (r *registrar) remove() {
	m := r.w.machines[r.rng.IntN(len(r.w.machines))]
	if m.dead && !r.w.hasTwin(m) {
		r.bury(m)
	}
	if r.removals == 0 || m.dead || r.w.living() < 3 {
		return
	}
	r.removals--
	m.tell("is to be removed")
	m.unwanted = true
	r.w.clients.send(&command.RemoveNode{RequestID: r.id(), Node: m.name}, func(got report.Receipt) {
		m.unwanted = got.Refusal.Code == facts.OK
	})
}

// bury takes a machine out of which nothing is left.
func (r *registrar) bury(m *machine) {
	at := slices.IndexFunc(r.w.machines, func(m *machine) bool { return m.up && m.begun && m.core != nil })
	if at >= 0 && r.w.machines[at].core.State().Rules >= rules.EndNow {
		r.w.clients.send(&command.RemoveNode{RequestID: r.id(), Node: m.name, IsOff: true}, func(report.Receipt) {})
	}
}

// fill leaves a machine's peer in the belief that the journal is full, for a while: it asks for a snapshot.
func (r *registrar) fill() {
	m := r.w.machines[r.rng.IntN(len(r.w.machines))]
	if m.core == nil || !m.up {
		return
	}
	m.core.SetRoom(journal.Room{Used: 1 << 20, Quota: 1 << 20})
	m.wake()
	m.later(r.between(100, 5000), func() { m.core.SetRoom(journal.Room{}) })
}

// removed is a machine that knows that it was: it ends what runs there, and then somebody empties it and lets it join
// again, in which case it is begun anew.
func (m *machine) removed() {
	work := m.core.React(m.own())
	if work.Append != nil {
		m.w.fail("%s was removed, and writes", m.label)
	}
	for _, stop := range work.Stop {
		m.stop(stop)
	}
	for _, id := range work.Forget {
		m.forget(id)
	}
	if m.stale {
		m.notice()
	}
	if len(m.tasks) > 0 || m.dead || m.leaving {
		return
	}
	m.leaving = true
	m.tell("is emptied, and is to join again")
	m.w.neglect(m.core.Self())
	m.up, m.disk = false, disk{}
	m.w.disks.Emptied(&m.volumes)
	m.run++
	m.core.Fail(outbox.ErrStopped)
	m.joins++
	m.w.after(m.w.registrar.between(10, 2000), func() { m.w.registrar.admit(m) })
}

// admit lets a machine join by a token, until somebody has taken that.
func (r *registrar) admit(m *machine) {
	one := r.token(60_000)
	r.w.clients.send(one, func(made report.Receipt) {
		key := r.keyOf(m)
		r.w.clients.send(&command.AdmitNode{Node: m.name, Key: key, Token: one.Token.ID}, func(got report.Receipt) {
			switch {
			case got.Refusal.Code == facts.OK:
				r.used(one.Token.ID, key)
				m.leaving, m.unwanted, r.w.movedAt = false, false, r.w.now
				m.boot()
			case m.twin():
				m.dead = true // another machine has the name
			default:
				r.w.after(r.between(10, 2000), func() { r.admit(m) })
			}
		})
	})
}

// used notes that a key was admitted by a token: that may not happen more often than it may be used.
func (r *registrar) used(token string, key access.Key) {
	if r.joined[token] == nil {
		r.joined[token] = map[access.Key]bool{}
	}
	r.joined[token][key] = true
	if len(r.joined[token]) > int(r.usesOf[token]) {
		r.w.fail("%d machines have joined by %s, at most %d may", len(r.joined[token]), token, r.usesOf[token])
	}
}

// twin tells whether another machine has the name, by mistake.
func (m *machine) twin() bool {
	for _, other := range m.w.machines {
		if other != m && other.name == m.name {
			return true
		}
	}
	return false
}
