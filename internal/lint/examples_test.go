package lint

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// entryPoints are the functions, methods and types with which a program begins to use a public package. Each has an
// Example, so that its documentation shows a call that compiles.
var entryPoints = map[string][]string{
	".":                      {"Check", "Compile", "UnfoldUnions", "Schema_Admit", "Schema_Normalize", "Schema_NormalizeValue", "Schema_Validate", "Schema_ValidateResult"},
	"finding":                {"Errors", "Field", "ParseSeverity"},
	"crd":                    {"Check", "CheckSchema", "CompileSchema", "Parse", "ParseWithin", "Validate", "Version_Compile"},
	"crd/cel":                {"Check", "Compile", "Costs", "Functions", "Remedies"},
	"crd/conversion":         {"Compile"},
	"crd/conversion/infer":   {"Propose"},
	"crd/conversion/trial":   {"New"},
	"crd/diff":               {"Compare", "Objects"},
	"crd/fix":                {"CRD", "Means"},
	"crd/impact":             {"New"},
	"crd/kinds":              {"Describe", "Find"},
	"crd/lint":               {"Check"},
	"crd/manifest":           {"Expand", "Objects", "Open", "Parse"},
	"crd/offline":            {"Find", "ParseVersion"},
	"crd/openapi":            {"Catalog", "Document", "JSONSchema", "ModelName"},
	"crd/request":            {"KindOf", "New"},
	"crd/sample":             {"Apply", "New"},
	"crd/splice":             {"Apply", "ApplyAll", "Patch"},
	"server":                 {"New", "NewOptions"},
	"server/espaliertest":    {"Environment", "Explore", "Faults", "Main", "New", "Start"},
	"server/etcd":            {"Start"},
	"server/local":           {"Kubeconfig", "Start"},
	"crd/guides":             nil, // the examples of a guide
	"crd/apiregistration/v1": nil, // types alone
	"crd/cel/celsize":        nil, // these are parts of the packages above, with arguments of internal packages
	"crd/rules":              nil,
	"crd/rules/words":        nil,
	"crd/witness":            nil,
}

// public reports whether programs outside may rely on a package: see "Compatibility and stability" in the README.
func public(dir string) bool {
	return slices.Contains([]string{".", "finding", "server", "server/espaliertest", "server/etcd", "server/local"}, dir) ||
		below(dir, "crd") && !strings.Contains(dir+"/", "/internal/")
}

// checkExamples asks for an Example of each entry point, and for entry points of each public package.
func checkExamples(t *tree) []Finding {
	var found []Finding
	for dir, files := range t.packages {
		if !public(dir) || packageName(files) == "" {
			continue
		}
		names, listed := entryPoints[dir]
		if !listed {
			found = append(found, Finding{File: dir, Text: "public package without entry points: add it to the table in internal/lint/examples_test.go, and an Example for each"})
			continue
		}
		code, tests := declared(files, false), declared(files, true)
		for _, name := range names {
			if !code[name] {
				found = append(found, Finding{File: dir, Text: "has no " + name + ": remove it from the table in internal/lint/examples_test.go"})
			} else if !tests["Example"+name] {
				found = append(found, Finding{File: dir, Text: "has no func Example" + name + ": every entry point has an Example"})
			}
		}
	}
	return found
}

// declared has the functions and types of a package, and its methods as Type_Method.
func declared(files []*goFile, tests bool) map[string]bool {
	names := map[string]bool{}
	for _, f := range files {
		if f.isTest() != tests {
			continue
		}
		for _, d := range f.syntax.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				names[receiver(d)+d.Name.Name] = true
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if s, ok := spec.(*ast.TypeSpec); ok {
						names[s.Name.Name] = true
					}
				}
			}
		}
	}
	return names
}

// receiver is the type of a method with an underscore, or nothing.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	of := d.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	name, ok := of.(*ast.Ident)
	if !ok {
		return "generic_"
	}
	return name.Name + "_"
}

func TestEntryPointsAreOfPublicPackages(t *testing.T) {
	for dir := range entryPoints {
		if !public(dir) {
			t.Errorf("%s is not public", dir)
		}
	}
}
