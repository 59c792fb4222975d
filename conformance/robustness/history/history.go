package history

// A History is everything that is known of one run. It is JSON, so that a run that
// violates something can be kept, minimised and looked at again.
type History struct {
	Seed     uint64
	Schedule string // the command that repeats it
	// Operations are in the order of their calls.
	Operations []Operation
	Sessions   []Session
	// Writes is etcd's own log of all keys of the run, in the order of revisions.
	Writes []Write
	Faults []Fault
	Acks   []Ack
	Caches []Cache
	Leads  []Lead
	Quotas []Quota
}

// An Item is a custom resource of the harness as a server or etcd shows it.
//
// Its spec is {"log":[id…], "marks":{manager: id…}, "p<N>": "d"}: a JSON or merge patch
// or an update appends the ID of its operation to log, an apply by a manager sets its
// mark, and p<N> is a default that only schema N has. So the bytes say which operations
// have been done, in which order, and by which schema they are shown.
type Item struct {
	Resource   string // plural; "things" if empty
	Name       string // namespace/name, or name
	UID        string
	Revision   int64 // metadata.resourceVersion
	Log        []string
	Marks      map[string]string
	Schema     int    // N of p<N>; -1 if there is none
	APIVersion string // of the bytes
	Deleting   bool   // has a deletionTimestamp
	Finalizers []string
	Owners     []string // UIDs
	// Labels is what selectors select by. A history without any labels in Writes has
	// sessions with label selectors checked for order only.
	Labels map[string]string `json:",omitempty"`
}

// An Outcome is what a client knows of an operation.
type Outcome string

// The outcomes. Unknown is no answer, and an answer that says so: 5xx without a
// statement that nothing was written.
const (
	Done    Outcome = "done"
	Refused Outcome = "refused" // it was said that nothing was written, or that nothing is there
	Unknown Outcome = "unknown"
)

// The verbs of operations.
const (
	Create           = "create"
	Update           = "update"
	Patch            = "patch" // appends ID to log; Mode says by which form: json, merge
	Apply            = "apply" // sets mark Mode to ID
	Delete           = "delete"
	DeleteCollection = "deletecollection"
	Get              = "get"
	List             = "list"
)

// An Operation is one request and its answer. A list in pages is one operation.
type Operation struct {
	Client, Replica int
	Verb            string
	Resource        string // plural; "things" if empty
	Key             string // Name of the item; empty for lists
	ID              string // of a write: unique in the history
	Mode            string // see the verbs; of reads: "" (consistent), "0", "exact:<rv>", "min:<rv>", of lists in pages with "/<limit>" behind
	UID             string // precondition of a delete, if not empty
	Revision        int64  // precondition of an update or delete, if not 0
	Sent            Item   // what a create or update asked for
	Call, Return    int64
	Outcome         Outcome
	Code            int // 0: no answer
	Reason, Message string
	Got             Item   // of a single object
	Items           []Item // of a list
	ListRevision    int64
	Pages           int
	PageRevisions   []int64 // of each page
}

// Write reports whether the operation changes something.
func (o *Operation) Write() bool {
	switch o.Verb {
	case Create, Update, Patch, Apply, Delete, DeleteCollection:
		return true
	}
	return false
}

// A Session is one watch, from its request to its end.
type Session struct {
	Client, Replica int
	Resource        string
	From            int64 // resourceVersion asked for; 0: any
	Initial         bool  // sendInitialEvents
	Consistent      bool  // Initial, and no resourceVersion was sent: as new as a consistent read
	Selector        string
	Call, End       int64
	Events          []Event
	Code            int    // how it ended, if by an error: 410 …
	Error           string // the same in words
}

// An Event is what a watch brought. Type is ADDED, MODIFIED, DELETED or BOOKMARK.
type Event struct {
	Type string
	At   int64
	Item
	InitialEnd bool // the bookmark that ends initial events
}

// A Write is a change of a key in etcd.
type Write struct {
	Revision int64
	Key      string // as in etcd, below the prefix
	Created  bool
	Deleted  bool
	Previous int64 // mod revision of the value before, 0 if there was none
	Item           // what was written; of a deletion what was there before
}

// A Fault is something that was done to the system. It begins and ends.
type Fault struct {
	Name       string
	Begin, End int64
}

// An Ack is a change of the CRD that was acknowledged: its status has observed the
// generation.
type Ack struct {
	Resource string
	Schema   int    // N
	Storage  string // storage version
	Deleted  bool   // the CRD was seen to be gone
	Revision int64  // of the CRD when it was seen acknowledged
	Sent, At int64
}

// A Cache is what an informer holds at rest, when nothing has changed for a while, and
// what etcd holds.
type Cache struct {
	Client, Replica int
	Items           []Item
	At              int64
	Revision        int64 // of etcd, read before the cache was compared
}

// A Lead is a write by a leader, protected by its lease: Token is the number of lease
// transitions that it believed in. Writes are by Revision.
type Lead struct {
	Holder   string
	Token    int64
	Revision int64
	At       int64
}

// A Quota is a reading of a namespace whose number of objects is limited.
type Quota struct {
	Hard, Count int64
	Revision    int64
	At          int64
}
