package host

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"starling/api/client"
	"starling/cluster/facts"
	"starling/driver/device"
	"starling/peer/slack"
	"starling/replica/reaction"
	"starling/terms"
)

// Capacity returns what this machine has to give: its processors and its memory, or what the control group of
// this process leaves of them, and the free disk where the folder is.
func Capacity(folder string) (terms.Resources, error) {
	memory, err := memoryBytes()
	if err != nil {
		return terms.Resources{}, fmt.Errorf("find out how much memory there is: %w", err)
	}
	var disk unix.Statfs_t
	if err := unix.Statfs(folder, &disk); err != nil {
		return terms.Resources{}, fmt.Errorf("find out how much disk is free at %s: %w", folder, err)
	}
	return terms.Resources{
		terms.CPU:    int64(runtime.GOMAXPROCS(0)) * 1000, // the Go runtime knows about control groups
		terms.Memory: min(memory, memoryLimit()),
		terms.Disk:   int64(disk.Bavail) * int64(disk.Bsize),
	}, nil
}

// memoryLimit is what the control group of this process may use, terms.BytesMax if nothing bounds it.
func memoryLimit() int64 {
	for _, file := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && limit > 0 {
			return min(limit, terms.BytesMax)
		}
	}
	return terms.BytesMax
}

// Attributes is what constraints may ask for on every machine.
func Attributes(node terms.NodeName) map[string]string {
	return map[string]string{
		"os": runtime.GOOS, "arch": runtime.GOARCH, "cores": strconv.Itoa(runtime.GOMAXPROCS(0)), "node": string(node),
	}
}

// gpuAskMax is how long a machine's own program may take to say how much memory GPUs have.
const gpuAskMax = 10 * time.Second

// OfferGPUs adds the GPUs of this machine, with their model if all are of one, and the memory of the smallest as an
// attribute, unless the offer says already how many there are.
func OfferGPUs(offer *terms.Offer, found []device.GPU) {
	at, told := placeOf(offer.Devices, device.Kind)
	if told || len(found) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), gpuAskMax)
	defer cancel()
	device.AskMemory(ctx, found)
	model, memory := modelName(found[0].Model), found[0].MemoryBytes
	for _, gpu := range found {
		if modelName(gpu.Model) != model {
			model = ""
		}
		memory = min(memory, gpu.MemoryBytes)
	}
	offer.Devices = slices.Insert(slices.Clone(offer.Devices), at,
		terms.DeviceOffer{Kind: device.Kind, Model: model, Count: uint32(len(found))})
	if memory > 0 {
		setAttribute(offer, "gpu_memory", strconv.FormatInt(memory, 10))
	}
}

// modelName makes a name of what a vendor calls a GPU: "H100-80GB-HBM3" of "NVIDIA H100 80GB HBM3".
func modelName(text string) string {
	words := strings.FieldsFunc(text, func(c rune) bool { return terms.NameProblem("x"+string(c), false) != "" })
	if len(words) > 1 && (words[0] == "NVIDIA" || words[0] == "AMD") {
		words = words[1:]
	}
	name := strings.Join(words, "-")
	return strings.TrimLeft(name[:min(len(name), terms.NameBytesMax)], "-_")
}

// WithPeers returns the devices with as many virtual peers as there are whole processors, at least one, if they do not
// say how many.
func WithPeers(devices []terms.DeviceOffer, capacity terms.Resources) []terms.DeviceOffer {
	kind := terms.VirtualPeers.String()
	at, told := placeOf(devices, kind)
	if told {
		return devices
	}
	count := min(max(capacity[terms.CPU]/1000, 1), terms.DevicesMax)
	return slices.Insert(slices.Clone(devices), at, terms.DeviceOffer{Kind: kind, Count: uint32(count)})
}

// placeOf returns where devices of a kind stand among others, or belong.
func placeOf(devices []terms.DeviceOffer, kind string) (at int, has bool) {
	return slices.BinarySearchFunc(devices, kind,
		func(d terms.DeviceOffer, kind string) int { return cmp.Compare(d.Kind, kind) })
}

// setDevice puts devices into their place in an offer, or replaces those of the kind.
func setDevice(offer *terms.Offer, device terms.DeviceOffer) {
	at, has := placeOf(offer.Devices, device.Kind)
	if offer.Devices = slices.Clone(offer.Devices); !has {
		offer.Devices = slices.Insert(offer.Devices, at, device)
	}
	offer.Devices[at] = device
}

// offer has the node offer something else from now on, and tells whether the change made a difference.
func (h *Host) offer(ctx context.Context, change func(*terms.Offer)) bool {
	h.offering.Lock()
	defer h.offering.Unlock()
	next := h.config.Offer
	if change(&next); next.Equal(&h.config.Offer) {
		return false
	}
	h.config.Offer.Attributes, h.config.Offer.Devices = next.Attributes, next.Devices
	h.Peer.Offer(ctx, next)
	return true
}

// offerSlack offers what instances leave alone of what they were promised, if that is wanted, until ctx ends.
func (h *Host) offerSlack(ctx context.Context) {
	if h.config.Slack == 0 {
		return
	}
	meter, ticker := slack.Meter{Window: h.config.Slack}, time.NewTicker(slack.Every(h.config.Slack))
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		state, err := h.Peer.State(ctx, 0)
		if err != nil {
			continue // it has ended, or is about to
		}
		promised := map[string]int64{}
		for _, a := range reaction.ViewOf(state, h.Peer.Self()) {
			if a.Phase == facts.Running && a.Spec.Slack() == 0 {
				promised[a.ID.String()] = a.Spec.Resources[terms.CPU]
			}
		}
		used, err := h.driver.Usage(slices.Collect(maps.Keys(promised)))
		if err != nil {
			h.config.Log.Warn("what instances leave alone of their processors is not known, and not offered", "error", err)
			return
		}
		cores, known := meter.Read(promised, used)
		if !known || !h.offer(ctx,
			func(o *terms.Offer) { setDevice(o, terms.DeviceOffer{Kind: terms.Slack, Count: cores}) }) {
			continue // what was offered before an upgrade is, until it is known anew: who has it goes on
		}
		if err := slack.Remember(h.config.slackFile(), cores); err != nil {
			h.config.Log.Warn("how much slack is offered could not be noted: after a restart it is none at first", "error", err)
		}
	}
}

func (c *Config) slackFile() string { return filepath.Join(c.Folder, "slack") }

// compareAgain is how often the machine's clock is compared with those of others.
const compareAgain = 10 * time.Second

// keepTime compares the clock with those of other machines again and again.
func (h *Host) keepTime(ctx context.Context) {
	for told := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(compareAgain):
		}
		h.compareClocks(ctx, h.others(ctx))
		switch ahead := h.wall.Ahead(); {
		case ahead > 0 && !told:
			h.config.Log.Error(clockAhead(ahead))
			told = true
		case ahead == 0 && told:
			h.config.Log.Info("the clock of this machine is right again")
			told = false
		}
	}
}

// compareClocks compares the clock with those of the machines at the addresses, or of those that are remembered: while
// the journal is read, or does not answer, the value may know none. Where there are some and none answers, what was
// known stays.
func (h *Host) compareClocks(ctx context.Context, addresses []string) {
	if len(addresses) == 0 {
		addresses = h.config.Keys.Known()
	}
	rand.Shuffle(len(addresses), func(i, j int) { addresses[i], addresses[j] = addresses[j], addresses[i] })
	if others := client.Clocks(ctx, h.asks, addresses); len(others) > 0 || len(addresses) == 0 {
		h.wall.Compare(others)
	}
}

// clockAhead says that the clock is wrong.
func clockAhead(by time.Duration) string {
	return fmt.Sprintf("the clock of this machine is %v ahead of those of the others, whose time its entries tell: set it right",
		by.Round(time.Second))
}
