package bug

import "fmt"

// A Bug is one way to be wrong.
type Bug struct {
	Name string
	// Like is a report of a bug of its kind; empty if it was found here first.
	Like string
	// What a client may see.
	What string
	// Example is an input for which the engine's answer is wrong; empty for bugs of the server.
	Example string
	// Edits make it.
	Edits []Edit
}

// An Edit replaces a text that a file has exactly once.
type Edit struct {
	Package  string // import path
	File     string
	Old, New string
}

// Named returns a bug of a list by its name.
func Named(list []Bug, name string) (*Bug, error) {
	for i := range list {
		if list[i].Name == name {
			return &list[i], nil
		}
	}
	return nil, fmt.Errorf("there is no bug %q", name)
}
