package answer

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// What a miss is about.
const (
	Refused    = "refused here"  // and accepted there
	Admitted   = "accepted here" // and refused there
	StoredMiss = "stored"
	FieldMiss  = "field"
	TextMiss   = "text"
	Warning    = "warning"
	TableMiss  = "table"
	Discovery  = "discovery"
	OpenAPI    = "openapi"
)

// A Miss is a difference between two answers.
type Miss struct {
	What   string `json:"what"`
	Rule   string `json:"rule"`
	Detail string `json:"detail,omitempty"` // with values
}

// An Outcome is the comparison of two answers.
type Outcome struct {
	There, Here bool // accepted
	Equal       bool // the objects, if both accepted
	SameField   bool // code, reason, types and fields of the causes, if both refused
	SameText    bool // messages, if both refused
	Misses      []Miss
}

// A Side is an answer and the normalizer of its server.
type Side struct {
	*Answer
	Normalizer *Normalizer
	Normal     map[string]any // the normalized object of an accepted request
}

// NewSide normalizes the answer.
func NewSide(a *Answer, n *Normalizer) *Side {
	s := &Side{Answer: a, Normalizer: n}
	if a.Accepted() {
		s.Normal = n.Object(a.Object())
	} else {
		n.refused(a)
	}
	return s
}

// causes returns the texts of causes, sorted.
func (s *Side) causes(list []Cause) []string {
	var out []string
	for _, c := range list {
		out = append(out, c.Type+" "+c.Field+": "+s.Normalizer.Text(c.Message))
	}
	slices.Sort(out)
	return out
}

// Compare compares two answers to one request.
func Compare(there, here *Side) Outcome {
	o := Outcome{There: there.Accepted(), Here: here.Accepted()}
	switch {
	case o.There && !o.Here:
		for _, rule := range refusal(here.Answer, here.Normalizer.Text) {
			o.add(Refused, rule, fmt.Sprintf("here: %s", message(here)))
		}
	case !o.There && o.Here:
		for _, rule := range refusal(there.Answer, there.Normalizer.Text) {
			o.add(Admitted, rule, fmt.Sprintf("there: %s", message(there)))
		}
	case o.There:
		o.compareObjects(there, here)
	default:
		o.compareRefusals(there, here)
	}
	if o.There == o.Here && !slices.Equal(there.Warnings, here.Warnings) {
		o.compareWarnings(there.Warnings, here.Warnings)
	}
	return o
}

func message(s *Side) string {
	_, text, _ := s.Status()
	return cut(s.Normalizer.Text(text), 600)
}

func cut(text string, n int) string {
	if len(text) > n {
		return text[:n] + "…"
	}
	return text
}

func (o *Outcome) add(what, rule, detail string) {
	o.Misses = append(o.Misses, Miss{what, rule, detail})
}

func (o *Outcome) compareObjects(there, here *Side) {
	found := Differences(there.Normal, here.Normal)
	if there.Code != here.Code {
		found = append(found, Difference{Path: "HTTP code", What: fmt.Sprintf("%d there, %d here", there.Code, here.Code)})
	}
	o.Equal = len(found) == 0
	for _, d := range found {
		o.add(StoredMiss, strings.TrimPrefix(d.Path, ".")+" "+d.What, d.Detail)
	}
}

func (o *Outcome) compareRefusals(there, here *Side) {
	tr, tm, tc := there.Status()
	hr, hm, hc := here.Status()
	tf, hf := fields(tc), fields(hc)
	o.SameField = there.Code == here.Code && tr == hr && slices.Equal(tf, hf)
	tm, hm = sorted(there.Normalizer.Text(tm)), sorted(here.Normalizer.Text(hm))
	// The order of causes is that of a Go map in places.
	o.SameText = tm == hm || len(tc) > 0 && slices.Equal(there.causes(tc), here.causes(hc))
	detail := fmt.Sprintf("there: %d %s\nhere:  %d %s", there.Code, cut(tm, 600), here.Code, cut(hm, 600))
	switch {
	case o.SameField && o.SameText:
		return
	case o.SameField:
		o.compareTexts(there, here, tc, hc, detail)
		return
	case len(tc) == 0 && len(hc) == 0, there.Code != here.Code, tr != hr:
		o.add(FieldMiss, fmt.Sprintf("there %d %s, here %d %s", there.Code, refusal(there.Answer, there.Normalizer.Text)[0],
			here.Code, refusal(here.Answer, here.Normalizer.Text)[0]), detail)
		return
	}
	for _, c := range tc {
		if !slices.Contains(hf, c.Type+" "+c.Field) {
			o.add(FieldMiss, "missing here: "+c.Type+" "+field(c.Field)+": "+signature(there.Normalizer.Text(c.Message)), detail)
		}
	}
	for _, c := range hc {
		if !slices.Contains(tf, c.Type+" "+c.Field) {
			o.add(FieldMiss, "only here: "+c.Type+" "+field(c.Field)+": "+signature(here.Normalizer.Text(c.Message)), detail)
		}
	}
}

// sorted returns a message with its lines sorted: errors of an apply are lines in the order of a Go map.
func sorted(message string) string {
	lines := strings.Split(message, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// compareTexts finds the first cause whose message differs.
func (o *Outcome) compareTexts(there, here *Side, tc, hc []Cause, detail string) {
	texts := func(s *Side, causes []Cause) (out []string) {
		for _, c := range causes {
			out = append(out, c.Type+" "+field(c.Field)+": "+signature(s.Normalizer.Text(c.Message)))
		}
		return out
	}
	t, h := texts(there, tc), texts(here, hc)
	for i := range t {
		if i < len(h) && t[i] != h[i] {
			o.add(TextMiss, "there "+t[i]+"; here "+h[i], detail)
			return
		}
	}
	rule := refusal(there.Answer, there.Normalizer.Text)[0]
	if len(t) == len(h) && len(t) > 0 {
		o.add(TextMiss, "value in "+rule, detail)
		return
	}
	o.add(TextMiss, "there "+rule+"; here "+refusal(here.Answer, here.Normalizer.Text)[0], detail)
}

func (o *Outcome) compareWarnings(there, here []string) {
	detail := fmt.Sprintf("there: %q\nhere:  %q", there, here)
	before := len(o.Misses)
	for _, w := range there {
		if !slices.Contains(here, w) {
			o.add(Warning, "missing here: "+signature(field(w)), detail)
		}
	}
	for _, w := range here {
		if !slices.Contains(there, w) {
			o.add(Warning, "only here: "+signature(field(w)), detail)
		}
	}
	if len(o.Misses) == before {
		o.add(Warning, "order or number of equal warnings", detail)
	}
}

// A Difference is a place where two trees differ.
type Difference struct {
	Path   string // without indices
	What   string
	Detail string
}

// maxDifferences bounds what is told of two objects.
const maxDifferences = 20

// Differences compares two trees.
func Differences(there, here any) []Difference {
	var found []Difference
	differ(there, here, "", &found)
	return found
}

func differ(there, here any, path string, found *[]Difference) {
	if len(*found) >= maxDifferences || reflect.DeepEqual(there, here) {
		return
	}
	t, isObject := there.(map[string]any)
	h, isObjectHere := here.(map[string]any)
	if isObject && isObjectHere {
		differObjects(t, h, path, found)
		return
	}
	tl, isList := there.([]any)
	hl, isListHere := here.([]any)
	if isList && isListHere {
		if len(tl) != len(hl) {
			*found = append(*found, Difference{path, "length differs", fmt.Sprintf("there: %s\nhere:  %s", show(there), show(here))})
			return
		}
		for i := range tl {
			differ(tl[i], hl[i], path+"[]", found)
		}
		return
	}
	*found = append(*found, Difference{path, "differs", fmt.Sprintf("there: %s\nhere:  %s", show(there), show(here))})
}

func differObjects(there, here map[string]any, path string, found *[]Difference) {
	for _, key := range slices.Sorted(maps.Keys(there)) {
		at := path + "." + segment(key)
		value, ok := here[key]
		if !ok {
			*found = append(*found, Difference{at, "missing here", "there: " + show(there[key])})
			continue
		}
		differ(there[key], value, at, found)
	}
	for _, key := range slices.Sorted(maps.Keys(here)) {
		if _, ok := there[key]; !ok {
			*found = append(*found, Difference{path + "." + segment(key), "only here", "here: " + show(here[key])})
		}
	}
}

// segment returns the key of an object for a rule: keys of maps may be any text.
func segment(key string) string {
	switch {
	case strings.HasPrefix(key, "k:"):
		return "k:{}"
	case strings.HasPrefix(key, "v:"):
		return "v:"
	case plainKey.MatchString(key) && len(key) < 60:
		return key
	}
	return "*"
}

func show(value any) string { return cut(fmt.Sprintf("%v", value), 300) }
