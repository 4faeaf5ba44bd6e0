package starling_test

import (
	"testing"
	"testing/fstest"
)

// TestPurityCatchesBreaches plants one breach a case. Bodies stand in package cluster; want is a part of the report.
func TestPurityCatchesBreaches(t *testing.T) {
	cases := []struct{ name, imports, body, want string }{
		{"plain code", "slices", "func f(m map[string]int, s []int) int { slices.Sort(s); return m[\"a\"] + len(s) }", ""},
		{"duration arithmetic", "time", "func f(d time.Duration) int64 { return int64(2*d + time.Second) }", ""},
		{"stable sort", "slices", "func f(s []struct{ a int }) { slices.SortStableFunc(s, func(a, b struct{ a int }) int { return a.a - b.a }) }", ""},
		{"time in UTC", "time", "func f(s int64) string { return time.Unix(s, 0).UTC().String() }", ""},
		{"sentinel and table", "errors",
			"var ErrGone = errors.New(\"gone\")\nvar names = [...]string{\"a\"}\nfunc f(i int) (string, error) { return names[i], ErrGone }", ""},
		{"integer type parameter", "cmp", "func f[T cmp.Ordered](s []T) (n int) { for range s { n++ }; return n }", ""},
		{"interface assertion", "fmt", "type a int\nfunc (a) String() string { return \"\" }\nvar _ fmt.Stringer = a(0)", ""},

		{"goroutine", "", "func f(g func()) { go g() }", "concurrency"},
		{"channel type", "", "type a struct{ c chan int }", "concurrency"},
		{"select", "", "func f() { select {} }", "concurrency"},
		{"coroutine", "iter", "func f(s iter.Seq[int]) { iter.Pull(s) }", "concurrency"},
		{"lock", "sync", "type a struct{ m sync.Mutex }", "nothing to lock"},
		{"atomic", "sync/atomic", "type a struct{ n atomic.Int64 }", "nothing to share"},
		{"clock", "time", "func f() int64 { return time.Now().UnixNano() }", "clock"},
		{"renamed clock", "", "import t \"time\"\nfunc f() { t.Sleep(1) }", "clock"},
		{"clock as a value", "time", "var now = time.Now", "clock"},
		{"time zone", "time", "func f(s int64) string { return time.Unix(s, 0).String() }", "time zone"},
		{"local method", "time", "func f(t time.Time) string { return t.Local().String() }", "time zone"},
		{"rand", "math/rand/v2", "func f() int { return rand.IntN(3) }", "import"},
		{"file", "os", "func f() { os.Exit(1) }", "no I/O"},
		{"io", "io", "func f(r io.Reader) {}", "no I/O"},
		{"net", "net", "type a struct{ ip net.IP }", "no I/O"},
		{"third party", "github.com/spf13/cobra", "type a struct{ c cobra.Command }", "import"},
		{"unsafe", "unsafe", "func f(a int) uintptr { return uintptr(unsafe.Sizeof(a)) }", "encoding/binary"},
		{"port", "starling/journal", "func f() { journal.F() }", "only the pure core"},
		{"print", "fmt", "func f() { fmt.Println() }", "output"},
		{"builtin print", "", "func f() { println() }", "output"},
		{"float type", "", "type a struct{ b float64 }", "float"},
		{"float literal", "", "const a int64 = 1e9", "float"},
		{"float conversion", "", "func f(a int) bool { return float32(a) > 0 }", "float"},
		{"inferred float", "time", "func f(d time.Duration) { a := d.Seconds(); _ = a }", "float"},
		{"float in a tuple", "strconv", "func f() { a, err := strconv.ParseFloat(\"\", 64); _, _ = a, err }", "float"},
		{"float function", "math", "func f() { g := math.Pi; _ = g }", "float"},
		{"map range", "", "func f(m map[int]int) (n int) { for k := range m { n += k }; return n }", "map range"},
		{"named map", "", "type a map[int]int\nfunc f(m a) (n int) { for range m { n++ }; return n }", "map range"},
		{"generic map", "", "func f[M ~map[int]int](m M) (n int) { for range m { n++ }; return n }", "map range"},
		{"map of another package", "starling/command", "func f() (n int) { for range command.Table() { n++ }; return n }",
			"map range"},
		{"maps", "maps", "func f(m map[int]int) { maps.Clone(m) }", "the order of a map differs"},
		{"unstable sort", "slices", "func f(s []string) { slices.SortFunc(s, func(a, b string) int { return 0 }) }",
			"unstable sort"},
		{"package sort", "sort", "func f(s []int) { sort.Ints(s) }", "slices.SortStableFunc"},
		{"init", "", "func init() {}", "init"},
		{"variable without a value", "", "var count int", "package variable"},
		{"exported variable", "", "var Count = 1", "package variable"},
		{"pointer variable", "", "type a struct{ b int }\nvar c = &a{}", "package variable"},
		{"assigned", "", "var a = 1\nfunc f() { a = 2 }", "package variable"},
		{"incremented", "", "var a = 1\nfunc f() { a++ }", "package variable"},
		{"element assigned", "", "var a = []struct{ b int }{{1}}\nfunc f() { a[0].b = 2 }", "package variable"},
		{"deleted", "", "var a = map[int]int{}\nfunc f() { delete(a, 1) }", "package variable"},
		{"address taken", "", "var a = 1\nfunc f() *int { return &a }", "package variable"},
		{"method by pointer", "", "type b struct{ n int }\nfunc (x *b) add() { x.n++ }\nvar a = b{1}\nfunc f() { a.add() }",
			"package variable"},
		{"does not compile", "", "func f() int { return \"\" }", "does not compile"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			imports := ""
			if c.imports != "" {
				imports = "import \"" + c.imports + "\"\n"
			}
			checkPurity(t, "cluster/a.go", "package cluster\n"+imports+c.body+"\n", c.want)
		})
	}
}

func TestPurityCatchesConstrainedFiles(t *testing.T) {
	checkPurity(t, "ring/a_linux.go", "package ring\n", "build constraint")
	checkPurity(t, "ring/a.go", "//go:build !windows\n\npackage ring\n", "build constraint")
	checkPurity(t, "schedule/place/a.go", "package place\n\nvar a int\n", "package variable")
	checkPurity(t, "peer/a.go", "package peer\n\nvar a int\n", "")
	checkPurity(t, "ring/a_test.go", "package ring\n\nvar a int\n", "")
}

func checkPurity(t *testing.T, file, text, want string) {
	t.Helper()
	tr, err := parseTree(fstest.MapFS{
		file:           {Data: []byte(text)},
		"command/b.go": {Data: []byte("package command\n\n// Table is a map.\nfunc Table() map[int]int { return nil }\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	found, err := purityBreaches(tr)
	if err != nil {
		t.Fatal(err)
	}
	checkPlanted(t, found, want)
}
