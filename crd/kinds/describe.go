package kinds

// Facts are what is known about a field of a built-in kind, for authors of objects.
type Facts struct {
	Required         bool
	Enum             []string
	Default          any // nil if there is none, or if it depends on other fields
	Format           string
	Minimum, Maximum *int64
	MaxLength        int // 0 if there is no limit
	MaxItems         int // 0 if there is no limit
	Items            *Facts
}

// Describe returns what is known about a field of a type, such as core/v1.Container; nil if nothing is.
func Describe(typeName, field string) *Facts {
	loading.Lock()
	defer loading.Unlock()
	t := readTypes()[typeName]
	if t == nil {
		return nil
	}
	t.load()
	return t.field(field).facts()
}

func (d *fieldData) facts() *Facts {
	if d == nil {
		return nil
	}
	f := &Facts{
		Required: d.Required.set, Enum: d.Enum, Default: d.Default, Format: d.Format, Minimum: d.Minimum, Maximum: d.Maximum,
		MaxLength: d.MaxLength, MaxItems: d.MaxItems, Items: d.Items.facts(),
	}
	if d.DefaultIf != nil {
		f.Default = nil
	}
	return f
}
