package kept

import (
	"github.com/espalier-dev/espalier/internal/exec"
	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// Index takes the index out of a result, a pointer to an espalier.Result, which has none afterwards. It
// is of the bytes that were normalized; nil if they say something else than the result. typed says that
// every value is of its schema's type. Package espalier sets it.
var Index func(result any) (d *jsondoc.Doc, typed bool)

// Validation returns a verdict as an espalier.Validation. Package espalier sets it.
var Validation func(*exec.Verdict) any
