package starling_test

import (
	"go/ast"
	"go/token"
	"go/types"
)

// variables reports package-level state: what has no initial value, what others could write, what is written. Errors
// and tables that nobody writes may stay. Slices and maps that leave the package under another name are not followed.
func (p *purity) variables(files []*source) {
	kept := map[types.Object]bool{}
	for _, s := range files {
		for _, decl := range s.syntax.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				if decl.Recv == nil && decl.Name.Name == "init" {
					p.report(s, decl, "init", "no hidden start: make a constant table, or a function that is called")
				}
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					if value, ok := spec.(*ast.ValueSpec); ok && decl.Tok == token.VAR {
						p.declared(s, value, kept)
					}
				}
			}
		}
	}
	for _, s := range files {
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			for _, target := range p.written(n) {
				if kept[p.root(target)] {
					p.report(s, n, "package variable",
						"a package-level table is never written: keep the state in cluster.State, or in a local variable")
				}
			}
			return true
		})
	}
}

func (p *purity) declared(s *source, spec *ast.ValueSpec, kept map[types.Object]bool) {
	for _, name := range spec.Names {
		object := p.info.Defs[name]
		if name.Name == "_" || object == nil {
			continue
		}
		kept[object] = true
		_, pointer := object.Type().Underlying().(*types.Pointer)
		switch {
		case types.Implements(object.Type(), errorInterface()):
		case len(spec.Values) == 0:
			p.report(s, name, "package variable", "no state outside cluster.State: pass it, or make it a constant")
		case name.IsExported():
			p.report(s, name, "package variable", "others could write it: make it a function that returns the value")
		case pointer:
			p.report(s, name, "package variable", "what it points to can change: make it a value or a function")
		}
	}
}

func errorInterface() *types.Interface {
	return types.Universe.Lookup("error").Type().Underlying().(*types.Interface)
}

// written lists the expressions whose variables n writes, or could write through a pointer.
func (p *purity) written(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			return n.Lhs
		}
	case *ast.IncDecStmt:
		return []ast.Expr{n.X}
	case *ast.RangeStmt:
		if n.Tok == token.ASSIGN {
			return []ast.Expr{n.Key, n.Value}
		}
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			return []ast.Expr{n.X}
		}
	case *ast.CallExpr:
		return p.writtenByCall(n)
	}
	return nil
}

func (p *purity) writtenByCall(call *ast.CallExpr) []ast.Expr {
	switch function := call.Fun.(type) {
	case *ast.Ident:
		_, builtin := p.info.Uses[function].(*types.Builtin)
		if builtin && (function.Name == "delete" || function.Name == "clear" || function.Name == "copy") {
			return call.Args[:1]
		}
	case *ast.SelectorExpr:
		selection := p.info.Selections[function]
		if selection == nil || selection.Kind() != types.MethodVal {
			return nil
		}
		_, byPointer := selection.Obj().(*types.Func).Signature().Recv().Type().(*types.Pointer)
		if _, isPointer := selection.Recv().Underlying().(*types.Pointer); byPointer && !isPointer {
			return []ast.Expr{function.X}
		}
	}
	return nil
}

// root is the variable that an expression starts from, as table in table.rows[3].name.
func (p *purity) root(expr ast.Expr) types.Object {
	for {
		switch e := expr.(type) {
		case *ast.Ident:
			return p.info.Uses[e]
		case *ast.SelectorExpr:
			expr = e.X
		case *ast.IndexExpr:
			expr = e.X
		case *ast.SliceExpr:
			expr = e.X
		case *ast.StarExpr:
			expr = e.X
		case *ast.ParenExpr:
			expr = e.X
		default:
			return nil
		}
	}
}
