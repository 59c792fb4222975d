package bug

import "fmt"

// A Bug is one way to be wrong.
type Bug struct {
	Name string
	// Like is a report of a bug of its kind; empty if it was found here first.
	Like string
	// What a client may see.
	What string
	// Edits make it.
	Edits []Edit
}

// An Edit replaces a text that a file has exactly once.
type Edit struct {
	Package  string // import path
	File     string
	Old, New string
}

// Named returns a bug by its name.
func Named(name string) (*Bug, error) {
	for i := range All {
		if All[i].Name == name {
			return &All[i], nil
		}
	}
	return nil, fmt.Errorf("there is no bug %q: `robustness -bugs` lists them", name)
}
