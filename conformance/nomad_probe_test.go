package conformance

import (
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// probe runs a file of the folder probe, and its variants: what slots must give counts, whatever the peer gives.
func probe(s *sheet) { s.run(wholeFile, func(t *trial) { probeFile(t, s.data) }) }

func probeFile(t *trial, data []byte) {
	f, err := readReconcile(data)
	if err != nil {
		t.Fatal(err)
	}
	checkProbe(t, f, &f.PeerResult, &f.SlotExpected)
	for key, node := range f.Other {
		switch {
		case strings.HasPrefix(key, "peer_result_"): // what the peer gives otherwise is for people
		case strings.HasPrefix(key, "variant_"):
			probeVariant(t, data, key, &node)
		default:
			t.Errorf("the key %s is not known", key)
		}
	}
}

// flagVariant is the name of a variant that sets a flag of an allocation.
var flagVariant = regexp.MustCompile(`^variant_if_(\w+)_has_transition_(\w+)$`)

// probeVariant runs the file with what the variant changes.
func probeVariant(t *trial, data []byte, key string, node *yaml.Node) {
	var v struct {
		Added        []yaml.Node `yaml:"allocs_add"`
		PeerResult   yaml.Node   `yaml:"peer_result"`
		SlotExpected yaml.Node   `yaml:"slot_expected"`
	}
	if err := node.Load(&v, yaml.WithKnownFields()); err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	f, err := readReconcile(data)
	if err != nil {
		t.Fatal(err)
	}
	f.Input.Allocs = v.Added
	if err := f.Input.parse(); err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	if flag := flagVariant.FindStringSubmatch(key); flag != nil {
		at := slices.IndexFunc(f.Input.AllocsParsed, func(a nomadAllocation) bool { return a.ID == flag[1] })
		if at < 0 {
			t.Fatalf("%s: there is no allocation %s", key, flag[1])
		}
		mark := &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{
			{Kind: yaml.ScalarNode, Value: flag[2]}, {Kind: yaml.ScalarNode, Value: "true"},
		}}
		if err := mark.Load(&f.Input.AllocsParsed[at].Transition, yaml.WithKnownFields()); err != nil {
			t.Fatalf("%s: %v", key, err)
		}
	} else if len(v.Added) == 0 {
		t.Fatalf("%s: it is not known what the variant changes", key)
	}
	checkProbe(t, f, &v.PeerResult, &v.SlotExpected)
}

// checkProbe compares our result with what slots must give, in the sections that are told.
func checkProbe(t *trial, f *reconcileFile, peer, slots *yaml.Node) {
	node := slots
	if slots.Value == "same" {
		node = peer
	}
	want := &nomadExpected{}
	if err := node.Load(want, yaml.WithKnownFields()); err != nil {
		t.Fatalf("read what is expected: %v", err)
	}
	if form := f.form(); form != "" {
		t.leaveOut(form)
	}
	got, err := f.answer()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range compareResults(want, got) {
		section, _, _ := strings.Cut(strings.ReplaceAll(line, " ", ":"), ":")
		if valueOf(node, section) != nil {
			t.Error(line)
		}
	}
	for _, breach := range f.breaches(&got.nomadExpected) {
		t.Errorf("our result is not one of slots: it %s", breach)
	}
	for _, line := range got.untold() {
		t.Error(line)
	}
}
