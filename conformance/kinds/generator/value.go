package generator

import (
	"strings"
	"unicode"
)

// maxDepth bounds generated values: a schema may contain itself.
const maxDepth = 5

// value generates a value for a field. Most values have the type of the schema.
func (m *mutation) value(s *Schema, name string, depth int) any {
	switch {
	case s == nil:
		return Copy(pick(m.src, anything))
	case s.is(".Quantity"):
		return pick(m.src, quantities)
	case s.is(".IntOrString"):
		return pick(m.src, mixed)
	case s.Format == "date-time":
		return pick(m.src, times)
	case s.is(".Duration"):
		return pick(m.src, spans)
	case s.is(".ObjectMeta"):
		return m.metadata()
	}
	if found := m.known[name]; len(found) > 0 && m.src.Chance(30) {
		return Copy(pick(m.src, found))
	}
	switch s.Type {
	case "string":
		return m.text(s, name)
	case "integer", "number":
		if strings.Contains(strings.ToLower(name), "port") && m.src.Chance(70) {
			return pick(m.src, portsOf)
		}
		return pick(m.src, integers)
	case "boolean":
		return m.src.Chance(50)
	case "array":
		return m.list(s, name, depth)
	case "object":
		return m.object(s, name, depth)
	}
	return Copy(pick(m.src, anything))
}

func (m *mutation) text(s *Schema, name string) any {
	switch {
	case len(s.Enum) > 0 && m.src.Chance(75):
		return pick(m.src, s.Enum)
	case len(s.Enum) > 0:
		return m.almost(pick(m.src, s.Enum))
	case s.Format == "byte":
		return pick(m.src, encoded)
	case len(s.Words) > 0 && m.src.Chance(50):
		return pick(m.src, s.Words)
	case len(s.Words) > 0 && m.src.Chance(20):
		return m.almost(pick(m.src, s.Words))
	}
	if pool := poolFor(name); pool != nil && m.src.Chance(75) {
		return pick(m.src, pool)
	}
	return pick(m.src, pick(m.src, generic))
}

// almost returns a text that only a careless check takes for the one given.
func (m *mutation) almost(text string) string {
	switch m.src.IntN(6) {
	case 0:
		return strings.ToLower(text)
	case 1:
		return strings.ToUpper(text)
	case 2:
		return text + " "
	case 3:
		return text + "s"
	case 4:
		return strings.TrimRightFunc(text, unicode.IsLower)
	}
	return ""
}

func (m *mutation) list(s *Schema, name string, depth int) any {
	out := []any{}
	if depth >= maxDepth {
		return out
	}
	for range m.src.IntN(4) {
		out = append(out, m.value(s.items(), name, depth+1))
	}
	return out
}

func (m *mutation) object(s *Schema, name string, depth int) any {
	out := map[string]any{}
	if depth >= maxDepth {
		return out
	}
	if len(s.Keys) == 0 {
		for range m.src.IntN(3) {
			key := pick(m.src, labelKeys)
			if s.Values == nil || s.Values.Type == "string" {
				out[key] = pick(m.src, labelValues)
			} else {
				out[m.mapKey(name)] = m.value(s.Values, key, depth+1)
			}
		}
		return out
	}
	for _, key := range s.Required {
		if m.src.Chance(90) {
			out[key] = m.value(s.Properties[key], key, depth+1)
		}
	}
	for range 1 + m.src.IntN(2) {
		key := pick(m.src, s.Keys)
		out[key] = m.value(s.Properties[key], key, depth+1)
	}
	return out
}

// resources are keys of the maps from resources to quantities.
var resources = []string{
	"cpu", "memory", "storage", "ephemeral-storage", "pods", "hugepages-2Mi", "example.com/gpu", "requests.cpu", "limits.memory", "requests.storage", "count/deployments.apps", "CPU", "", "a/b/c", "services.nodeports", "nodots", "kubernetes.io/x",
}

func (m *mutation) mapKey(name string) string {
	switch strings.ToLower(name) {
	case "limits", "requests", "hard", "used", "capacity", "allocatable", "min", "max", "default", "defaultrequest", "maxlimitrequestratio", "overhead", "podfixed", "allocatedresources":
		return pick(m.src, resources)
	}
	return pick(m.src, labelKeys)
}
