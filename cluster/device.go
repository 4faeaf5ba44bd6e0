package cluster

import "starling/terms"

// DeviceTimes returns for how many instances with the request the node has devices left, at most most.
func (n *Node) DeviceTimes(q *terms.DeviceRequest, most uint32) uint32 {
	offer := n.DeviceOf(q.Kind)
	if !q.Takes(offer.Model) {
		return 0
	}
	unused, shares, rest := offer.Count, uint32(0), int64(0)
	n.EachDeviceInUse(q.Kind, func(number uint32, used terms.Millidevices) {
		if number < offer.Count || q.Kind == terms.VirtualPeers.String() { // of these only the number of them counts
			unused -= min(unused, 1)
			shares += uint32((terms.WholeDevice - used) / q.Amount)
			rest += int64(terms.WholeDevice - used)
		}
	})
	if k, ok := terms.DeviceKind(q.Kind); ok {
		// What is kept for others is taken from the devices that nobody has, and then from what is left of the others.
		whole := min(unused, uint32((n.claimed[k]+int64(terms.WholeDevice)-1)/int64(terms.WholeDevice)))
		rest -= max(n.claimed[k]-int64(whole)*int64(terms.WholeDevice), 0)
		unused, shares = unused-whole, min(shares, uint32(max(rest, 0)/int64(q.Amount)))
	}
	if q.Share() {
		return min(most, shares+unused*uint32(terms.WholeDevice/q.Amount))
	}
	return min(most, unused/uint32(q.Amount/terms.WholeDevice))
}
