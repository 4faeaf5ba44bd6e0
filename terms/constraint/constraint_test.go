package constraint

import (
	"fmt"
	"slices"
	"testing"
)

// place has attributes, and instances by label, value and attribute within which they are counted.
type place struct {
	attributes map[string]string
	instances  map[[3]string]uint32
}

func (p *place) Attribute(name string) (string, bool) {
	value, exists := p.attributes[name]
	return value, exists
}

func (p *place) Instances(c *Constraint) uint32 {
	return p.instances[[3]string{c.Label, c.Values[0], c.Within}]
}

func TestAttributes(t *testing.T) {
	p := &place{attributes: map[string]string{"cores": "8", "empty": "", "huge": "9223372036854775808", "zone": "b"}}
	cases := []struct {
		attribute string
		operator  Operator
		values    []string
		want      bool
	}{
		{"zone", Equal, []string{"b"}, true},
		{"zone", Equal, []string{"a"}, false},
		{"zone", Equal, []string{"B"}, false},
		{"rack", Equal, []string{""}, false},
		{"empty", Equal, []string{""}, true},
		{"zone", NotEqual, []string{"a"}, true},
		{"zone", NotEqual, []string{"b"}, false},
		{"rack", NotEqual, []string{"b"}, true},
		{"zone", In, []string{"a", "b"}, true},
		{"zone", In, []string{"a", "c"}, false},
		{"rack", In, []string{"a", ""}, false},
		{"zone", NotIn, []string{"a", "c"}, true},
		{"zone", NotIn, []string{"a", "b"}, false},
		{"rack", NotIn, []string{"a"}, true},
		{"zone", Exists, nil, true},
		{"empty", Exists, nil, true},
		{"rack", Exists, nil, false},
		{"rack", NotExists, nil, true},
		{"zone", NotExists, nil, false},
		{"cores", Less, []string{"9"}, true},
		{"cores", Less, []string{"8"}, false},
		{"cores", LessOrEqual, []string{"8"}, true},
		{"cores", LessOrEqual, []string{"7"}, false},
		{"cores", Greater, []string{"7"}, true},
		{"cores", Greater, []string{"10"}, false},
		{"cores", GreaterOrEqual, []string{"8"}, true},
		{"cores", GreaterOrEqual, []string{"9"}, false},
		{"cores", GreaterOrEqual, []string{"-9"}, true},
		{"zone", Less, []string{"9"}, false},
		{"rack", GreaterOrEqual, []string{"0"}, false},
		{"empty", LessOrEqual, []string{"0"}, false},
		{"huge", Greater, []string{"0"}, false},
	}
	for _, c := range cases {
		k := Constraint{Attribute: c.attribute, Operator: c.operator, Values: c.values}
		if got := k.Holds(p); got != c.want {
			t.Errorf("%s %s %q holds: %v, want %v", c.attribute, c.operator, c.values, got, c.want)
		}
	}
}

func label(within string, operator Operator, count uint32) Constraint {
	return Constraint{Label: "app", Values: []string{"db"}, Within: within, Operator: operator, Count: count}
}

func TestJoined(t *testing.T) {
	p := &place{attributes: map[string]string{"zone": "b"},
		instances: map[[3]string]uint32{{"app", "db", ""}: 1, {"app", "db", "rack"}: 3}}
	yes := Constraint{Attribute: "zone", Operator: Exists}
	no := Constraint{Attribute: "zone", Operator: NotExists}
	cases := []struct {
		c    Constraint
		want bool
	}{
		{label("", Equal, 1), true}, {label("", Equal, 0), false},
		{label("", NotEqual, 1), false}, {label("", NotEqual, 0), true},
		{label("", Less, 2), true}, {label("", Less, 1), false},
		{label("", LessOrEqual, 1), true}, {label("", LessOrEqual, 0), false},
		{label("", Greater, 0), true}, {label("", Greater, 1), false},
		{label("", GreaterOrEqual, 1), true}, {label("", GreaterOrEqual, 2), false},
		{label("rack", Equal, 3), true}, {label("zone", Equal, 0), true},
		{Constraint{All: []Constraint{yes, yes}}, true}, {Constraint{All: []Constraint{yes, no}}, false},
		{Constraint{Any: []Constraint{no, yes}}, true}, {Constraint{Any: []Constraint{no, no}}, false},
		{Constraint{Any: []Constraint{{All: []Constraint{yes, no}}, label("", Greater, 0)}}, true},
	}
	for _, c := range cases {
		if got := c.c.Holds(p); got != c.want {
			t.Errorf("%+v holds: %v, want %v", c.c, got, c.want)
		}
	}
}

// TestGains changes a number and checks that whatever begins to hold was said to be able to.
func TestGains(t *testing.T) {
	for _, operator := range []Operator{Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual} {
		c := label("", operator, 2)
		more, fewer := false, false
		for count := range uint32(5) {
			before := c.Holds(&place{instances: map[[3]string]uint32{{"app", "db", ""}: count}})
			after := c.Holds(&place{instances: map[[3]string]uint32{{"app", "db", ""}: count + 1}})
			more, fewer = more || !before && after, fewer || before && !after
		}
		if c.GainsByMore() != more || c.GainsByFewer() != fewer {
			t.Errorf("%s: gains by more %v, by fewer %v, want %v and %v", operator, c.GainsByMore(), c.GainsByFewer(), more,
				fewer)
		}
	}
}

func TestProblems(t *testing.T) {
	nested := Constraint{Attribute: "a", Operator: Exists}
	for range DepthMax {
		nested = Constraint{All: []Constraint{nested}}
	}
	long := string(make([]byte, 300))
	cases := []struct {
		c    Constraint
		want []string
	}{
		{Constraint{Attribute: "zone", Operator: Exists}, nil},
		{Constraint{All: []Constraint{label("rack", Less, 1)}, Soft: true, SoftTimeoutMillis: 1000}, nil},
		{Constraint{}, []string{"c: must have exactly one of attribute, label, all and any"}},
		{Constraint{Attribute: "a", Label: "b"}, []string{"c: must have exactly one of attribute, label, all and any"}},
		{Constraint{Attribute: "a", Operator: Exists, SoftTimeoutMillis: 1}, []string{"c.soft: must be at most 24 hours"}},
		{Constraint{Any: []Constraint{{Attribute: "a", Operator: Exists, Soft: true}}},
			[]string{"c.any[0].soft: must be absent: only a whole constraint is soft"}},
		{Constraint{Any: []Constraint{{Attribute: "a"}}},
			[]string{`c.any[0].operator: must be one of ["=" "!=" "in" "not in" "exists" "not exists" "<" "<=" ">" ">="]`}},
		{Constraint{Attribute: "a", Operator: Exists, Count: 1},
			[]string{"c.within: within and count must be absent without label"}},
		{Constraint{Label: "a", Operator: In, Values: []string{"b"}},
			[]string{`c.operator: must be "=", "!=", "<", "<=", ">" or ">=" for a label, whose instances it counts`}},
		{Constraint{Label: "a", Operator: Less, Count: 1}, []string{"c.values: must have exactly one value for a label"}},
		{Constraint{All: []Constraint{nested}, Operator: Equal},
			[]string{"c.operator: must be absent beside all or any",
				"c.all[0].all[0].all[0].all[0].all: must have at most 5 constraints within each other"}},
		{Constraint{All: make([]Constraint, 65)}, []string{"c.all: must have at most 64 elements"}},
		{Constraint{Attribute: long, Operator: Exists},
			[]string{"c.attribute: must have at most 252 bytes", "c.attribute: must be UTF-8 without zero bytes"}},
		{Constraint{Attribute: "a", Operator: Equal, Values: []string{"\xff"}},
			[]string{"c.values[0]: must be UTF-8 without zero bytes, of at most 65536 bytes"}},
	}
	for i, c := range cases {
		var got []string
		c.c.Problems("c", func(field, format string,
			args ...any) {
			got = append(got, field+": "+fmt.Sprintf(format, args...))
		})
		if !slices.Equal(got, c.want) {
			t.Errorf("case %d: got %q, want %q", i, got, c.want)
		}
	}
}
