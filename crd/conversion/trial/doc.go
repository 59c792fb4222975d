// Package trial tests conversion rules with random objects: what a conversion must keep, it keeps, also when users edit
// the converted object.
//
//	CRD with rules ── sample ──▶ object a of version A ── Convert ──▶ b of B ── Convert ──▶ must be a
//	                                                                  │ edits
//	                                                                  ▼
//	                                    b' with what was preserved of a ── Convert ──▶ a' ── Convert ──▶ must be b'
//
// # The contract
//
// For each pair of versions, in both directions:
//
//   - A conversion succeeds, and the other version's schema prunes nothing of its result.
//   - An object that was converted and converted back is the same, byte for byte.
//   - After an edit of b, a' has the edit: converted again, it is the edited object.
//   - a' has nothing from elsewhere. Two more objects say what an edit changes: a1, which is b without what was
//     preserved, converted; and a0, which is b' without it, converted. Where a0 and a1 differ, the edit is seen, and a' is
//     a0. Where they are the same, a' is a. What was preserved below parents and list entries that the edit removed may
//     be gone. So may values that rules calculate from several fields, and lists without keys as a whole.
//
// One object in eight has lists of type map in which items have no key, or the same one. They count as lists without
// keys: a value that comes back in another item comes from elsewhere.
//
// Fields that rules declare lost are left out of the objects.
//
// A violation is reported with a small object that shows it.
package trial
