package espalier

import (
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/syntax"
)

// UnfoldUnions returns schema as it is published: what x-kubernetes-unions
// means is said with oneOf as well, in the form of KEP-2335, for consumers that
// do not know the keyword. The keyword itself stays. The result is canonical
// JSON, and admits the objects that Validate does.
//
// Unions that are not well-formed, which Check warns of, stay as they are: they
// have no effect on validation either.
func UnfoldUnions(schema []byte) ([]byte, error) {
	s, release, err := read(schema, jsondoc.Limits{})
	if err != nil {
		return nil, err
	}
	defer release()
	return syntax.Unfold(s).AppendJSON(nil), nil
}
