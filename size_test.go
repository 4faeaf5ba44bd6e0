package starling_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"
)

// The limits. Generated files are not counted.
const (
	functionLinesMax = 70
	complexityMax    = 15
	parametersMax    = 4
	fileLinesMax     = 600
	testFileLinesMax = 800
	packageLinesMax  = 3000
	packageFilesMax  = 14
)

// textLeast is how long a string is that may make its line longer: it is read, and found, as one.
const textLeast = 40

// sizeExemptions are lines that break a limit for a reason.
var sizeExemptions = []exemption{}

// allowance is how large a package may be that is over a limit, until it is divided. The numbers may only shrink.
type allowance struct {
	folder       string
	lines, files int
	reason       string
}

// allowances are the packages that are still too large.
var allowances = []allowance{
	{"sim/model", 4575, 19, "it is divided as what it is the twin of"},
}

// namesBanned are package names that say nothing.
var namesBanned = strings.Fields("util utils common helper helpers manager base types misc")

func TestSizes(t *testing.T) {
	tr, err := parseTree(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	judge(t, sizeBreaches(tr, allowances...), sizeExemptions)
}

func sizeBreaches(tr *tree, allowed ...allowance) []breach {
	found := nameBreaches(tr)
	for _, a := range allowed {
		if !slices.ContainsFunc(tr.folders, func(f *folder) bool { return f.path == a.folder && a.needed(f) }) {
			found = append(found, breach{file: a.folder, rule: "allowance", advice: "is not needed any more: delete it"})
		}
	}
	for _, f := range tr.folders {
		limit := allowance{folder: f.path}
		if at := slices.IndexFunc(allowed, func(a allowance) bool { return a.folder == f.path }); at >= 0 {
			limit = allowed[at]
		}
		found = append(found, folderBreaches(tr, f, limit)...)
		for _, s := range f.files {
			if s.generated {
				continue
			}
			found = append(append(found, fileBreaches(tr, s)...), columnBreaches(tr, s)...)
			for _, decl := range s.syntax.Decls {
				if function, ok := decl.(*ast.FuncDecl); ok {
					found = append(found, functionBreaches(tr, s, function)...)
				}
			}
			if !s.test && s.syntax.Name.Name != "main" {
				found = append(found, exportBreaches(tr, s)...)
			}
		}
	}
	return found
}

// nameBreaches reports package names that are banned or taken.
func nameBreaches(tr *tree) []breach {
	var found []breach
	taken := map[string]string{}
	for _, f := range tr.folders {
		s := f.files[0]
		name := strings.TrimSuffix(s.syntax.Name.Name, "_test")
		if slices.Contains(namesBanned, name) || strings.HasSuffix(name, "util") || strings.HasSuffix(name, "utils") {
			found = append(found, tr.breach(s, s.syntax.Name, "package name", "name the package for what it is about"))
		}
		if other, ok := taken[name]; ok && name != "main" {
			found = append(found, tr.breach(s, s.syntax.Name, "package name",
				"the folder "+other+" has this name already: choose another noun, so that no import is ever renamed"))
		}
		taken[name] = f.path
	}
	return found
}

// size returns how many lines and files of code a folder has.
func (f *folder) size() (lines, files int) {
	for _, code := range f.code() {
		lines += len(code.lines)
	}
	return lines, len(f.code())
}

// needed tells whether the folder is over a limit.
func (a allowance) needed(f *folder) bool {
	lines, files := f.size()
	return lines > packageLinesMax || files > packageFilesMax
}

func folderBreaches(tr *tree, f *folder, allowed allowance) []breach {
	s := f.files[0]
	var found []breach
	documented := false
	for _, code := range f.files {
		documented = documented || code.syntax.Doc != nil && (!code.test || len(f.code()) == 0)
	}
	if !documented && len(f.code()) > 0 {
		found = append(found, tr.breach(s, s.syntax.Name, "package comment", "say in one true sentence what "+f.path+" is"))
	}
	lines, files := f.size()
	if most := max(packageLinesMax, allowed.lines); lines > most {
		found = append(found, tr.breach(s, s.syntax.Name, "package lines",
			fmt.Sprintf("%s has %d lines, at most %d: divide it by concept", f.path, lines, most)))
	}
	if most := max(packageFilesMax, allowed.files); files > most {
		found = append(found, tr.breach(s, s.syntax.Name, "package files",
			fmt.Sprintf("%s has %d files, at most %d: divide it by concept, or put together what is about one thing",
				f.path, files, most)))
	}
	return found
}

func fileBreaches(tr *tree, s *source) []breach {
	limit := fileLinesMax
	if s.test {
		limit = testFileLinesMax
	}
	if len(s.lines) <= limit {
		return nil
	}
	return []breach{tr.breach(s, s.syntax.Name, "file lines",
		fmt.Sprintf("%d lines, at most %d: split it by concept", len(s.lines), limit))}
}

// columnBreaches reports lines that are too long; a tab counts as one column.
func columnBreaches(tr *tree, s *source) []breach {
	var found []breach
	texts := textLines(tr, s)
	for i, line := range s.lines {
		if n := utf8.RuneCountInString(line); n > columnsMax && !texts[i+1] {
			found = append(found, breach{file: s.path, line: i + 1, text: strings.TrimSpace(line), rule: "columns",
				advice: fmt.Sprintf("%d columns, at most %d: break the line, or say it shorter", n, columnsMax)})
		}
	}
	return found
}

// textLines returns the lines on which a long string stands.
func textLines(tr *tree, s *source) map[int]bool {
	lines := map[int]bool{}
	ast.Inspect(s.syntax, func(n ast.Node) bool {
		if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING && len(text.Value) >= textLeast {
			for line := tr.fset.Position(text.Pos()).Line; line <= tr.fset.Position(text.End()).Line; line++ {
				lines[line] = true
			}
		}
		return true
	})
	return lines
}

func functionBreaches(tr *tree, s *source, f *ast.FuncDecl) []breach {
	var found []breach
	report := func(rule, format string, args ...any) {
		found = append(found, tr.breach(s, f.Name, rule, f.Name.Name+fmt.Sprintf(format, args...)))
	}
	if lines := tr.fset.Position(f.End()).Line - tr.fset.Position(f.Pos()).Line + 1; lines > functionLinesMax {
		report("function lines", " has %d lines, at most %d: give its parts names", lines, functionLinesMax)
	}
	if n := complexity(f); n > complexityMax {
		report("complexity", " has complexity %d, at most %d: give its branches names, or make a table", n, complexityMax)
	}
	if n := parameters(f.Type); n > parametersMax {
		report("parameters", " has %d parameters, at most %d: make a struct of those that belong together", n, parametersMax)
	}
	if f.Name.Name == "init" && f.Recv == nil {
		report("init", ": no hidden start; call it, or make a constant table")
	}
	return found
}

// parameters counts what a caller passes; the context and the test at hand do not count.
func parameters(f *ast.FuncType) int {
	n := 0
	for _, field := range f.Params.List {
		if !isAmbient(field.Type) {
			n += max(1, len(field.Names))
		}
	}
	return n
}

func isAmbient(expr ast.Expr) bool {
	if star, ok := expr.(*ast.StarExpr); ok {
		expr = star.X
	}
	selector, ok := expr.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := selector.X.(*ast.Ident)
	if !ok {
		return false
	}
	names := "context.Context testing.T testing.B testing.F testing.TB rapid.T testscript.TestScript"
	return slices.Contains(strings.Fields(names), x.Name+"."+selector.Sel.Name)
}

// complexity counts the ways through f (McCabe), closures included. A switch whose every case is a single plain
// statement is a table to its reader and counts as one way.
func complexity(f *ast.FuncDecl) int {
	n := 1
	inTable := map[ast.Stmt]bool{}
	table := func(body *ast.BlockStmt) {
		if isTable(body) {
			n++
			for _, clause := range body.List {
				inTable[clause] = true
			}
		}
	}
	ast.Inspect(f, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.SwitchStmt:
			table(node.Body)
		case *ast.TypeSwitchStmt:
			table(node.Body)
		case *ast.CaseClause:
			if node.List != nil && !inTable[node] {
				n++
			}
		case *ast.CommClause:
			if node.Comm != nil {
				n++
			}
		case *ast.BinaryExpr:
			if node.Op == token.LAND || node.Op == token.LOR {
				n++
			}
		}
		return true
	})
	return n
}

func isTable(body *ast.BlockStmt) bool {
	for _, clause := range body.List {
		for i, statement := range clause.(*ast.CaseClause).Body {
			switch statement.(type) {
			case *ast.ReturnStmt, *ast.ExprStmt, *ast.AssignStmt, *ast.IncDecStmt, *ast.BranchStmt:
			default:
				return false
			}
			if i > 0 {
				return false
			}
		}
	}
	return true
}

// exportBreaches reports exported names that go doc would show without a word.
func exportBreaches(tr *tree, s *source) []breach {
	var found []breach
	report := func(n *ast.Ident) {
		found = append(found, tr.breach(s, n, "doc comment", "say what "+n.Name+" is, so that it can be read alone"))
	}
	for _, decl := range s.syntax.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Name.IsExported() && decl.Doc == nil && exportedReceiver(decl) {
				report(decl.Name)
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				for _, name := range undocumented(decl, spec) {
					report(name)
				}
			}
		}
	}
	return found
}

func exportedReceiver(f *ast.FuncDecl) bool {
	if f.Recv == nil {
		return true
	}
	exported := false
	ast.Inspect(f.Recv.List[0].Type, func(n ast.Node) bool {
		ident, ok := n.(*ast.Ident)
		exported = exported || ok && ident.IsExported()
		return !ok
	})
	return exported
}

// undocumented lists the exported names of spec without a comment; a comment on a group of values is enough.
func undocumented(decl *ast.GenDecl, spec ast.Spec) []*ast.Ident {
	var names []*ast.Ident
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		if decl.Doc == nil && spec.Doc == nil && spec.Comment == nil {
			names = slices.Clone(spec.Names)
		}
	case *ast.TypeSpec:
		if spec.Doc == nil && (decl.Doc == nil || decl.Lparen.IsValid()) {
			names = append(names, spec.Name)
		}
		if methods, ok := spec.Type.(*ast.InterfaceType); ok && spec.Name.IsExported() {
			for _, method := range methods.Methods.List {
				if method.Doc == nil && method.Comment == nil {
					names = append(names, method.Names...)
				}
			}
		}
	}
	return slices.DeleteFunc(names, func(n *ast.Ident) bool { return !n.IsExported() })
}

func TestSizesCatchBreaches(t *testing.T) {
	many := func(format string, n int) string { return strings.Repeat(format, n) }
	doc := "// Package x is planted.\npackage x\n"
	cases := []struct{ name, file, text, want string }{
		{"nothing wrong", "x/a.go", doc + "func f(a, b, c, d int) {" + many("\n", 69) + "}\n", ""},
		{"long function", "x/a.go", doc + "func f() {" + many("\n", 70) + "}\n", "71 lines"},
		{"complex function", "x/a.go", doc + "func f(a bool) {" + many("if a && a {}\n", 8) + "}\n", "complexity 17"},
		{"complex switch", "x/a.go", doc + "func f(a int) { switch a {" + many("case 1: f(1); f(2)\n", 15) + "} }\n",
			"complexity 16"},
		{"switch as a table", "x/a.go", doc + "func f(a int) { switch a {" + many("case 1: f(1)\n", 20) + "} }\n", ""},
		{"context is free", "x/a.go", doc + "func f(c context.Context, t *testing.T, a, b, c, d int) {}\n", ""},
		{"five parameters", "x/a.go", doc + "func f(a, b int, c, d, e string) {}\n", "5 parameters"},
		{"long file", "x/a.go", doc + many("//\n", 599), "601 lines, at most 600"},
		{"long test", "x/a_test.go", "package x\n" + many("//\n", 800), "801 lines, at most 800"},
		{"long line", "x/a.go", doc + "//" + many(" a", 60) + "\n", "122 columns"},
		{"long text", "x/a.go", doc + "const a = \"" + many("a", 120) + "\"\n", ""},
		{"generated", "x/a.go", "// Code generated by a tool. DO NOT EDIT.\n\n" + doc + many("//\n", 900), ""},
		{"no package comment", "x/a.go", "package x\n", "package comment"},
		{"init", "x/a.go", doc + "func init() {}\n", "init"},
		{"exported function", "x/a.go", doc + "func F() {}\n", "what F is"},
		{"exported method", "x/a.go", doc + "// A is.\ntype A[T any] int\nfunc (a *A[T]) M() {}\n", "what M is"},
		{"method of what nobody sees", "x/a.go", doc + "type a int\nfunc (a a) M() {}\n", ""},
		{"exported type", "x/a.go", doc + "type A int\n", "what A is"},
		{"method of a port", "x/a.go", doc + "// A is.\ntype A interface{ M() }\n", "what M is"},
		{"exported constant", "x/a.go", doc + "const A = 1\n", "what A is"},
		{"constants of a group", "x/a.go", doc + "// Some.\nconst (\n\tA = 1\n\tB = 2\n)\n", ""},
		{"type in a group", "x/a.go", doc + "// Some.\ntype (\n\tA int\n)\n", "what A is"},
		{"banned name", "util/a.go", "// Package util is planted.\npackage util\n", "package name"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			tr, err := parseTree(fstest.MapFS{c.file: {Data: []byte(c.text)}})
			if err != nil {
				t.Fatal(err)
			}
			checkPlanted(t, sizeBreaches(tr), c.want)
		})
	}
}

func TestSizesCatchWholePackages(t *testing.T) {
	const doc = "// Package x is planted.\npackage x\n"
	// planted is a package of so many files with so many lines each.
	planted := func(files, lines int) fstest.MapFS {
		fsys := fstest.MapFS{"x/a_test.go": {Data: []byte(doc + strings.Repeat("//\n", 500))}}
		for i := range files {
			text := doc + strings.Repeat("//\n", lines-2)
			fsys[fmt.Sprintf("x/%02d.go", i)] = &fstest.MapFile{Data: []byte(text)}
		}
		return fsys
	}
	cases := []struct {
		name    string
		fsys    fstest.MapFS
		allowed []allowance
		want    string
	}{
		{"as large as may be", planted(10, 300), nil, ""},
		{"too many lines", planted(10, 301), nil, "3010 lines, at most 3000"},
		{"as many files as may be", planted(14, 2), nil, ""},
		{"too many files", planted(15, 2), nil, "15 files, at most 14"},
		{"lines that are allowed", planted(10, 301), []allowance{{"x", 3010, 0, "r"}}, ""},
		{"files that are allowed", planted(15, 2), []allowance{{"x", 0, 15, "r"}}, ""},
		{"more lines than are allowed", planted(10, 301), []allowance{{"x", 3009, 0, "r"}}, "3010 lines, at most 3009"},
		{"more files than are allowed", planted(16, 2), []allowance{{"x", 0, 15, "r"}}, "16 files, at most 15"},
		{"allowed and small", planted(10, 300), []allowance{{"x", 3010, 20, "r"}}, "not needed any more"},
		{"allowed and gone", planted(1, 2), []allowance{{"y", 3010, 20, "r"}}, "not needed any more"},
		{"two of a name", fstest.MapFS{"x/0.go": {Data: []byte(doc)}, "y/a.go": {Data: []byte(doc)}}, nil,
			"folder x has this name"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			tr, err := parseTree(c.fsys)
			if err != nil {
				t.Fatal(err)
			}
			checkPlanted(t, sizeBreaches(tr, c.allowed...), c.want)
		})
	}
}
