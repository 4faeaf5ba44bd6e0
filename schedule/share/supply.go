package share

import (
	"cmp"
	"slices"
	"strings"
)

// supply counts the peers that are taken. Peers that fit the same requirements are one stock, and who takes a peer gets
// one of some stock, not a certain one: as long as there is an exchange that serves all, nobody is refused.
type supply struct {
	stocks []stock
	// rows has one for each requirement, and from firstStock on one for each stock, if there are colocated jobs.
	rows       []row
	firstStock int
	free       Peers
	// groups tells the stock of each group.
	groups []int
	known  map[string]int
	paths  paths
}

// stock is the peers that fit the same requirements.
type stock struct{ peers, taken Peers }

// row is what is taken under one requirement.
type row struct {
	tags []string
	// fits lists the stocks, those first that fit least else; taken counts by stock, total all of them.
	fits  []int
	taken []Peers
	total Peers
	// spent tells that there is no peer left for the row, since only so many were free.
	spent bool
	since Peers
}

// paths is what a search for an exchange remembers of each stock: which row would enter it, from which stock.
type paths struct {
	reached []bool
	by      []int
	from    []int
	queue   []int
}

func newPaths(stocks int) paths {
	return paths{reached: make([]bool, stocks), by: make([]int, stocks), from: make([]int, stocks)}
}

// none is no stock, job, task or machine.
const none = -1

// newSupply sorts the groups into stocks by what the jobs require.
func newSupply(in *Input) *supply {
	s := &supply{known: map[string]int{}, groups: make([]int, len(in.Groups))}
	for i := range in.Jobs {
		for j := range in.Jobs[i].Tasks {
			s.require(in.Jobs[i].Tasks[j].Tags)
		}
	}
	s.firstStock = len(s.rows)
	profiles := s.stockUp(in.Groups)
	if slices.ContainsFunc(in.Jobs, func(j Job) bool { return j.Scheduler == TaskColocated }) {
		for c := range s.stocks {
			s.rows = append(s.rows, row{fits: []int{c}})
		}
	}
	for r := range s.rows {
		row := &s.rows[r]
		row.taken = make([]Peers, len(s.stocks))
		for c := range s.stocks {
			if r < s.firstStock && profiles[c][r] == fit {
				row.fits = append(row.fits, c)
			}
		}
	}
	s.paths = newPaths(len(s.stocks))
	return s
}

const (
	fit   = '+'
	unfit = '-'
)

// stockUp makes the stocks and returns which requirements each of them fits. What fits less comes first.
func (s *supply) stockUp(groups []Group) (profiles []string) {
	byTags, byProfile := map[string]string{}, map[string]Peers{}
	own := make([]string, len(groups))
	for i := range groups {
		g := &groups[i]
		key := tagKey(g.Tags)
		profile, known := byTags[key]
		if !known {
			profile = s.profile(g.Tags)
			byTags[key] = profile
		}
		if _, known = byProfile[profile]; !known {
			profiles = append(profiles, profile)
		}
		own[i] = profile
		byProfile[profile] += max(g.Peers, 0)
	}
	slices.SortStableFunc(profiles, func(a, b string) int {
		return cmp.Or(cmp.Compare(strings.Count(a, string(fit)), strings.Count(b, string(fit))), cmp.Compare(a, b))
	})
	number := map[string]int{}
	for c, profile := range profiles {
		number[profile] = c
		s.stocks = append(s.stocks, stock{peers: byProfile[profile]})
		s.free += byProfile[profile]
	}
	for i := range own {
		s.groups[i] = number[own[i]]
	}
	return profiles
}

// profile tells which requirements a peer with the tags fits.
func (s *supply) profile(tags []string) string {
	p := make([]byte, s.firstStock)
	for r := range p {
		p[r] = fit
		for _, tag := range s.rows[r].tags {
			if !slices.Contains(tags, tag) {
				p[r] = unfit
			}
		}
	}
	return string(p)
}

// require returns the row of a requirement.
func (s *supply) require(tags []string) int {
	key := tagKey(tags)
	r, known := s.known[key]
	if !known {
		r = len(s.rows)
		s.known[key] = r
		s.rows = append(s.rows, row{tags: tags})
	}
	return r
}

func tagKey(tags []string) string { return strings.Join(tags, "\x00") }

// take takes one peer that fits the row, if all others keep one that fits theirs.
func (s *supply) take(r int) bool {
	if s.free == 0 || s.rows[r].spent {
		return false
	}
	for _, c := range s.rows[r].fits {
		if s.stocks[c].taken < s.stocks[c].peers {
			s.enter(r, none, c)
			s.settle(r, c)
			return true
		}
	}
	if s.exchange(r) {
		return true
	}
	s.rows[r].spent, s.rows[r].since = true, s.free
	return false
}

// takeAlike takes so many peers for the row, where all are alike and there are as many.
func (s *supply) takeAlike(r int, count Peers) {
	s.rows[r].taken[0] += count
	s.rows[r].total += count
	s.stocks[0].taken += count
	s.free -= count
}

// release gives back one peer of the row, which was the last that was taken: but for exchanges, all is as before.
func (s *supply) release(r int) {
	c := slices.IndexFunc(s.rows[r].taken, func(n Peers) bool { return n > 0 })
	s.rows[r].taken[c]--
	s.rows[r].total--
	s.stocks[c].taken--
	s.free++
	for i := range s.rows {
		s.rows[i].spent = s.rows[i].spent && s.free <= s.rows[i].since
	}
}

// exchange looks for the shortest chain of rows, each of which goes to another stock to let one in.
func (s *supply) exchange(r int) bool {
	p := &s.paths
	clear(p.reached)
	p.queue = p.queue[:0]
	p.reach(s.rows[r].fits, r, none)
	for at := 0; at < len(p.queue); at++ {
		c := p.queue[at]
		if s.stocks[c].taken < s.stocks[c].peers {
			for end := c; end != none; end = p.from[end] {
				s.enter(p.by[end], p.from[end], end)
			}
			s.settle(r, c)
			return true
		}
		for other := range s.rows {
			if s.rows[other].total > 0 && s.rows[other].taken[c] > 0 {
				p.reach(s.rows[other].fits, other, c)
			}
		}
	}
	return false
}

// reach notes the stocks that a row of stock from could enter.
func (p *paths) reach(stocks []int, by, from int) {
	for _, c := range stocks {
		if !p.reached[c] {
			p.reached[c], p.by[c], p.from[c] = true, by, from
			p.queue = append(p.queue, c)
		}
	}
}

func (s *supply) enter(r, from, to int) {
	s.rows[r].taken[to]++
	if from != none {
		s.rows[r].taken[from]--
	}
}

// settle notes that the row has one peer more, and the stock one fewer.
func (s *supply) settle(r, c int) {
	s.rows[r].total++
	s.stocks[c].taken++
	s.free--
}
