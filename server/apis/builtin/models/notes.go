package models

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"reflect"
	"sync"
)

// notesFile has what only the comments of k8s.io/api say: a test writes it.
//
//go:embed notes.json
var notesFile []byte

// notes are the facts that no other source has.
type notes struct {
	// Required are the fields that may be left out by their tags, and not by their
	// comments.
	Required map[string]bool `json:"required"`
	// Optional are the fields that may be left out by their comments, though Go writes
	// them when they are empty.
	Optional map[string]bool `json:"optional"`
	// Granular are the objects whose fields have owners of their own, where a comment
	// says so. It is the rule without a comment.
	Granular map[string]bool `json:"granular"`
	// Enums are the values, in order, of the types that have no others.
	Enums map[string][]any `json:"enums"`
}

// readNotes reads the notes. The file is part of the program: if it cannot be read,
// that is a panic.
var readNotes = sync.OnceValue(func() *notes {
	n := &notes{}
	if err := json.Unmarshal(notesFile, n); err != nil {
		panic(fmt.Sprintf("models: reading notes.json failed: %v", err))
	}
	return n
})

// isRequired returns whether a field must be there: if nothing in its tag lets
// it be left out, and unless its comment says otherwise.
func isRequired(model, field string, mayBeOmitted bool) bool {
	n, key := readNotes(), model+"."+field
	return n.Required[key] || !mayBeOmitted && !n.Optional[key]
}

// enumOf returns the values of a type that has no others, nil if it has.
func enumOf(t reflect.Type) []any { return readNotes().Enums[t.PkgPath()+"."+t.Name()] }
