package server

import (
	"errors"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	auditapi "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/plugin/pkg/audit/buffered"
)

// maxAuditBytes is how much the events may hold that wait for one backend. Their number
// alone, which --audit-log-batch-buffer-size bounds, says little: a client decides how
// long its headers are, and what it is told of errors in a large object. With a log and
// a webhook that both stand still it is 128 MiB.
const maxAuditBytes = 64 << 20

// newQueue has a backend write in the background. What does not find room is dropped,
// and counted in apiserver_audit_error_total. An event costs going through its texts
// twice, and a mutex.
func newQueue(b audit.Backend, config buffered.BatchConfig) audit.Backend {
	room := &auditRoom{events: config.BufferSize}
	return &auditQueue{Backend: buffered.NewBackend(auditOutlet{b, room}, config), room: room}
}

// auditQueue is where events come in.
type auditQueue struct {
	audit.Backend
	room *auditRoom
}

// ProcessEvents implements audit.Sink.
func (q *auditQueue) ProcessEvents(events ...*auditapi.Event) bool {
	for _, e := range events {
		if q.room.take(weight(e)) {
			q.Backend.ProcessEvents(e)
			continue
		}
		// The log gets the whole event: not of one that is too large.
		audit.HandlePluginError(buffered.PluginName, errors.New("audit buffer queue full"), &auditapi.Event{AuditID: e.AuditID, Stage: e.Stage, Verb: e.Verb})
	}
	return true
}

// auditOutlet is where events leave the queue. Those that are being written still count.
type auditOutlet struct {
	audit.Backend
	room *auditRoom
}

// ProcessEvents implements audit.Sink.
func (o auditOutlet) ProcessEvents(events ...*auditapi.Event) bool {
	defer func() {
		for _, e := range events {
			o.room.free(weight(e))
		}
	}()
	return o.Backend.ProcessEvents(events...)
}

// auditRoom is what is taken of a queue. Since it counts the events too, the buffer
// behind it is never full: that would drop events that room was taken for.
type auditRoom struct {
	events int // that fit

	mu          sync.Mutex
	count, size int
}

// take reports whether there is room. One event always fits, of whatever size.
func (r *auditRoom) take(size int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.count >= r.events || r.count > 0 && r.size+size > maxAuditBytes {
		return false
	}
	r.count++
	r.size += size
	return true
}

func (r *auditRoom) free(size int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count--
	r.size -= size
}

// weight is about how many bytes an event holds.
func weight(e *auditapi.Event) int {
	const fixed, text = 1 << 10, 32 // the structs; a text in a list, with what the allocator adds
	size := fixed + len(e.RequestURI) + len(e.UserAgent) + userWeight(&e.User)
	if e.ImpersonatedUser != nil {
		size += userWeight(e.ImpersonatedUser)
	}
	for _, ip := range e.SourceIPs {
		size += text + len(ip)
	}
	for key, value := range e.Annotations {
		size += 2*text + len(key) + len(value)
	}
	if o := e.ObjectRef; o != nil {
		size += len(o.Name) + len(o.Namespace) + len(o.Resource) + len(o.APIGroup) + len(o.Subresource)
	}
	if s := e.ResponseStatus; s != nil {
		size += len(s.Message)
		if s.Details != nil {
			for _, c := range s.Details.Causes {
				size += 3*text + len(c.Message) + len(c.Field)
			}
		}
	}
	if e.RequestObject != nil {
		size += len(e.RequestObject.Raw)
	}
	if e.ResponseObject != nil {
		size += len(e.ResponseObject.Raw)
	}
	return size
}

func userWeight(u *authenticationv1.UserInfo) int {
	const text = 32
	size := len(u.Username) + len(u.UID)
	for _, group := range u.Groups {
		size += text + len(group)
	}
	for key, values := range u.Extra {
		size += 2*text + len(key)
		for _, value := range values {
			size += text + len(value)
		}
	}
	return size
}
