package imprint

import "testing"

type row struct {
	number int
	name   string
	next   *row
	list   []int
	any    any
	on     bool
	call   func()
}

// TestImprints changes one thing after the other that can be reached, and finds each.
func TestImprints(t *testing.T) {
	backing := make([]int, 1, 4)
	r := &row{number: 1, name: "a", list: backing, any: 3, call: func() {}}
	r.next = &row{next: r}
	before := Of(r)
	if again := Of(r); again != before {
		t.Fatalf("asked again %x, before %x", again, before)
	}
	changes := map[string]func(){
		"a number":                   func() { r.number++ },
		"a text":                     func() { r.name = "b" },
		"what a pointer leads to":    func() { r.next.number++ },
		"an equal row elsewhere":     func() { other := *r.next; r.next = &other },
		"room behind a slice":        func() { _ = append(r.list, 7) },
		"a longer slice":             func() { r.list = r.list[:2] },
		"what an interface holds":    func() { r.any = 4 },
		"a flag":                     func() { r.on = true },
		"a pointer that becomes nil": func() { r.next.next = nil },
	}
	for name, change := range changes {
		change()
		after := Of(r)
		if after == before {
			t.Errorf("%s changed, and the imprint did not", name)
		}
		before = after
	}
}
