package plan

// UnionNames finds the part that a field plays in the unions of an object, for
// all of them at once: an object may have many fields and many unions.
type UnionNames struct {
	names *Props
	roles []UnionRole // by rank
	// Discriminators are the ranks of the unions' discriminators, -1 for a
	// union without.
	Discriminators []int
	// Required counts the unions that require a member: those with a
	// discriminator.
	Required int
}

// UnionRole identifies a field as a member of a union. Field is negative for a
// discriminator.
type UnionRole struct{ Union, Field int }

// NewUnionNames prepares unions. No two of them may have a member in common, and
// no discriminator may be a member.
func NewUnionNames(unions []Union) *UnionNames {
	roles := map[string]UnionRole{}
	for i, u := range unions {
		if u.Discriminator != "" {
			roles[u.Discriminator] = UnionRole{i, -1}
		}
		for j, f := range u.Fields {
			roles[f.Name] = UnionRole{i, j}
		}
	}
	list := make([]Prop, 0, len(roles))
	for name := range roles {
		list = append(list, Prop{Name: name})
	}
	u := &UnionNames{names: NewProps(list)}
	for _, p := range list {
		u.roles = append(u.roles, roles[p.Name])
	}
	for _, x := range unions {
		rank := -1
		if x.Discriminator != "" {
			rank = u.names.Lookup([]byte(x.Discriminator))
			u.Required++
		}
		u.Discriminators = append(u.Discriminators, rank)
	}
	return u
}

// Lookup returns the rank of the field called name among all fields of the
// unions, negative if it has no part in any.
func (u *UnionNames) Lookup(name []byte) int { return u.names.Lookup(name) }

// Role returns what the field of the given rank is.
func (u *UnionNames) Role(rank int) UnionRole { return u.roles[rank] }
