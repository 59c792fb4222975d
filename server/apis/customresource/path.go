package customresource

import (
	"bytes"
	"regexp"
	"strings"

	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/json"

	"github.com/espalier-dev/espalier/crd/request"
	"github.com/espalier-dev/espalier/internal/object"
)

// path is a JSONPath of a printer column or selectable field. Nearly all are
// just member names: those are read from the bytes. Others need the object
// decoded.
type path struct {
	text   string
	names  []string // nil if the path is more than member names
	costly bool     // it is not followed, and finds nothing
}

var onlyNames = regexp.MustCompile(`^(\.[A-Za-z0-9_-]+)+$`)

// parsePath reads a path such as .spec.replicas or .status.conditions[0].type.
func parsePath(text string) (path, error) {
	p := path{text: text}
	if onlyNames.MatchString(text) {
		p.names = request.Steps(text)
		return p, nil
	}
	// Every recursive descent looks at all that the one before has found.
	p.costly = strings.Count(text, "..") > 1
	_, err := p.parsed()
	return p, err
}

// parsed returns the path for the library, anew for every use: it keeps where
// it is in the path itself.
func (p path) parsed() (*jsonpath.JSONPath, error) {
	j := jsonpath.New("path").AllowMissingKeys(true)
	return j, j.Parse("{" + p.text + "}")
}

// find returns the first value at the path, decoded, and whether there is one.
func (p path) find(s *subject) (any, bool, error) {
	if p.costly {
		return nil, false, nil
	}
	if p.names != nil && s.object != nil {
		raw := s.object.Lookup(p.names...)
		if raw == nil {
			return nil, false, nil
		}
		value, err := decode(raw)
		return value, err == nil, err
	}
	j, err := p.parsed()
	if err != nil {
		return nil, false, err
	}
	content, err := s.decoded()
	if err != nil {
		return nil, false, err
	}
	results, err := j.FindResults(content)
	if err != nil || len(results) == 0 || len(results[0]) == 0 {
		return nil, false, err
	}
	return results[0][0].Interface(), true, nil
}

// decode reads a JSON value as API servers do: whole numbers stay whole.
func decode(raw []byte) (value any, err error) {
	// Strings without escapes are most of what paths lead to.
	if len(raw) >= 2 && raw[0] == '"' && bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1]), nil
	}
	err = json.UnmarshalCaseSensitivePreserveInts(raw, &value)
	return value, err
}

// subject is what paths are followed in: an object as bytes, decoded only when
// a path asks for it, or something that is decoded already.
type subject struct {
	object  *object.Object
	content map[string]any
}

func (s *subject) decoded() (map[string]any, error) {
	if s.content == nil {
		if err := json.UnmarshalCaseSensitivePreserveInts(s.object.JSON(), &s.content); err != nil {
			return nil, err
		}
	}
	return s.content, nil
}
