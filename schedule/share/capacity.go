package share

import (
	"cmp"
	"slices"
	"strings"
)

// capacity counts the peers that are taken. Peers that fit the same requirements are one class, and a task that takes a
// peer gets one of some class, not a certain one: as long as there is an exchange that serves all, none is refused.
type capacity struct {
	classes []class
	// rows has one for each requirement, and from firstClass on one for each class, if there are colocated jobs.
	rows       []row
	firstClass int
	free       Peers
	// groups tells the class of each group.
	groups []int
	known  map[string]int
	paths  paths
}

// class is the peers that fit the same requirements.
type class struct{ peers, taken Peers }

// row is what is taken under one requirement.
type row struct {
	tags []string
	// fits lists the classes, those first that fit least else; taken counts by class, total all of them.
	fits  []int
	taken []Peers
	total Peers
	// spent tells that there is no peer left for the row, since only so many were free.
	spent bool
	since Peers
}

// paths is what a search for an exchange remembers of each class: which row would enter it, from which class.
type paths struct {
	reached []bool
	by      []int
	from    []int
	queue   []int
}

func newPaths(classes int) paths {
	return paths{reached: make([]bool, classes), by: make([]int, classes), from: make([]int, classes)}
}

// none is no class, job, task or machine.
const none = -1

// newCapacity sorts the groups into classes by what the jobs require.
func newCapacity(in *Input) *capacity {
	s := &capacity{known: map[string]int{}, groups: make([]int, len(in.Groups))}
	for i := range in.Jobs {
		for j := range in.Jobs[i].Tasks {
			s.require(in.Jobs[i].Tasks[j].Tags)
		}
	}
	s.firstClass = len(s.rows)
	profiles := s.classify(in.Groups)
	if slices.ContainsFunc(in.Jobs, func(j Job) bool { return j.Scheduler == TaskColocated }) {
		for c := range s.classes {
			s.rows = append(s.rows, row{fits: []int{c}})
		}
	}
	for r := range s.rows {
		row := &s.rows[r]
		row.taken = make([]Peers, len(s.classes))
		for c := range s.classes {
			if r < s.firstClass && profiles[c][r] == fit {
				row.fits = append(row.fits, c)
			}
		}
	}
	s.paths = newPaths(len(s.classes))
	return s
}

const (
	fit   = '+'
	unfit = '-'
)

// classify makes the classes and returns which requirements each of them fits. What fits less comes first.
func (s *capacity) classify(groups []Group) (profiles []string) {
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
		s.classes = append(s.classes, class{peers: byProfile[profile]})
		s.free += byProfile[profile]
	}
	for i := range own {
		s.groups[i] = number[own[i]]
	}
	return profiles
}

// profile tells which requirements a peer with the tags fits.
func (s *capacity) profile(tags []string) string {
	p := make([]byte, s.firstClass)
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
func (s *capacity) require(tags []string) int {
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
func (s *capacity) take(r int) bool {
	if s.free == 0 || s.rows[r].spent {
		return false
	}
	for _, c := range s.rows[r].fits {
		if s.classes[c].taken < s.classes[c].peers {
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
func (s *capacity) takeAlike(r int, count Peers) {
	s.rows[r].taken[0] += count
	s.rows[r].total += count
	s.classes[0].taken += count
	s.free -= count
}

// release gives back one peer of the row, which was the last that was taken: but for exchanges, all is as before.
func (s *capacity) release(r int) {
	c := slices.IndexFunc(s.rows[r].taken, func(n Peers) bool { return n > 0 })
	s.rows[r].taken[c]--
	s.rows[r].total--
	s.classes[c].taken--
	s.free++
	for i := range s.rows {
		s.rows[i].spent = s.rows[i].spent && s.free <= s.rows[i].since
	}
}

// exchange looks for the shortest chain of rows, each of which goes to another class to let one in.
func (s *capacity) exchange(r int) bool {
	p := &s.paths
	clear(p.reached)
	p.queue = p.queue[:0]
	p.reach(s.rows[r].fits, r, none)
	for at := 0; at < len(p.queue); at++ {
		c := p.queue[at]
		if s.classes[c].taken < s.classes[c].peers {
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

// reach notes the classes that a row of class from could enter.
func (p *paths) reach(classes []int, by, from int) {
	for _, c := range classes {
		if !p.reached[c] {
			p.reached[c], p.by[c], p.from[c] = true, by, from
			p.queue = append(p.queue, c)
		}
	}
}

func (s *capacity) enter(r, from, to int) {
	s.rows[r].taken[to]++
	if from != none {
		s.rows[r].taken[from]--
	}
}

// settle notes that the row has one peer more, and the class one fewer.
func (s *capacity) settle(r, c int) {
	s.rows[r].total++
	s.classes[c].taken++
	s.free--
}
