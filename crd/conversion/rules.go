package conversion

import (
	"bytes"
	"encoding/json"
	"fmt"

	"sigs.k8s.io/yaml"
)

// What an annotation may hold. CRDs are hostile: each bound keeps the cost of reading the rules, and of running
// them, in proportion to what a person writes.
const (
	maxRulesBytes  = 256 << 10
	maxConversions = 64
	maxRules       = 2000 // of one conversion
	maxParts       = 16   // of split, join and cel
	maxEnum        = 1000
	maxPathParts   = 64
)

// document is the content of the annotation.
type document struct {
	Conversions []conversion `json:"conversions"`
}

// conversion has the rules between two versions.
type conversion struct {
	Between  []string            `json:"between"`
	Rules    []rule              `json:"rules,omitempty"`
	Preserve *selection          `json:"preserve,omitempty"`
	Lost     map[string][]string `json:"lost,omitempty"`
}

// rule is one rule: exactly one member is set.
type rule struct {
	Move      *moveRule      `json:"move,omitempty"`
	Wrap      *moveRule      `json:"wrap,omitempty"`
	Unwrap    *moveRule      `json:"unwrap,omitempty"`
	Split     *splitRule     `json:"split,omitempty"`
	Join      *joinRule      `json:"join,omitempty"`
	ListToMap *listToMapRule `json:"listToMap,omitempty"`
	MapToList *listToMapRule `json:"mapToList,omitempty"`
	Enum      *enumRule      `json:"enum,omitempty"`
	Constant  *constantRule  `json:"constant,omitempty"`
	CEL       *celRule       `json:"cel,omitempty"`
}

// moveRule relates a field of the first version to a field of the second.
type moveRule struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// splitRule relates a string of the first version to the fields of the second that its parts are.
type splitRule struct {
	From      string   `json:"from"`
	Separator string   `json:"separator"`
	To        []string `json:"to"`
}

// joinRule is the inverse of splitRule.
type joinRule struct {
	From      []string `json:"from"`
	Separator string   `json:"separator"`
	To        string   `json:"to"`
}

// listToMapRule relates a list of objects to a map.
type listToMapRule struct {
	List  string `json:"list"`
	Key   string `json:"key"`
	Map   string `json:"map"`
	Value string `json:"value,omitempty"` // the field that is the value in the map; all but the key if it is empty
}

// enumRule maps values.
type enumRule struct {
	From   string     `json:"from"`
	To     string     `json:"to,omitempty"` // the same path if it is empty
	Values enumValues `json:"values"`
}

// enumValues are pairs of values. The first pair with a value counts.
type enumValues []enumPair

type enumPair struct {
	From any `json:"from"`
	To   any `json:"to"`
}

// UnmarshalJSON reads a map of strings, or a list of pairs of any scalars.
func (e *enumValues) UnmarshalJSON(data []byte) error {
	if trimmed := bytes.TrimSpace(data); len(trimmed) > 0 && trimmed[0] == '[' {
		var list []enumPair
		d := json.NewDecoder(bytes.NewReader(data))
		d.DisallowUnknownFields()
		d.UseNumber()
		if err := d.Decode(&list); err != nil {
			return err
		}
		*e = list
		return nil
	}
	// YAML sorts the keys: of values that become the same one, the first in the alphabet is what it comes back as.
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return fmt.Errorf("values must be a map, or a list of {from, to}")
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		var to any
		if err := d.Decode(&to); err != nil {
			return err
		}
		*e = append(*e, enumPair{From: key, To: to})
	}
	return nil
}

// constantRule gives a value to a field that the other version has not.
type constantRule struct {
	In    string          `json:"in"`
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value"`
}

// celRule calculates values.
type celRule struct {
	From  texts `json:"from"`
	To    texts `json:"to"`
	Value texts `json:"value"`          // an expression for each path of To
	Back  texts `json:"back,omitempty"` // an expression for each path of From; none: the conversion is one way
}

// texts is a string or a list of strings.
type texts []string

// UnmarshalJSON implements json.Unmarshaler.
func (t *texts) UnmarshalJSON(data []byte) error {
	var one string
	if err := json.Unmarshal(data, &one); err == nil {
		*t = texts{one}
		return nil
	}
	var list []string
	if err := json.Unmarshal(data, &list); err != nil {
		return fmt.Errorf("must be a string or a list of strings")
	}
	*t = list
	return nil
}

// selection is "everything", or paths by version.
type selection struct {
	all   bool
	paths map[string][]string
}

// everything is the word that preserves all that no rule converts.
const everything = "everything"

// UnmarshalJSON implements json.Unmarshaler.
func (s *selection) UnmarshalJSON(data []byte) error {
	var word string
	if err := json.Unmarshal(data, &word); err == nil {
		if word != everything {
			return fmt.Errorf("preserve must be %q, or a map of versions to lists of paths", everything)
		}
		s.all = true
		return nil
	}
	if err := json.Unmarshal(data, &s.paths); err != nil {
		return fmt.Errorf("preserve must be %q, or a map of versions to lists of paths", everything)
	}
	return nil
}

// parseRules reads the annotation, which is YAML or JSON.
func parseRules(text string) (*document, error) {
	if len(text) > maxRulesBytes {
		return nil, fmt.Errorf("the rules have %d bytes, more than the limit of %d", len(text), maxRulesBytes)
	}
	var d document
	if err := yaml.UnmarshalStrict([]byte(text), &d); err != nil {
		return nil, err
	}
	switch {
	case len(d.Conversions) == 0:
		return nil, fmt.Errorf("conversions must list at least one pair of versions")
	case len(d.Conversions) > maxConversions:
		return nil, fmt.Errorf("there are %d conversions, more than the limit of %d", len(d.Conversions), maxConversions)
	}
	for i := range d.Conversions {
		if n := len(d.Conversions[i].Rules); n > maxRules {
			return nil, fmt.Errorf("conversions[%d] has %d rules, more than the limit of %d", i, n, maxRules)
		}
	}
	return &d, nil
}
