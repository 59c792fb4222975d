package generator

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// A Schema is a component of a published OpenAPI v3 document, with references resolved. It may contain itself.
type Schema struct {
	Name       string // of the component; empty for an inline schema
	Type       string // as in OpenAPI; empty if any type is allowed
	Format     string
	Properties map[string]*Schema
	Keys       []string // of Properties, sorted
	Items      *Schema
	Values     *Schema  // of a map
	Enum       []string // values that are allowed
	Words      []string // capitalized words that the description quotes: enum values, where the schema lists none
	MergeKey   string   // of a list whose items are told apart by a key
	Required   []string
}

// A Document has the components of a group and version.
type Document struct {
	Components map[string]*Schema
	kinds      map[string]string // GVK → name of the component
}

type rawSchema struct {
	Ref         string               `json:"$ref"`
	Type        string               `json:"type"`
	Format      string               `json:"format"`
	Description string               `json:"description"`
	Properties  map[string]rawSchema `json:"properties"`
	Items       *rawSchema           `json:"items"`
	Additional  json.RawMessage      `json:"additionalProperties"`
	AllOf       []rawSchema          `json:"allOf"`
	Enum        []any                `json:"enum"`
	Required    []string             `json:"required"`
	PatchKey    string               `json:"x-kubernetes-patch-merge-key"`
	MapKeys     []string             `json:"x-kubernetes-list-map-keys"`
	Kinds       []struct {
		Group, Version, Kind string
	} `json:"x-kubernetes-group-version-kind"`
}

const refPrefix = "#/components/schemas/"

var quotedWord = regexp.MustCompile("[\"`']([A-Z][A-Za-z0-9]{1,40})[\"`']")

// Parse reads a document as /openapi/v3/apis/GROUP/VERSION publishes it.
func Parse(document []byte) (*Document, error) {
	var raw struct {
		Components struct {
			Schemas map[string]rawSchema `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(document, &raw); err != nil {
		return nil, fmt.Errorf("reading the OpenAPI document failed: %w", err)
	}
	d := &Document{Components: map[string]*Schema{}, kinds: map[string]string{}}
	for name := range raw.Components.Schemas {
		d.Components[name] = &Schema{Name: name}
	}
	for name, r := range raw.Components.Schemas {
		s := d.convert(r)
		s.Name = name
		*d.Components[name] = *s
		for _, k := range r.Kinds {
			d.kinds[gvk(k.Group, k.Version, k.Kind)] = name
		}
	}
	return d, nil
}

func gvk(group, version, kind string) string { return group + "/" + version + "/" + kind }

// Kind returns the schema of a kind, or nil.
func (d *Document) Kind(group, version, kind string) *Schema {
	return d.Components[d.kinds[gvk(group, version, kind)]]
}

func (d *Document) convert(r rawSchema) *Schema {
	if len(r.AllOf) == 1 && r.Type == "" {
		return d.convert(r.AllOf[0])
	}
	if r.Ref != "" {
		if s := d.Components[strings.TrimPrefix(r.Ref, refPrefix)]; s != nil {
			return s
		}
		return &Schema{}
	}
	s := &Schema{Type: r.Type, Format: r.Format, Required: r.Required, MergeKey: r.PatchKey}
	if s.MergeKey == "" && len(r.MapKeys) > 0 {
		s.MergeKey = r.MapKeys[0]
	}
	for _, e := range r.Enum {
		if text, ok := e.(string); ok {
			s.Enum = append(s.Enum, text)
		}
	}
	if s.Type == "string" && len(s.Enum) == 0 {
		for _, m := range quotedWord.FindAllStringSubmatch(r.Description, 20) {
			if !slices.Contains(s.Words, m[1]) {
				s.Words = append(s.Words, m[1])
			}
		}
	}
	if len(r.Properties) > 0 {
		s.Properties = map[string]*Schema{}
		for name, p := range r.Properties {
			s.Properties[name] = d.convert(p)
		}
		s.Keys = slices.Sorted(maps.Keys(s.Properties))
	}
	if r.Items != nil {
		s.Items = d.convert(*r.Items)
	}
	var values rawSchema
	if len(r.Additional) > 0 && json.Unmarshal(r.Additional, &values) == nil {
		s.Values = d.convert(values)
	}
	return s
}

// is reports whether the schema is a component whose name ends in suffix.
func (s *Schema) is(suffix string) bool { return s != nil && strings.HasSuffix(s.Name, suffix) }

// property returns the schema of a property or value, or nil.
func (s *Schema) property(name string) *Schema {
	if s == nil {
		return nil
	}
	if p := s.Properties[name]; p != nil {
		return p
	}
	return s.Values
}

func (s *Schema) items() *Schema {
	if s == nil {
		return nil
	}
	return s.Items
}
