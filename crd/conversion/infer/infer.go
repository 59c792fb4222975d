package infer

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/version"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/conversion"
	"github.com/espalier-dev/espalier/internal/crdtree"
)

// Rule is a proposed rule.
type Rule struct {
	Text string // YAML, in one line
	Sure bool
	Why  string // what the proposal is based on
}

// Pair has the rules between two versions.
type Pair struct {
	From, To string
	Rules    []Rule
	// Preserved are the fields of each version that no rule converts.
	Preserved map[string][]string
}

// Proposal has the rules of a CRD.
type Proposal struct {
	CRD   *crd.CRD // with the rules as its annotation
	Pairs []Pair
}

// Propose proposes rules for all versions of a CRD and, if old is not nil, for those that only the old one has. A
// version is converted to the next higher one.
func Propose(old, now *crd.CRD) (*Proposal, error) {
	merged := *now
	merged.Versions = slices.Clone(now.Versions)
	if old != nil {
		if old.Group != now.Group || old.Kind != now.Kind {
			return nil, fmt.Errorf("%s and %s are CRDs of different kinds", old.Name, now.Name)
		}
		for i := range old.Versions {
			if now.Version(old.Versions[i].Name) == nil {
				merged.Versions = append(merged.Versions, old.Versions[i])
			}
		}
	}
	if len(merged.Versions) < 2 {
		return nil, fmt.Errorf("%s has only the version %s: rules convert between two versions with different names", now.Name, merged.Versions[0].Name)
	}
	slices.SortStableFunc(merged.Versions, func(a, b crd.Version) int {
		return version.CompareKubeAwareVersionStrings(a.Name, b.Name)
	})
	p := &Proposal{CRD: &merged}
	for i := range len(merged.Versions) - 1 {
		pair, err := inferPair(&merged.Versions[i], &merged.Versions[i+1])
		if err != nil {
			return nil, err
		}
		p.Pairs = append(p.Pairs, *pair)
	}
	return p, p.settle()
}

// settle drops rules until the rest compiles.
func (p *Proposal) settle() error {
	for {
		p.annotate()
		_, found, err := conversion.Compile(p.CRD)
		p.CRD.Release()
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return nil
		}
		dropped := false
		for i := range p.Pairs {
			rules := p.Pairs[i].Rules
			kept := rules[:0:0]
			for j, r := range rules {
				at := fmt.Sprintf("conversions[%d].rules[%d]:", i, j)
				wrong := slices.IndexFunc(found, func(f findingOf) bool { return strings.HasPrefix(f.Detail, at) })
				if wrong < 0 {
					kept = append(kept, r)
				}
			}
			dropped = dropped || len(kept) < len(rules)
			p.Pairs[i].Rules = kept
		}
		if dropped {
			continue
		}
		// The rest is about rules together: without the last ones, which matter least.
		for i := range p.Pairs {
			if rules := p.Pairs[i].Rules; len(rules) > 0 {
				p.Pairs[i].Rules = rules[:len(rules)/2]
				dropped = true
			}
		}
		if !dropped {
			return fmt.Errorf("no rules are possible: %s", found[0].Detail)
		}
	}
}

// annotate gives the CRD the rules.
func (p *Proposal) annotate() {
	p.CRD.Annotations = maps.Clone(p.CRD.Annotations)
	if p.CRD.Annotations == nil {
		p.CRD.Annotations = map[string]string{}
	}
	p.CRD.Annotations[conversion.Annotation] = p.Text()
}

// Text returns the rules as YAML, with comments about what is unsure.
func (p *Proposal) Text() string {
	var b strings.Builder
	b.WriteString("conversions:\n")
	for i := range p.Pairs {
		pair := &p.Pairs[i]
		fmt.Fprintf(&b, "- between: [%s, %s]\n", quote(pair.From), quote(pair.To))
		if len(pair.Rules) > 0 {
			b.WriteString("  rules:\n")
		}
		for _, r := range pair.Rules {
			if !r.Sure {
				fmt.Fprintf(&b, "  # unsure: %s\n", r.Why)
			}
			fmt.Fprintf(&b, "  - %s\n", r.Text)
		}
		for _, v := range []string{pair.From, pair.To} {
			other := pair.From
			if v == other {
				other = pair.To
			}
			list := pair.Preserved[v]
			for _, path := range list[:min(len(list), maxListed)] {
				fmt.Fprintf(&b, "  # preserved: %s of %s, which %s has not\n", path, v, other)
			}
			if n := len(list) - maxListed; n > 0 {
				fmt.Fprintf(&b, "  # preserved: %d more fields of %s\n", n, v)
			}
		}
		b.WriteString("  preserve: everything\n")
	}
	return b.String()
}

// maxListed is how many fields without a rule are listed.
const maxListed = 40

// plain are names that YAML takes for strings without quotes, wherever they are.
var plain = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_./-]*$`)

// quote writes a name as YAML. Words such as on and no are booleans in some dialects.
func quote(s string) string {
	switch strings.ToLower(s) {
	case "true", "false", "yes", "no", "on", "off", "y", "n", "null":
	default:
		if plain.MatchString(s) {
			return s
		}
	}
	return "'" + strings.ReplaceAll(s, "'", "''") + "'"
}

// inferPair finds rules between two versions.
func inferPair(a, b *crd.Version) (*Pair, error) {
	w := &work{pair: &Pair{From: a.Name, To: b.Name, Preserved: map[string][]string{}}}
	var roots [2]*node
	for i, v := range []*crd.Version{a, b} {
		s := crdtree.Parse(v)
		if s.Tree == nil || len(s.Problems) > 0 {
			return nil, fmt.Errorf("version %s has no valid schema", v.Name)
		}
		roots[i] = newNode("", s.Tree, nil)
	}
	w.context(roots[0], roots[1])
	w.preserve()
	return w.pair, nil
}
