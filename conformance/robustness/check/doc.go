// Package check finds violations in the record of a run.
//
//	history.History ──▶ index ──▶ twelve checkers ──▶ []Violation
//	                                                     │
//	                    Minimise, Print, Picture ◀───────┘
//
// The index is built once per history: the versions of each key by etcd's own log, the
// operation behind each write, and two bounds that tie etcd's revisions to the clock of
// the run. A revision cannot be older than the call of any operation that wrote at or
// below it, and it existed when a client was shown it. Thus "some time between call and
// return" becomes a range of revisions, and every checker except linear decides with
// sorting and binary search.
//
// # Checkers and their rules
//
//	corruption  key, revision, back: a value below another key, revisions that go back
//	log         lost, twice, refused, invented, resurrected, chain, uid, effect, order,
//	            revision, answer, future, reason, finalizers: what was said is what etcd has
//	linear      order: porcupine finds an order of a key's operations; undecided: in time
//	watch       lost, unique, order, bookmark, type, bytes, deleted, filter, invented,
//	            initial, future, silent
//	lists       content, pages, mode, future: a list is the state at its revision
//	monotonic   stale: a client does not read back
//	fresh       stale, initial: a consistent read has what was acknowledged on any replica
//	schema      answer, event, late, stored, storage, orphan, gone: what was acknowledged
//	            of a CRD is in force
//	cache       missing, stale, content: an informer at rest has what etcd has
//	garbage     owned: the garbage collector deletes nothing whose owner lives
//	leader      token, holder: one leader at a time by fencing tokens
//	quota       exceeded
//
// # Terminology
//
// A version is a key between two writes. An operation is acknowledged if its outcome is
// Done. The window of an operation is the range of revisions at which it can have taken
// effect: it begins with the highest revision that a client had been shown before the
// call, and ends with the last write that can have been done before the return. A change
// is a write as a watch with a selector sees it.
//
// # Invariants
//
// A checker reports only what no correct server can do: where the history leaves room,
// the checker takes the interpretation that favours the server. A checker never panics,
// whatever the history holds. Reductions of Minimise cannot make a correct history
// incorrect, so a violation of a minimised history is a violation of the whole.
package check
