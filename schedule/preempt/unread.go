package preempt

import (
	"slices"

	"starling/cluster/facts"
	"starling/terms"
)

// Unread are nodes that the input does not have yet, in pages, with bounds of what is there. A page is read when
// something on it may be cheaper than all that was read, so that a choice costs what it takes and not what there is.
type Unread interface {
	// Pages returns the numbers of the pages.
	Pages() []int
	// PageOf returns the number of the page of a node.
	PageOf(facts.NodeIndex) int
	// EachLeast visits, for each pool, class and priority on a page, one before which none of them there goes: its
	// stage, its start and its slot count.
	EachLeast(page int, visit func(*Victim))
	// EachFitting visits nodes of a page, among them all that have so much left.
	EachFitting(page int, need *terms.Amounts, visit func(*Node))
	// Read adds to the input the nodes of a page, the victims there, and all others of their gangs.
	Read(page int, in *Input)
}

// unread is a page with a bound of what an instance costs there if a victim of a pool goes, by a rule.
type unread struct {
	number int
	bound  cost
	pool   int
	rule   Rule
}

// list are pages in the order of their bounds. Before first all were read, before live the others come into question no
// more: of their pools nothing is left to go.
type list struct {
	pages       []unread
	first, live int
}

// awaited is the site of a victim whose node is on a page that was not read.
const awaited = -2

// readBounds orders the pages that were not read by what may go there: any, or what makes room in the pool.
func (c *choice) readBounds() {
	if c.in.Unread == nil {
		return
	}
	for _, number := range c.in.Unread.Pages() {
		c.in.Unread.EachLeast(number, func(v *Victim) {
			v.Need, v.Gang = ofAll(), NoGang
			page := unread{number, cost{valueOf(v), 1, v.Slot}, v.Pool, c.rule(v)}
			if page.rule != 0 {
				c.lists[anyone].pages = append(c.lists[anyone].pages, page)
			}
			if page.rule != 0 && c.opens(v, page.rule) {
				c.lists[onlyOwn].pages = append(c.lists[onlyOwn].pages, page)
			}
		})
		c.lists[all].pages = append(c.lists[all].pages, unread{number: number})
		c.isUnread = append(c.isUnread, make([]bool, max(number+1-len(c.isUnread), 0))...)
		c.isUnread[number] = true
	}
	for _, l := range c.lists[:all] {
		slices.SortStableFunc(l.pages, func(a, b unread) int { return a.bound.order(&b.bound) })
	}
}

// ofAll has something of everything.
func ofAll() (a terms.Amounts) {
	for k := range a {
		a[k] = 1
	}
	return a
}

// next returns the page to read next of a list, nil if all were read.
func (c *choice) next(which int) *unread {
	l := &c.lists[which]
	for l.first < len(l.pages) && !c.isUnread[l.pages[l.first].number] {
		l.first++
	}
	return l.at(l.first)
}

// cheapestUnread returns the page of a list where a victim may go for the least, nil for none.
func (c *choice) cheapestUnread(which int) *unread {
	l, each := &c.lists[which], ofAll()
	for l.live = max(l.live, l.first); l.live < len(l.pages); l.live++ {
		page := &l.pages[l.live]
		if c.isUnread[page.number] && (page.rule != ByEntitlement || c.exceeds(&c.over[page.pool], &each)) {
			break
		}
	}
	return l.at(l.live)
}

func (l *list) at(i int) *unread {
	if i == len(l.pages) {
		return nil
	}
	return &l.pages[i]
}

// readNext reads the next page of a list, and returns how many instances of the present want its nodes can run at most;
// ok is false if all were read.
func (c *choice) readNext(which int) (most int64, ok bool) {
	if page := c.next(which); page != nil {
		return c.read(page.number), true
	}
	return 0, false
}

// readAll reads all pages of a list.
func (c *choice) readAll(which int) {
	for _, more := c.readNext(which); more; _, more = c.readNext(which) {
	}
}

// readFitting reads the pages with nodes that can run an instance of a want as they are.
func (c *choice) readFitting(want int) {
	w := &c.in.Wants[want]
	for _, page := range c.lists[all].pages {
		found := false
		if c.isUnread[page.number] {
			c.in.Unread.EachFitting(page.number, &w.Need, func(n *Node) {
				found = found || fits(&w.Need, &n.Free) && (w.Most == nil || w.Most(n.Index) > 0)
			})
		}
		if found {
			c.read(page.number)
		}
	}
}

// read adds a page to what there is to choose from.
func (c *choice) read(number int) (most int64) {
	nodes, victims := len(c.in.Nodes), len(c.in.Victims)
	c.in.Unread.Read(number, c.in)
	c.isUnread[number] = false
	c.add(nodes, victims)
	for at := nodes; at < len(c.nodes); at++ {
		if e, count := c.entryOf(int32(at), c.want, false); count > 0 {
			c.push(&c.queues[anyone], e)
			most += count
		}
		if e, count := c.entryOf(int32(at), c.want, true); c.split && count > 0 {
			c.push(&c.queues[onlyOwn], e)
		}
	}
	if c.listed {
		c.addOwn(victims)
	}
	return most
}

// unread tells whether the page of a node was not read.
func (c *choice) unread(n facts.NodeIndex) bool {
	page := c.in.Unread.PageOf(n)
	return page < len(c.isUnread) && c.isUnread[page]
}

// reach reads the page of a victim's node.
func (c *choice) reach(i int32) {
	if c.sites[i] == awaited {
		c.read(c.in.Unread.PageOf(c.in.Victims[i].Node))
	}
}
