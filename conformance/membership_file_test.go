package conformance

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// membershipFile is a file of the kinds join, leave, race, dup and stuck; testdata/onyx/README.md describes it.
type membershipFile struct {
	ID      string
	Initial struct {
		Replica ringPicture
		Watches watching `yaml:"required_watches"`
	}
	Log   []logEntry
	Final *ringPicture
	// Desired stands in a file that records a defect: it goes before Final.
	Desired yaml.Node
	Other   map[string]any `yaml:",inline"`
}

// ringPicture is what the files say of a replica.
type ringPicture struct {
	Members []string
	// Pairs lead from watcher to watched, Prepared and Accepted from observer to joiner.
	Pairs, Prepared, Accepted map[string]string
}

// watching leads from peers to those they must watch.
type watching map[string][]string

// logEntry is an entry with what is expected of it.
type logEntry struct {
	ID     uint64
	Fn     string
	Args   map[string]string
	Writer string `yaml:"submitted_by"`
	// Candidates may observe the joiner, before the entry; nil if the file does not say.
	Candidates *[]string
	Expect     expectation
	// Desired stands where upstream has a defect: what it holds goes before Expect.
	Desired yaml.Node
	Other   map[string]any `yaml:",inline"`
}

// expectation is what holds after an entry; what is nil is not said.
type expectation struct {
	Replica   *ringPicture
	Reactions map[string][]logReaction
	Watches   *watching      `yaml:"required_watches"`
	Other     map[string]any `yaml:",inline"`
}

// logReaction is an entry that an actor appends.
type logReaction struct {
	Fn   string
	Args map[string]string
}

// keysUnread are the keys that are read by people only. Others that are not known are told in the closing line.
var keysUnread = []struct{ prefix, reason string }{
	{"title", "says what the file is about"},
	{"source", "says where the case comes from"},
	{"semantics", "says which version's guards were applied"},
	{"note", "explains"},
	{"world", "says what happens outside the log; the entries that follow from it are in the log"},
	{"doc_says", "says where the worked example differs"},
	{"replica_in_", "shows the defects of earlier versions"},
	{"side_effects", "says in words what required_watches says as data"},
	{"known_defect", "marks what desired replaces"},
}

// readMembership reads a file and returns the keys in it that nothing reads.
func readMembership(data []byte) (*membershipFile, []string, error) {
	f := &membershipFile{}
	if err := yaml.Unmarshal(data, f); err != nil {
		return nil, nil, fmt.Errorf("read the file: %w", err)
	}
	unread := unreadKeys(f.Other)
	for i := range f.Log {
		e := &f.Log[i]
		if err := override(&e.Expect, &e.Desired); err != nil {
			return nil, nil, fmt.Errorf("entry %d: %w", e.ID, err)
		}
		unread = append(append(unread, unreadKeys(e.Other)...), unreadKeys(e.Expect.Other)...)
	}
	final := expectation{Replica: f.Final}
	if err := override(&final, &f.Desired); err != nil {
		return nil, nil, err
	}
	f.Final = final.Replica
	slices.Sort(unread)
	return f, slices.Compact(unread), nil
}

// override replaces what desired, if it is data and not words, says otherwise.
func override(e *expectation, desired *yaml.Node) error {
	if desired.Kind != yaml.MappingNode {
		return nil
	}
	better, bare := expectation{}, ringPicture{}
	if err := desired.Decode(&better); err != nil {
		return fmt.Errorf("read desired: %w", err)
	}
	if _, ok := better.Other["members"]; ok {
		if err := desired.Decode(&bare); err != nil {
			return fmt.Errorf("read desired: %w", err)
		}
		better.Replica, better.Other = &bare, nil
	}
	if better.Replica != nil {
		e.Replica = better.Replica
	}
	if better.Reactions != nil {
		e.Reactions = better.Reactions
	}
	if better.Watches != nil {
		e.Watches = better.Watches
	}
	if better.Other != nil {
		e.Other = better.Other
	}
	return nil
}

func unreadKeys(other map[string]any) []string {
	var keys []string
	for key := range other {
		if !slices.ContainsFunc(keysUnread,
			func(k struct{ prefix, reason string }) bool { return strings.HasPrefix(key, k.prefix) }) {
			keys = append(keys, key)
		}
	}
	return keys
}

// peers returns every peer that the file names, in order.
func (f *membershipFile) peers() []string {
	all := map[string]bool{}
	maps.Copy(all, f.Initial.Replica.names())
	for i := range f.Log {
		e := &f.Log[i]
		all[e.Writer] = true
		for _, p := range e.Args {
			all[p] = true
		}
		if e.Expect.Replica != nil {
			maps.Copy(all, e.Expect.Replica.names())
		}
		for p := range e.Expect.Reactions {
			all[p] = true
		}
	}
	delete(all, "")
	return slices.Sorted(maps.Keys(all))
}

// names returns every peer in the picture.
func (r *ringPicture) names() map[string]bool {
	all := map[string]bool{}
	for _, p := range r.Members {
		all[p] = true
	}
	for _, m := range []map[string]string{r.Pairs, r.Prepared, r.Accepted} {
		for p, q := range m {
			all[p], all[q] = true, true
		}
	}
	return all
}

// String returns the picture in one line, in order.
func (r *ringPicture) String() string {
	return fmt.Sprintf("members %s, pairs %s, prepared %s, accepted %s", words(slices.Sorted(slices.Values(r.Members))),
		arrows(r.Pairs), arrows(r.Prepared), arrows(r.Accepted))
}

func arrows(m map[string]string) string {
	var all []string
	for _, p := range slices.Sorted(maps.Keys(m)) {
		all = append(all, p+"→"+m[p])
	}
	return words(all)
}

func words(all []string) string { return "[" + strings.Join(all, " ") + "]" }

// String returns who watches whom in one line, in order; who watches nobody is left out.
func (w watching) String() string {
	var all []string
	for _, p := range slices.Sorted(maps.Keys(w)) {
		for _, q := range slices.Sorted(slices.Values(w[p])) {
			all = append(all, p+"→"+q)
		}
	}
	return words(all)
}

// watches is the function of the README: who must watch whom.
func (r *ringPicture) watches() watching {
	w := watching{}
	watch := func(p, q string) {
		if !slices.Contains(w[p], q) {
			w[p] = append(w[p], q)
		}
	}
	for p, q := range r.Pairs {
		watch(p, q)
	}
	for q, p := range r.Prepared {
		watch(q, p)
		watch(p, q)
	}
	for q, p := range r.Accepted {
		watch(q, p)
		if subject, ok := r.Pairs[q]; ok {
			watch(p, subject)
		} else {
			watch(p, q)
		}
	}
	return w
}

// candidates is the rule of the reference, section 2.1: who may observe a joiner, in order.
func (r *ringPicture) candidates() []string {
	var all []string
	for _, p := range slices.Sorted(slices.Values(r.Members)) {
		_, prepares := r.Prepared[p]
		_, accepts := r.Accepted[p]
		_, watchesPreparing := r.Prepared[r.Pairs[p]]
		if !prepares && !accepts && !watchesPreparing {
			all = append(all, p)
		}
	}
	return all
}

// without returns the picture without some peers, the ring closed over them, and whether it held any.
func (r *ringPicture) without(gone map[string]bool) (*ringPicture, bool) {
	held := slices.ContainsFunc(slices.Collect(maps.Keys(r.names())), func(p string) bool { return gone[p] })
	if !held {
		return r, false
	}
	less := &ringPicture{Pairs: map[string]string{}, Prepared: map[string]string{}, Accepted: map[string]string{}}
	less.Members = slices.DeleteFunc(slices.Clone(r.Members), func(p string) bool { return gone[p] })
	for p, q := range r.Pairs {
		for hops := 0; gone[q] && hops < len(r.Pairs); hops++ {
			q = r.Pairs[q]
		}
		if !gone[p] && !gone[q] && p != q {
			less.Pairs[p] = q
		}
	}
	for q, p := range r.Prepared {
		if !gone[p] && !gone[q] {
			less.Prepared[q] = p
		}
	}
	for q, p := range r.Accepted {
		if !gone[p] && !gone[q] {
			less.Accepted[q] = p
		}
	}
	return less, true
}
