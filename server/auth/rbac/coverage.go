package rbac

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/component-helpers/auth/rbac/validation"
)

// Comparing rules takes them apart into single permissions: groups times
// resources times verbs times names. A rule of a few hundred kilobytes can be more
// of them than there is time for.
const (
	maxPermissions = 100_000
	maxComparisons = 4_000_000
	maxLines       = 500 // of a message
)

// missingRights returns which of the wanted permissions are not among those that
// are owned. It fails if the comparison would take too long.
func missingRights(owned, wanted []rbacv1.PolicyRule) ([]rbacv1.PolicyRule, error) {
	rest := withoutEqual(owned, wanted)
	n := 0
	for i := range rest {
		n += permissions(&rest[i])
		if n > maxPermissions || n*len(owned) > maxComparisons {
			return nil, fmt.Errorf("the rules are more permissions than can be compared (%d with %d rules): use fewer and shorter rules", n, len(owned))
		}
	}
	_, missing := validation.Covers(owned, rest)
	return missing, nil
}

// withoutEqual leaves out the rules that the user has in exactly this form. These are
// most rules when a user binds a large role that is bound to them as well.
func withoutEqual(owned, wanted []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	have := make(map[string]bool, len(owned))
	for i := range owned {
		have[spell(&owned[i])] = true
	}
	var rest []rbacv1.PolicyRule
	for i := range wanted {
		// Names make a rule about paths cover nothing, not even itself.
		odd := len(wanted[i].NonResourceURLs) > 0 && len(wanted[i].ResourceNames) > 0
		if odd || !have[spell(&wanted[i])] {
			rest = append(rest, wanted[i])
		}
	}
	return rest
}

// spell writes a rule in one string that no other rule has.
func spell(r *rbacv1.PolicyRule) string {
	var b strings.Builder
	for _, list := range [][]string{r.Verbs, r.APIGroups, r.Resources, r.ResourceNames, r.NonResourceURLs} {
		b.WriteString(strconv.Itoa(len(list)))
		for _, s := range list {
			b.WriteByte(' ')
			b.WriteString(strconv.Quote(s))
		}
		b.WriteByte(';')
	}
	return b.String()
}

// permissions returns how many single permissions a rule is, or a little more
// than maxPermissions.
func permissions(r *rbacv1.PolicyRule) int {
	n := 1
	for _, size := range []int{len(r.APIGroups), len(r.Resources), len(r.Verbs), max(1, len(r.ResourceNames))} {
		if n *= size; n > maxPermissions {
			return maxPermissions + 1
		}
	}
	return min(n+len(r.NonResourceURLs)*len(r.Verbs), maxPermissions+1)
}

// describeRules writes rules as messages have them: those about one resource put
// together, sorted, one on a line.
func describeRules(rules []rbacv1.PolicyRule) string {
	var lines []string
	for _, r := range compact(rules) {
		lines = append(lines, describeRule(&r))
	}
	slices.Sort(lines)
	lines = slices.Compact(lines)
	if more := len(lines) - maxLines; more > 0 {
		lines = append(lines[:maxLines], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, "\n")
}

// compact joins the verbs of single permissions for the same resource.
func compact(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var joined []rbacv1.PolicyRule
	places := map[schema.GroupResource]int{}
	for _, r := range rules {
		if len(r.APIGroups) != 1 || len(r.Resources) != 1 || len(r.ResourceNames)+len(r.NonResourceURLs) > 0 {
			joined = append(joined, r)
			continue
		}
		resource := schema.GroupResource{Group: r.APIGroups[0], Resource: r.Resources[0]}
		if at, ok := places[resource]; ok {
			joined[at].Verbs = append(joined[at].Verbs, r.Verbs...)
			continue
		}
		places[resource] = len(joined)
		r.Verbs = slices.Clone(r.Verbs)
		joined = append(joined, r)
	}
	return joined
}

func describeRule(r *rbacv1.PolicyRule) string {
	var parts []string
	for _, part := range []struct {
		name string
		list []string
	}{
		{"APIGroups", r.APIGroups},
		{"Resources", r.Resources},
		{"NonResourceURLs", r.NonResourceURLs},
		{"ResourceNames", r.ResourceNames},
		{"Verbs", r.Verbs},
	} {
		if len(part.list) > 0 {
			parts = append(parts, fmt.Sprintf("%s:%q", part.name, part.list))
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
