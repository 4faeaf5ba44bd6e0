package sim

import (
	"fmt"
	"io"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strconv"

	"starling/peer"
	"starling/sim/model"
	"starling/sim/promises"
	"starling/sim/wishes"
	"starling/terms"
	"starling/terms/rules"
)

// Options choose a run.
type Options struct {
	// Machines is how many there are; 0 lets the seed choose 3 to 9.
	Machines int
	// TroubleMillis is for how long faults happen; 0 means 20 seconds.
	TroubleMillis int
	// limits are those of the cluster; nil lets the seed draw them.
	limits *terms.Limits
	trace  io.Writer
}

// Report tells what a run did.
type Report struct {
	Seed     uint64
	Machines int
	Entries  int
	Jobs     int
	// Joins counts the peers that became members, JoinEntries the entries that were about joining.
	Joins, JoinEntries int
	// Events counts what happened, Lasted is the time from the first to the last of it.
	Events int
	Lasted terms.Time
	// RingRest and Rest are how long it took, when the faults had ended, until membership changed no more, and until
	// nothing was written any more.
	RingRest, Rest terms.Time
	// Fired counts each fault.
	Fired [faultCount]int
	// Mixed tells that it was one with mixed versions; Halted counts the old programs that stopped where they met newer
	// rules, RefusedRaises the requests to raise the rules that came too early.
	Mixed                 bool
	Halted, RefusedRaises int
	// Snapshots counts the snapshots that were confirmed, Restores how often a machine went on from one.
	Snapshots, Restores int
	// Failure is nil for a clean run.
	Failure error
}

// Run plays one seed.
func Run(seed uint64, o Options) (report Report) {
	w := newWorld(seed, o)
	defer func() {
		if r := recover(); r != nil {
			w.fail("panic: %v\n%s", r, debug.Stack())
			report = w.report()
		}
	}()
	w.draw()
	w.tell("", "limits %+v", w.limits)
	machines := o.Machines
	if machines == 0 {
		machines = w.between(3, 9)
	}
	for i := range machines {
		w.after(w.between(0, 300), w.addMachine(i).boot)
	}
	trouble := o.TroubleMillis
	if trouble == 0 {
		trouble = 20_000
	}
	w.versions.begin(trouble)
	w.registrar.begin()
	if rng := rand.New(rand.NewPCG(seed, 0x30e5)); rng.IntN(3) == 0 {
		w.moves(rng)
	}
	w.after(w.between(0, 500), w.trouble)
	w.after(w.between(0, 500), w.clients.work)
	w.run(epoch + terms.Time(trouble))
	w.calmDown()
	w.run(w.now + 24*60*60*1000)
	if w.failure == nil {
		w.checkRest()
		w.versions.checkRest()
	}
	return w.report()
}

func newWorld(seed uint64, o Options) *World {
	limits := wishes.Limits(rand.New(rand.NewPCG(seed, 0x11a17)))
	if o.limits != nil {
		limits = *o.limits
	}
	w := &World{
		seed: seed, rng: rand.New(rand.NewPCG(seed, 0x5eed)), now: epoch, limits: limits, model: model.New(limits),
		trace: o.trace, startsMax: peer.StartsMax,
		landed: map[recordName]bool{}, pulses: map[terms.PeerID]*pulse{}, forged: map[terms.PeerID]uint64{},
	}
	w.clients, w.versions, w.promises = newClients(w), newVersions(w), promises.New(w.fail, w.model.Told)
	w.disks = promises.NewDisks(w.fail)
	if rng := rand.New(rand.NewPCG(seed, 0x57a7)); rng.IntN(4) == 0 {
		w.startsMax = 1 + rng.IntN(3)
	}
	w.snapshots, w.registrar = newSnapshots(w), newRegistrar(w)
	return w
}

func (w *World) addMachine(i int) *machine {
	name := "m" + strconv.Itoa(i)
	m := &machine{w: w, name: terms.NodeName(name), label: name, skew: terms.Time(w.between(-100, 100)),
		volumes: promises.Disk{Machine: name, Node: terms.NodeName(name)},
		program: w.versions.program()}
	m.offer = w.drawOffer(m)
	w.machines = append(w.machines, m)
	return m
}

// drawOffer draws what a machine gives.
func (w *World) drawOffer(m *machine) terms.Offer {
	size := w.between(1, 8)
	offer := terms.Offer{
		Capacity:  terms.Resources{int64(size) * 1000, int64(w.between(1, 16)) << 28, 1 << 40},
		PortFirst: wishes.PortFirst, PortLast: wishes.PortLast, Address: string(m.name) + ":1",
		Rules: max(m.program, rules.Released),
		Attributes: []terms.EnvVar{{Name: "rack", Value: "r" + strconv.Itoa(w.rng.IntN(3))},
			{Name: "size", Value: strconv.Itoa(size)}},
	}
	if size > 3 { // no draw of its own: other seeds stay what they were
		offer.Attributes = slices.Insert(offer.Attributes, 0,
			terms.EnvVar{Name: terms.HostPathAttribute + "data", Value: "/data"})
	}
	if size > 1 {
		offer.Attributes = append(offer.Attributes, terms.EnvVar{Name: terms.VaultAttribute, Value: "https://vault"})
	}
	if w.rng.IntN(8) == 0 {
		offer.Attributes = slices.Insert(offer.Attributes, 0, terms.EnvVar{Name: terms.ExclusiveAttribute, Value: "db"})
	}
	if w.rng.IntN(2) == 0 {
		offer.Attributes = slices.Insert(offer.Attributes, 0, terms.EnvVar{Name: "disk", Value: "ssd"})
	}
	if size%2 == 0 { // no draw of its own
		offer.Attributes = slices.Insert(offer.Attributes, 0,
			terms.EnvVar{Name: terms.ContainersAttribute, Value: terms.ContainersYes})
	}
	if w.rng.IntN(3) == 0 {
		models := []string{"", "A100", "T4"}
		offer.Devices = []terms.DeviceOffer{{Kind: "gpu", Model: models[w.rng.IntN(len(models))],
			Count: uint32(w.between(1, 3))}}
	}
	if w.rng.IntN(4) > 0 {
		offer.Devices = append(offer.Devices,
			terms.DeviceOffer{Kind: terms.VirtualPeers.String(), Count: uint32(w.between(1, size))})
	}
	if size != 5 { // no draw of its own
		offer.Devices = append(offer.Devices, terms.DeviceOffer{Kind: terms.Slack, Count: uint32(size % 4)})
	}
	return offer
}

// takeSlack leaves a machine half of its slack: tasks use more of what they were promised.
func (m *machine) takeSlack() {
	m.offer.Devices = slices.Clone(m.offer.Devices)
	for i := range m.offer.Devices {
		if d := &m.offer.Devices[i]; d.Kind == terms.Slack {
			d.Count /= 2
		}
	}
	m.wake()
}

// calmDown ends all faults: what is cut is healed, and who is down and not dead comes back.
func (w *World) calmDown() {
	w.calm, w.calmAt = true, w.now
	w.tell("", "no faults from now on")
	for _, m := range w.machines {
		m.slow = false
		m.heal()
		m.takeSlack()
		if !m.up {
			m.boot()
		}
	}
}

func (w *World) report() Report {
	r := Report{
		Seed: w.seed, Machines: len(w.machines), Entries: len(w.records), Jobs: len(w.clients.Names), Joins: w.joins,
		JoinEntries: w.joinEntries,
		Events:      w.events, Lasted: w.now - epoch, Fired: w.fired, Failure: w.failure,
		Mixed: w.versions.on, Halted: w.versions.halted, RefusedRaises: w.versions.refused,
		Snapshots: w.snapshots.confirmed, Restores: w.snapshots.restores,
	}
	if w.calm {
		r.RingRest, r.Rest = max(0, w.ringRest()), max(0, w.landedAt-w.calmAt)
	}
	if r.Failure != nil {
		r.Failure = fmt.Errorf("seed %d: %w\nreplay it with: starling sim --trace --seeds %d", w.seed, w.failure, w.seed)
	}
	return r
}
