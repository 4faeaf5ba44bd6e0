// Package division tells which nodes have which value of an attribute, page by page.
package division

import (
	"slices"

	"starling/cluster/facts"
	"starling/cluster/vector"
)

// Division tells which nodes have which value of an attribute. It is never changed.
type Division struct {
	Attribute string
	// Values are ordered; nodes without the attribute have "".
	Values []string
	// Pages are, for each value, the nodes that have it.
	Pages [][]Page
}

// Page is a set of nodes of one page of the value.
type Page struct {
	Page  int
	Nodes uint64
}

// Add adds a node, which must be behind those added before.
func (d *Division) Add(value string, n facts.NodeIndex) {
	at, found := slices.BinarySearch(d.Values, value)
	if !found {
		d.Values, d.Pages = slices.Insert(d.Values, at, value), slices.Insert(d.Pages, at, nil)
	}
	pages, page, bit := &d.Pages[at], int(n)/vector.PageRows, uint64(1)<<(n%vector.PageRows)
	if last := len(*pages) - 1; last >= 0 && (*pages)[last].Page == page {
		(*pages)[last].Nodes |= bit
		return
	}
	*pages = append(*pages, Page{Page: page, Nodes: bit})
}
