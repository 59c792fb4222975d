package impact

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Effects is a set of what a change does to an object.
type Effects uint32

// What a change can do to an object.
const (
	// LosesFields: the new schema of its version prunes fields that are read today.
	LosesFields Effects = 1 << iota
	// LosesInConversion: fields are pruned on the way to the new storage version, or new conversion rules do not find
	// values that former ones have preserved.
	LosesInConversion
	// RefusedOnUpdate: it cannot be updated any more, even if the update changes nothing else.
	RefusedOnUpdate
	// RefusedOnCreate: the server refuses the same object if it is created anew, as GitOps and
	// backups do.
	RefusedOnCreate
	// VersionGone: it is stored in a version that the new CRD does not have, and cannot be read.
	VersionGone
	// NotConvertible: it cannot be converted to the new storage version, or conversion rules cannot convert it to another
	// version that is served.
	NotConvertible
	// Unreadable: the new CRD cannot read it for another reason.
	Unreadable
	// NotServed: clients cannot use the version any more that it is stored in.
	NotServed
	// ConversionUnknown: only a webhook could say what becomes of it.
	ConversionUnknown
	// ChangesValues: a value that is read today is another one, because a default changed or is gone.
	ChangesValues
	// NewDefaults: fields are filled in that it does not have today.
	NewDefaults
	// KeepsFields: fields appear that are stored, and pruned when they are read today.
	KeepsFields
	// DeadManagers: managedFields has entries of versions that the new CRD does not have.
	DeadManagers
	// UnreadableToday: the old CRD cannot read it, or it is no object of the resource.
	UnreadableToday

	// Breaking are the effects that lose data or stop clients.
	Breaking = LosesFields | LosesInConversion | RefusedOnUpdate | RefusedOnCreate | VersionGone | NotConvertible | Unreadable | NotServed | ConversionUnknown
	// Loss are the effects that lose data.
	Loss = LosesFields | LosesInConversion | VersionGone | NotConvertible | Unreadable
)

// effects are their names in JSON, and what they say of several objects and of one.
var effects = [...]struct{ name, says, one string }{
	{"LosesFields", "lose fields", "loses fields"},
	{"LosesInConversion", "lose fields when they are converted", "loses fields when it is converted"},
	{"RefusedOnUpdate", "cannot be updated", "cannot be updated"},
	{"RefusedOnCreate", "are refused if they are created again", "is refused if it is created again"},
	{"VersionGone", "are stored in a version that the new CRD does not have", "is stored in a version that the new CRD does not have"},
	{"NotConvertible", "cannot be converted to another version", "cannot be converted to another version"},
	{"Unreadable", "cannot be read", "cannot be read"},
	{"NotServed", "are stored in a version that is no longer served", "is stored in a version that is no longer served"},
	{"ConversionUnknown", "need a conversion webhook that was not called", "needs a conversion webhook that was not called"},
	{"ChangesValues", "get other values", "gets other values"},
	{"NewDefaults", "get new defaults", "gets new defaults"},
	{"KeepsFields", "show fields that are stored and hidden today", "shows fields that are stored and hidden today"},
	{"DeadManagers", "have managedFields of versions that the new CRD does not have", "has managedFields of versions that the new CRD does not have"},
	{"UnreadableToday", "cannot be read today", "cannot be read today"},
}

// Each returns the members of the set, the most severe first.
func (e Effects) Each() []Effects {
	var all []Effects
	for i := range effects {
		if e>>i&1 != 0 {
			all = append(all, 1<<i)
		}
	}
	return all
}

func (e Effects) list(text func(i int) string) []string {
	texts := []string{}
	for i := range effects {
		if e>>i&1 != 0 {
			texts = append(texts, text(i))
		}
	}
	return texts
}

// Says completes a sentence that begins with a number of objects.
func (e Effects) Says() string {
	return strings.Join(e.list(func(i int) string { return effects[i].says }), ", ")
}

// SaysOf completes a sentence that begins with this number of objects.
func (e Effects) SaysOf(n int64) string {
	if n == 1 {
		return strings.Join(e.list(func(i int) string { return effects[i].one }), ", ")
	}
	return e.Says()
}

// String lists the names of the members.
func (e Effects) String() string {
	return strings.Join(e.list(func(i int) string { return effects[i].name }), ",")
}

// MarshalJSON implements json.Marshaler: a list of names.
func (e Effects) MarshalJSON() ([]byte, error) {
	return json.Marshal(e.list(func(i int) string { return effects[i].name }))
}

// UnmarshalJSON implements json.Unmarshaler.
func (e *Effects) UnmarshalJSON(data []byte) error {
	var names []string
	if err := json.Unmarshal(data, &names); err != nil {
		return err
	}
	*e = 0
next:
	for _, name := range names {
		for i := range effects {
			if effects[i].name == name {
				*e |= 1 << i
				continue next
			}
		}
		return fmt.Errorf("unknown effect %q", name)
	}
	return nil
}
