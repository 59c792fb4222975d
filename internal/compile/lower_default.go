package compile

import (
	"github.com/espalier-dev/espalier/internal/exec"
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/plan"
	"github.com/espalier-dev/espalier/internal/syntax"
)

// metaPlace is where in the metadata or type information of an embedded resource
// a schema applies; nil everywhere else. Defaults there have to fit ObjectMeta.
type metaPlace struct {
	parent *metaPlace
	key    string // a field; "" for an item of an array
}

func (p *metaPlace) child(key string) *metaPlace {
	if p == nil {
		return nil
	}
	return &metaPlace{p, key}
}

// keys returns the keys from the inside out; the last one is apiVersion, kind or
// metadata.
func (p *metaPlace) keys() []string {
	var keys []string
	for ; p != nil; p = p.parent {
		keys = append(keys, p.key)
	}
	return keys
}

// wrap puts a value into objects with one member and arrays with one item, from
// the inside out.
func wrap(value []byte, keys []string) []byte {
	var doc []byte
	for i := len(keys) - 1; i >= 0; i-- {
		if keys[i] == "" {
			doc = append(doc, '[')
		} else {
			doc = append(jsondoc.AppendString(append(doc, '{'), keys[i]), ':')
		}
	}
	doc = append(doc, value...)
	for _, k := range keys {
		if k == "" {
			doc = append(doc, ']')
		} else {
			doc = append(doc, '}')
		}
	}
	return doc
}

// prepareDefault returns a default as it is going to be inserted, nil if
// nothing is left of it.
func prepareDefault(n *plan.Node, value *syntax.JSON, at position) ([]byte, error) {
	if at.meta == nil {
		return exec.PrepareDefault(n, value.Written, at.kept)
	}
	raw, err := fitMetadata(value.Raw, at.meta)
	if err != nil || raw == nil {
		return nil, err
	}
	return exec.FillDefaults(n, raw)
}

// fitMetadata returns what ObjectMeta leaves of a default at its place in an
// embedded resource.
func fitMetadata(raw []byte, at *metaPlace) ([]byte, error) {
	keys := at.keys()
	last := len(keys) - 1 // the outermost: apiVersion, kind or metadata
	if keys[last] != "metadata" {
		if raw[0] != '"' {
			return nil, nil
		}
		return raw, nil
	}
	keys = keys[:last]
	doc := wrap(raw, keys)
	if doc[0] != '{' {
		return raw, nil // not an object: validation of the CRD refuses it
	}
	out, err := exec.CoerceMetadata(doc)
	if err != nil {
		return nil, err
	}
	d, err := jsondoc.Parse(out, jsondoc.Limits{MaxDepth: 1 << 20})
	if err != nil {
		return nil, err
	}
	defer d.Release()
	v := jsondoc.Root
	for i := len(keys) - 1; i >= 0; i-- {
		var ok bool
		if keys[i] == "" {
			v, ok = d.Index(v, 0)
		} else {
			v, ok = d.Get(v, keys[i])
		}
		if !ok {
			return nil, nil
		}
	}
	return d.AppendCanonical(nil, v), nil
}
