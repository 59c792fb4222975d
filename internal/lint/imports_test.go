package lint

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

const (
	module       = "github.com/espalier-dev/espalier"
	apimachinery = "k8s.io/apimachinery/pkg/"
	apiextAPIs   = "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/"
)

// layers lists the directories of the released modules from the bottom up. An
// import points to the same layer or to a lower one; which of the same layer,
// the allow-lists say for the engine. A directory stands for itself and for
// what is below it, except "." which is the root package alone.
var layers = [][]string{
	{"finding", "internal/archive", "internal/jsondoc", "internal/pattern", "internal/format", "internal/spelling", "internal/quantities", "internal/markdown", "internal/build", "internal/costtest"},
	{"internal/syntax", "internal/plan", "internal/crdtree", "internal/object"},
	{"internal/evidence"},
	{"internal/exec"},
	{"internal/compile"},
	{"internal/bridge"},
	{".", "docs"},
	{"crd"},
	{"server/webhook", "server/etcd", "server/loopback", "server/auth/ca", "server/stackgrow", "server/gctune", "server/turns", "server/kubebuilder", "server/crdinstall", "server/etcdtest"},
	{"server/storage"},
	{"server/catalog", "server/replica"},
	{"server/endpoints", "server/admission", "server/controllers"},
	{"server/apis"},
	{"server/auth"},
	{"server"},
	{"cmd"},
}

// outside lists directories that take no part in the layers: they have their
// own go.mod, or are not product code. Nothing in the layers imports them.
var outside = []string{"conformance", "controllers", "deploy", "examples", "tools", "internal/lint"}

// An allowance says what a package's own code may import beyond the standard
// library. Its tests may import more, except what is banned.
type allowance struct {
	dir  string
	may  []string // import paths, those of this module without its name
	only string   // completes "imports only": said when something else is imported
}

// allowed keeps the engine small. Packages above it may import what they need
// within the layers and the bans.
var allowed = []allowance{
	{
		dir:  "internal/jsondoc",
		only: "the standard library: every other package depends on it, and it reads hostile bytes",
	},
	{
		dir:  "finding",
		may:  []string{apimachinery + "util/validation/field"},
		only: "apimachinery's field errors: every package that reports findings imports it",
	},
	{
		dir:  "internal/archive",
		only: "the standard library: it reads hostile files",
	},
	{
		dir:  "internal/pattern",
		only: "the standard library: it is about regular expressions only",
	},
	{
		dir:  "internal/spelling",
		only: "the standard library: it compares names",
	},
	{
		dir:  "internal/format",
		may:  []string{"internal/pattern"},
		only: "the standard library and pattern: its tests compare it with upstream's strfmt",
	},
	{
		dir:  "internal/syntax",
		may:  []string{"internal/jsondoc"},
		only: "the standard library and jsondoc: it represents schemas as written, without field errors and plans",
	},
	{
		dir:  "internal/plan",
		may:  []string{"internal/jsondoc", "internal/pattern", "internal/format", "internal/spelling", "internal/markdown"},
		only: "the standard library, jsondoc, pattern and format: a plan is data that does not refer to the syntax it was lowered from",
	},
	{
		dir: "internal/compile",
		may: []string{
			"finding", "internal/jsondoc", "internal/pattern", "internal/format", "internal/syntax", "internal/plan", "internal/exec",
			apimachinery + "util/validation/field",
		},
		only: "syntax, plan, pattern, format, jsondoc, apimachinery's field errors, and exec because defaults are normalized by the code that normalizes objects",
	},
	{
		dir: "internal/exec",
		may: []string{
			"internal/jsondoc", "internal/pattern", "internal/plan", "internal/spelling",
			apimachinery + "api/validate/content",
			apimachinery + "api/validation",
			apimachinery + "apis/meta/v1",
			apimachinery + "runtime",
			apimachinery + "runtime/schema",
			apimachinery + "types",
			apimachinery + "util/validation",
			apimachinery + "util/validation/field",
			"sigs.k8s.io/json", // the decoder whose errors are the API server's
		},
		only: "plan, pattern, jsondoc and what defines, decodes and validates ObjectMeta: it runs plans and must not depend on their source",
	},
	{
		dir: ".",
		may: []string{
			"finding", "internal/jsondoc", "internal/syntax", "internal/plan", "internal/compile", "internal/exec", "internal/bridge",
			apimachinery + "util/validation/field",
		},
		only: "the engine's internal packages and apimachinery's field errors: programs that import Espalier get its dependencies too",
	},
}

// A ban names what may not be imported, tests included, because a test's
// import is in go.mod as well.
type ban struct {
	path   string   // an import path and all below it
	in     []string // directories; empty means all released modules
	except []string // exact import paths that are fine
	why    string
}

var engine = []string{".", "internal/jsondoc", "internal/pattern", "internal/format", "internal/syntax", "internal/plan", "internal/compile", "internal/exec"}

var bans = []ban{
	{
		path: "k8s.io/apiserver",
		in:   engine,
		why:  "the engine is for tools that need a few packages, not the 300 of a server",
	},
	{
		path: "k8s.io/client-go",
		in:   engine,
		why:  "the engine talks to no server, and tools pin their own versions of client-go",
	},
	{
		path: "k8s.io/apiextensions-apiserver",
		in:   engine,
		why:  "the engine reads schemas as bytes; upstream's types belong to crd/, its implementation to the conformance module",
	},
	{
		path: "k8s.io/apiextensions-apiserver",
		except: []string{
			apiextAPIs + "v1", apiextAPIs + "v1beta1",
			// The type between the two versions, the scheme of all three, and
			// the OpenAPI that is generated from them.
			strings.TrimSuffix(apiextAPIs, "/"), apiextAPIs + "install", "k8s.io/apiextensions-apiserver/pkg/generated/openapi",
		},
		why: "only upstream's API types are a wire contract; the conformance module compares us with its implementation",
	},
	{
		path: module + "/conformance",
		why:  "the conformance module depends on this one",
	},
	{
		path: module + "/internal/lint",
		why:  "house rules are not product code",
	},
}

// checkImports applies the layers, the allow-lists and the bans.
func checkImports(t *tree) []Finding {
	var found []Finding
	for dir, files := range t.packages {
		if under(dir, outside) {
			continue
		}
		from := layerOf(dir)
		if from < 0 {
			found = append(found, Finding{File: dir, Text: "package is in no layer: decide in which direction its imports point and add it to the table in internal/lint/imports_test.go"})
			continue
		}
		for _, f := range files {
			for _, spec := range f.syntax.Imports {
				imported, err := strconv.Unquote(spec.Path.Value)
				if err != nil {
					continue // the parser accepts only quoted paths
				}
				if text := importFault(dir, from, imported, f.isTest()); text != "" {
					found = append(found, Finding{f.path, f.line(spec.Pos()), text})
				}
			}
		}
	}
	return found
}

// importFault says what is wrong with an import, or nothing. The most specific
// reason wins: a ban, then the direction, then the allow-list.
func importFault(dir string, from int, imported string, test bool) string {
	for _, b := range bans {
		if len(b.in) > 0 && !under(dir, b.in) {
			continue
		}
		if below(imported, b.path) && !slices.Contains(b.except, imported) {
			return "must not import " + imported + ": " + b.why
		}
	}
	local, ours := cutModule(imported)
	if test || !ours && isStandard(imported) {
		return ""
	}
	// Tests of a part of the server may run a whole one.
	if ours && layerOf(local) > from && !(test && below(dir, "server") && below(local, "server")) {
		return "must not import " + imported + ": imports point one way, and " + local + " is a layer above " + dir
	}
	name := imported
	if ours {
		name = local
	}
	for _, a := range allowed {
		if under(dir, []string{a.dir}) && !slices.Contains(a.may, name) {
			return "must not import " + imported + ": " + a.dir + " imports only " + a.only
		}
	}
	return ""
}

// layerOf is the index into layers, or -1.
func layerOf(dir string) int {
	return slices.IndexFunc(layers, func(layer []string) bool { return under(dir, layer) })
}

// under reports whether dir is one of dirs or below one of them.
func under(dir string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(d string) bool {
		return dir == d || d != "." && below(dir, d)
	})
}

func below(p, parent string) bool {
	return p == parent || strings.HasPrefix(p, parent+"/")
}

// cutModule turns an import path of this module into a directory.
func cutModule(imported string) (dir string, ours bool) {
	if !below(imported, module) {
		return "", false
	}
	return path.Join(".", strings.TrimPrefix(imported, module)), true
}

// isStandard relies on the rule that only the standard library has import
// paths without a dot in the first element.
func isStandard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".")
}
