package starling_test

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
)

// pure names the folders whose code must give the same result on every peer, whatever the machine, the Go release
// and the moment.
var pure = map[string]bool{
	"terms": true, "cluster": true, "command": true, "ring": true, "schedule": true, "reconcile": true, "rollout": true,
	"rights":  true,
	"replica": true,
	"plugin":  true, "validate": true,
}

// pureImports are all packages outside the module that the pure core may use.
var pureImports = map[string]bool{
	"bytes": true, "cmp": true, "crypto/sha256": true, "encoding/binary": true, "errors": true, "fmt": true, "hash": true,
	"hash/crc32": true, "hash/crc64": true, "hash/fnv": true, "iter": true, "math": true, "math/bits": true,
	"path": true, "slices": true, "strconv": true, "strings": true, "time": true, "unicode": true, "unicode/utf8": true,
	"github.com/tidwall/btree": true,
}

// importAdvice says what to do instead of an import that is often reached for.
var importAdvice = map[string]string{
	"sync":        "the fold is one goroutine and its value immutable: there is nothing to lock",
	"sync/atomic": "the fold is one goroutine and its value immutable: there is nothing to share",
	"math/rand":   "derive what looks random from the entry's index",
	"sort":        "use slices.SortStableFunc, or slices.Sort for plain ordered values",
	"maps":        "the order of a map differs: keep an ordered cluster table",
	"unsafe":      "use encoding/binary, or another layout",
	"os":          "no I/O: let peer do it and put the result into an entry",
	"io":          "no I/O: take and return []byte or string",
	"net":         "no I/O: let peer do it and put the result into an entry",
}

// pureNames are the functions, methods and variables of allowed packages that the pure core must not name.
var pureNames = merge(
	forbid("clock", "take the time from the entry (cluster time)", "time.Now time.Since time.Until time.Sleep time.After "+
		"time.AfterFunc time.Tick time.NewTicker time.NewTimer"),
	forbid("time zone", "the zone differs between machines: keep time in UTC, as in time.Unix(s, 0).UTC()",
		"time.Local time.LoadLocation time.Parse time.ParseInLocation time.Unix time.UnixMilli time.UnixMicro time.Time.Local"),
	forbid("unstable sort", "ties may differ between Go releases: use slices.SortStableFunc (or SortedStableFunc)",
		"slices.SortFunc slices.SortedFunc"),
	forbid("output", "no I/O: return the text", "fmt.Print fmt.Printf fmt.Println fmt.Scan fmt.Scanf fmt.Scanln"),
	forbid("concurrency", "iter.Pull runs a coroutine: use range over the function", "iter.Pull iter.Pull2"),
)

type prohibition struct{ rule, advice string }

func forbid(rule, advice, names string) map[string]prohibition {
	table := map[string]prohibition{}
	for _, name := range strings.Fields(names) {
		table[name] = prohibition{rule, advice}
	}
	return table
}

func merge(tables ...map[string]prohibition) map[string]prohibition {
	all := map[string]prohibition{}
	for _, table := range tables {
		for name, p := range table {
			all[name] = p
		}
	}
	return all
}

// purity checks the law of the pure core, folder by folder, with types.
type purity struct {
	tree    *tree
	outside types.Importer
	checked map[string]*types.Package
	info    *types.Info
	found   []breach
}

// purityBreaches lists the lines of the pure core that break its law.
func purityBreaches(tr *tree) ([]breach, error) {
	outside, err := outsidePackages(tr)
	if err != nil {
		return nil, err
	}
	p := &purity{tree: tr, outside: outside, checked: map[string]*types.Package{}, info: &types.Info{
		Types:      map[ast.Expr]types.TypeAndValue{},
		Defs:       map[*ast.Ident]types.Object{},
		Uses:       map[*ast.Ident]types.Object{},
		Selections: map[*ast.SelectorExpr]*types.Selection{},
	}}
	for _, f := range tr.folders {
		if pure[f.top()] {
			p.folder(f)
		}
	}
	return p.found, nil
}

func (p *purity) folder(f *folder) {
	before := len(p.found)
	_, err := p.Import(module + "/" + f.path)
	files := slices.DeleteFunc(slices.Clone(f.files), func(s *source) bool { return s.test })
	for _, s := range files {
		p.imports(s)
		p.constraints(s)
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			p.concurrency(s, n)
			p.mapRange(s, n)
			p.float(s, n)
			p.name(s, n)
			return true
		})
	}
	p.variables(files)
	// A forbidden import explains itself; only what does not compile for another reason is worth a line.
	if err != nil && len(p.found) == before && len(files) > 0 {
		p.report(files[0], files[0].syntax.Name, "types", "the folder does not compile: "+err.Error())
	}
}

func (p *purity) report(s *source, n ast.Node, rule, advice string) {
	b := p.tree.breach(s, n, rule, advice)
	if !slices.Contains(p.found, b) {
		p.found = append(p.found, b)
	}
}

// Import gives the type checker a package: the module's own from source, all others from the build cache.
func (p *purity) Import(name string) (*types.Package, error) {
	dir, ours := strings.CutPrefix(name, module+"/")
	if !ours {
		return p.outside.Import(name)
	}
	if pkg := p.checked[dir]; pkg != nil {
		return pkg, nil
	}
	at := slices.IndexFunc(p.tree.folders, func(f *folder) bool { return f.path == dir })
	top, _, _ := strings.Cut(dir, "/")
	if at < 0 || !pure[top] {
		return nil, fmt.Errorf("%s is not in the pure core", dir)
	}
	var files []*ast.File
	for _, s := range p.tree.folders[at].files {
		if !s.test {
			files = append(files, s.syntax)
		}
	}
	var first error
	conf := types.Config{Importer: p, Error: func(err error) { first = cmpOr(first, err) }}
	pkg, _ := conf.Check(name, p.tree.fset, files,
		p.info) // conf.Error has the first error; the rest is checked all the same
	p.checked[dir] = pkg
	return pkg, first
}

func cmpOr(first, err error) error {
	if first != nil {
		return first
	}
	return err
}

// outsidePackages makes an importer for what the pure core imports from elsewhere, read from the build cache.
func outsidePackages(tr *tree) (types.Importer, error) {
	args := []string{"list", "-export", "-f", "{{.ImportPath}}={{.Export}}", "--"}
	for _, f := range tr.folders {
		for _, s := range f.files {
			for _, spec := range s.syntax.Imports {
				name, _ := strconv.Unquote(spec.Path.Value)
				_, ours := ourFolder(spec.Path.Value)
				if pure[f.top()] && !s.test && !ours && name != "C" && !slices.Contains(args, name) {
					args = append(args, name)
				}
			}
		}
	}
	out, err := exec.Command("go", args...).Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return nil, fmt.Errorf("go list: %w\n%s", err, exit.Stderr)
	} else if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	exports := map[string]string{}
	for line := range bytes.Lines(out) {
		name, file, _ := strings.Cut(strings.TrimSpace(string(line)), "=")
		exports[name] = file
	}
	return importer.ForCompiler(token.NewFileSet(), "gc", func(name string) (io.ReadCloser, error) {
		return os.Open(exports[name])
	}), nil
}

func (p *purity) imports(s *source) {
	for _, spec := range s.syntax.Imports {
		name, _ := strconv.Unquote(spec.Path.Value)
		to, ours := ourFolder(spec.Path.Value)
		top, _, _ := strings.Cut(to, "/")
		switch {
		case ours && !pure[top]:
			p.report(s, spec, "import", "the pure core imports only the pure core: move the type into cluster, or the code to peer")
		case !ours && !pureImports[name]:
			advice := importAdvice[name]
			if advice == "" {
				advice = "do it without, or show that it is the same on every peer and add it to pureImports"
			}
			p.report(s, spec, "import", advice)
		}
	}
}

// constraints reports files that only some machines would compile.
func (p *purity) constraints(s *source) {
	base := strings.TrimSuffix(path.Base(s.path), ".go")
	last := base[strings.LastIndex(base, "_")+1:]
	constrained := last != base &&
		slices.Contains(strings.Fields("linux darwin windows freebsd amd64 arm64 arm 386 wasm"), last)
	for _, group := range s.syntax.Comments {
		for _, c := range group.List {
			constrained = constrained || constraint.IsGoBuild(c.Text)
		}
	}
	if constrained {
		p.report(s, s.syntax.Name, "build constraint",
			"all peers must fold with the same code: drop the constraint or the file's suffix")
	}
}

func (p *purity) concurrency(s *source, n ast.Node) {
	hit := false
	switch n := n.(type) {
	case *ast.GoStmt, *ast.SelectStmt, *ast.ChanType, *ast.SendStmt:
		hit = true
	case *ast.UnaryExpr:
		hit = n.Op == token.ARROW
	}
	if hit {
		p.report(s, n, "concurrency", "no goroutine or channel here: return a value, and let peer act on it")
	}
}

func (p *purity) mapRange(s *source, n ast.Node) {
	loop, ok := n.(*ast.RangeStmt)
	if !ok {
		return
	}
	if t := p.info.Types[loop.X].Type; t != nil && isMap(t) {
		p.report(s, n, "map range", "the order of a map differs: range over an ordered cluster table or a sorted slice of keys")
	}
}

// isMap tells whether t is a map, or a type parameter that may be one.
func isMap(t types.Type) bool {
	if parameter, ok := t.(*types.TypeParam); ok {
		limits := parameter.Underlying().(*types.Interface)
		for i := range limits.NumEmbeddeds() {
			if union, ok := limits.EmbeddedType(i).(*types.Union); ok {
				for j := range union.Len() {
					if isMap(union.Term(j).Type()) {
						return true
					}
				}
			} else if isMap(limits.EmbeddedType(i)) {
				return true
			}
		}
		return false
	}
	_, ok := t.Underlying().(*types.Map)
	return ok
}

func (p *purity) float(s *source, n ast.Node) {
	expr, ok := n.(ast.Expr)
	if !ok {
		return
	}
	hit := false
	if literal, ok := n.(*ast.BasicLit); ok {
		hit = literal.Kind == token.FLOAT || literal.Kind == token.IMAG
	}
	if t := p.info.Types[expr].Type; hit || t != nil && isFloat(t) {
		p.report(s, n, "float", "architectures round differently: use millicores, bytes and integer ratios")
	}
}

func isFloat(t types.Type) bool {
	switch t := t.Underlying().(type) {
	case *types.Basic:
		return t.Info()&(types.IsFloat|types.IsComplex) != 0
	case *types.Tuple:
		for v := range t.Variables() {
			if isFloat(v.Type()) {
				return true
			}
		}
	}
	return false
}

func (p *purity) name(s *source, n ast.Node) {
	if call, ok := n.(*ast.CallExpr); ok {
		p.builtin(s, call)
	}
	selector, ok := n.(*ast.SelectorExpr)
	if !ok {
		return
	}
	if call, ok := selector.X.(*ast.CallExpr); ok && selector.Sel.Name == "UTC" {
		p.inUTC(call)
	}
	object := p.info.Uses[selector.Sel]
	if object == nil || object.Pkg() == nil {
		return
	}
	if ban, ok := pureNames[qualified(object)]; ok {
		p.report(s, selector, ban.rule, ban.advice)
	}
}

// inUTC forgets the use of time.Unix and its kin in call: what it returns is turned into UTC at once.
func (p *purity) inUTC(call *ast.CallExpr) {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return
	}
	if object := p.info.Uses[selector.Sel]; object != nil && object.Pkg() != nil &&
		strings.HasPrefix(qualified(object), "time.Unix") {
		delete(p.info.Uses, selector.Sel)
	}
}

func qualified(object types.Object) string {
	if function, ok := object.(*types.Func); ok {
		if receiver := function.Signature().Recv(); receiver != nil {
			return strings.TrimPrefix(receiver.Type().String(), "*") + "." + object.Name()
		}
	}
	return object.Pkg().Path() + "." + object.Name()
}

func (p *purity) builtin(s *source, call *ast.CallExpr) {
	if ident, ok := call.Fun.(*ast.Ident); ok {
		if _, ok := p.info.Uses[ident].(*types.Builtin); ok && strings.HasPrefix(ident.Name, "print") {
			p.report(s, call, "output", "no I/O: return the text")
		}
	}
}
