package exec

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/plan"
)

// What x-kubernetes-unions means, by KEP-2335, which was never built:
//
//   - A member is set if its key is there, whatever the value. The KEP defines
//     unions by unfolding them to "required", and nulls that stand for nothing
//     are gone before validation: a null that is still there is one that
//     nullable makes a value.
//   - At most one member of a union is set: they are "mutual exclusive".
//   - Of a union with a discriminator, exactly one is: its unfolding has a
//     "required" in each branch of oneOf. The KEP unfolds no other.
//   - A discriminator may be missing, since the KEP does not require it. If it
//     is there, it has the value of the member that is set.
//
// Unions that are not well-formed are not in the plan.

// unionHit is a member of a union that is set.
type unionHit struct {
	role plan.UnionRole
	key  jsondoc.Value
}

// seenDiscriminator is a discriminator that is in the object.
type seenDiscriminator struct {
	rank  int
	value jsondoc.Value
}

// unionNames returns the index of n's unions.
func unionNames(n *plan.Node) *plan.UnionNames {
	if n.Rare.UnionNames == nil {
		return plan.NewUnionNames(n.Rare.Unions)
	}
	return n.Rare.UnionNames
}

// unionsValid reports whether the object v satisfies the unions of n. Its cost
// depends on the size of v, however many unions and members there are.
func unionsValid(d *jsondoc.Doc, v jsondoc.Value, n *plan.Node) bool {
	if n.Rare == nil || len(n.Rare.Unions) == 0 || d.Kind(v) != jsondoc.Object {
		return true
	}
	var (
		names    = unionNames(n)
		hitsHere [16]unionHit
		seenHere [16]seenDiscriminator
		hits     = hitsHere[:0]
		seen     = seenHere[:0]
	)
	end := d.Next(v)
	for k := v + 1; k < end; k = d.Next(k + 1) {
		rank := names.Lookup(d.Key(k))
		if rank < 0 {
			continue
		}
		role := names.Role(rank)
		if role.Field < 0 {
			seen = append(seen, seenDiscriminator{rank, k + 1})
			continue
		}
		if len(hits) == len(n.Rare.Unions) {
			return false // more members than unions
		}
		hits = append(hits, unionHit{role, k})
	}
	sortHits(hits)
	sortSeen(seen)
	discriminated := 0
	for i, h := range hits {
		if i > 0 && hits[i-1].role.Union == h.role.Union {
			return false
		}
		rank := names.Discriminators[h.role.Union]
		if rank < 0 {
			continue
		}
		discriminated++
		value, ok := discriminatorOf(seen, rank)
		if ok && !textIs(d, value, n.Rare.Unions[h.role.Union].Fields[h.role.Field].Value) {
			return false
		}
	}
	return discriminated == names.Required
}

// sortHits sorts by union, and within one in the order of the document.
func sortHits(hits []unionHit) {
	slices.SortFunc(hits, func(a, b unionHit) int {
		return cmp.Or(a.role.Union-b.role.Union, int(a.key)-int(b.key))
	})
}

func sortSeen(seen []seenDiscriminator) {
	slices.SortFunc(seen, func(a, b seenDiscriminator) int { return a.rank - b.rank })
}

func discriminatorOf(seen []seenDiscriminator, rank int) (jsondoc.Value, bool) {
	i, ok := slices.BinarySearchFunc(seen, rank, func(s seenDiscriminator, rank int) int { return s.rank - rank })
	if !ok {
		return 0, false
	}
	return seen[i].value, true
}

// textIs reports whether v is the string s.
func textIs(d *jsondoc.Doc, v jsondoc.Value, s string) bool {
	if d.Kind(v) != jsondoc.String {
		return false
	}
	raw := d.Raw(v)
	if d.Plain(v) {
		return string(raw[1:len(raw)-1]) == s
	}
	return len(raw) <= 6*len(s)+2 && d.Text(v) == s // \u0000 is the longest way to write a byte
}

// unionErrors says how the object v, whose path is at, violates the unions of
// n, which has some: at most one error for each union.
func unionErrors(d *jsondoc.Doc, v jsondoc.Value, n *plan.Node, at path) []Violation {
	if d.Kind(v) != jsondoc.Object {
		return nil
	}
	names := unionNames(n)
	var hits []unionHit
	var seen []seenDiscriminator
	for m := range d.Members(v) {
		rank := names.Lookup(d.Key(m.Key))
		if rank < 0 {
			continue
		}
		if role := names.Role(rank); role.Field >= 0 {
			hits = append(hits, unionHit{role, m.Key})
		} else {
			seen = append(seen, seenDiscriminator{rank, m.Value})
		}
	}
	sortHits(hits)
	sortSeen(seen)
	r := unionReport{d: d, object: v, path: at.field(), at: at}
	for i := range n.Rare.Unions {
		r.union = &n.Rare.Unions[i]
		end := 0
		for end < len(hits) && hits[end].role.Union == i {
			end++
		}
		r.set, hits = hits[:end], hits[end:]
		r.discriminator, r.hasDiscriminator = 0, false
		if rank := names.Discriminators[i]; rank >= 0 {
			r.discriminator, r.hasDiscriminator = discriminatorOf(seen, rank)
		}
		r.check()
		if r.size > maxViolationBytes {
			break
		}
	}
	return r.list
}

// unionReport words the errors of an object's unions, one after another.
type unionReport struct {
	d      *jsondoc.Doc
	object jsondoc.Value
	at     path
	path   string
	list   []Violation
	size   int

	union            *plan.Union
	set              []unionHit
	discriminator    jsondoc.Value
	hasDiscriminator bool
}

func (r *unionReport) check() {
	u := r.union
	switch {
	case len(r.set) > 1:
		r.add(field.ErrorTypeForbidden, "", "at most one of the fields "+r.members()+" may be set, found "+r.found()+": "+r.keep())
	case len(r.set) == 0 && u.Discriminator != "":
		r.add(field.ErrorTypeRequired, "", "one of the fields "+r.members()+" must be set, found none: "+r.missing())
	case len(r.set) == 1 && r.hasDiscriminator:
		if f := u.Fields[r.set[0].role.Field]; !textIs(r.d, r.discriminator, f.Value) {
			r.disagree(f)
		}
	}
}

// keep says what to do about several members.
func (r *unionReport) keep() string {
	u := r.union
	if r.hasDiscriminator {
		for _, h := range r.set {
			if f := u.Fields[h.role.Field]; textIs(r.d, r.discriminator, f.Value) {
				return quoted(u.Discriminator) + " is " + quoted(f.Value) + ", keep only " + quoted(f.Name)
			}
		}
	}
	if u.Discriminator != "" {
		return "keep one, and set the discriminator " + quoted(u.Discriminator) + " to its value"
	}
	return "keep one"
}

// missing says what to do about a union without a member.
func (r *unionReport) missing() string {
	u := r.union
	if !r.hasDiscriminator {
		return "set one; the discriminator " + quoted(u.Discriminator) + " says which"
	}
	if f, ok := r.named(); ok {
		return quoted(u.Discriminator) + " is " + quoted(f.Value) + ", set " + quoted(f.Name)
	}
	return "set one, and set the discriminator " + quoted(u.Discriminator) + " to its value"
}

// named returns the member that the discriminator names.
func (r *unionReport) named() (plan.UnionField, bool) {
	if r.d.Kind(r.discriminator) == jsondoc.String {
		value := r.d.Text(r.discriminator)
		for _, f := range r.union.Fields {
			if f.Value == value {
				return f, true
			}
		}
	}
	return plan.UnionField{}, false
}

// disagree reports that the discriminator does not name f, which is set.
func (r *unionReport) disagree(f plan.UnionField) {
	detail := "must be " + quoted(f.Value) + ", because the field " + quoted(f.Name) + " is set"
	if other, ok := r.named(); ok {
		detail += "; for " + quoted(other.Value) + " set " + quoted(other.Name) + " instead"
	}
	to := append(r.at[:len(r.at):len(r.at)], step{key: []byte(r.union.Discriminator)})
	r.violation(to.field(), r.discriminator, field.ErrorTypeInvalid, r.d.Any(r.discriminator), detail)
}

// add reports an error about the object itself.
func (r *unionReport) add(t field.ErrorType, bad any, detail string) {
	at := r.path
	if at == "" {
		at = rootPath
	}
	r.violation(at, r.object, t, bad, detail)
}

// rootPath is how upstream's field.Path writes the path of the whole object.
const rootPath = "<nil>"

func (r *unionReport) violation(at string, v jsondoc.Value, t field.ErrorType, bad any, detail string) {
	r.size += len(at) + len(detail)
	r.list = append(r.list, Violation{
		Type: t, Path: at, BadValue: bad, Detail: detail,
		Keyword: "x-kubernetes-unions", At: strings.TrimPrefix(at, rootPath), Offset: r.d.Offset(v),
	})
}

// members lists the union's fields.
func (r *unionReport) members() string {
	return quotedList(len(r.union.Fields), func(i int) string { return r.union.Fields[i].Name })
}

// found lists the fields that are set.
func (r *unionReport) found() string {
	return quotedList(len(r.set), func(i int) string { return r.union.Fields[r.set[i].role.Field].Name })
}

const (
	maxListed = 10  // names that an error lists
	maxQuoted = 100 // bytes of a name that an error repeats
)

func quotedList(n int, name func(int) string) string {
	var b strings.Builder
	for i := range min(n, maxListed) {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(quoted(name(i)))
	}
	if n > maxListed {
		b.WriteString(" and " + strconv.Itoa(n-maxListed) + " more")
	}
	return b.String()
}

func quoted(s string) string {
	if len(s) > maxQuoted {
		s = strings.ToValidUTF8(s[:maxQuoted], "") + "…"
	}
	return strconv.Quote(s)
}
