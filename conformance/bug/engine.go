package bug

const (
	execPackage    = "github.com/espalier-dev/espalier/internal/exec"
	compilePackage = "github.com/espalier-dev/espalier/internal/compile"
	planPackage    = "github.com/espalier-dev/espalier/internal/plan"
	jsondocPackage = "github.com/espalier-dev/espalier/internal/jsondoc"
	formatPackage  = "github.com/espalier-dev/espalier/internal/format"
	patternPackage = "github.com/espalier-dev/espalier/internal/pattern"
	syntaxPackage  = "github.com/espalier-dev/espalier/internal/syntax"
	crdPackage     = "github.com/espalier-dev/espalier/crd"
	celPackage     = "github.com/espalier-dev/espalier/crd/cel"
)

// Engine are bugs of the engine: wrong answers about schemas, rules and objects. They were chosen by reading the
// engine, without a look at what the comparison generates.
var Engine = slicesOf(
	normalization, metadataForm,
	validation, metadataRules, ratcheting,
	schemaChecks, sharing,
	documents, formats, patterns,
	crds, expressions, estimates,
)
