package faults

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// serve answers a request.
func (ip *Interposer) serve(q *request) {
	readable := q.acceptJSON()
	if readable {
		ip.outside.run(func() { ip.server.log(q.resource) })
	}
	var a answer
	switch {
	case q.verb == "watch" && (!readable || q.table()):
		a = ip.status(q, http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable, "watches through espaliertest.Faults are JSON, and not tables", "")
	case q.verb == "watch":
		a = ip.watch(q)
	case q.writes():
		a = ip.write(q)
	default:
		a = ip.read(q)
	}
	ip.look(q)
	ip.mu.Lock()
	ip.answers++
	ip.activity++
	ip.mu.Unlock()
	q.answer <- a
}

// pass makes a request as it is.
func (ip *Interposer) pass(q *request) answer {
	var got reply
	var err error
	ip.outside.run(func() { got, err = ip.server.forward(q) })
	return ip.answered(q, got, err, "")
}

// answered is the answer of the server.
func (ip *Interposer) answered(q *request, got reply, err error, fault Kind) answer {
	if err != nil {
		ip.noteRequest(q, "failed: "+err.Error(), fault)
		return answer{err: err}
	}
	ip.noteRequest(q, ip.summary(q.resource, got), fault)
	return answer{code: got.code, header: got.header, body: io.NopCloser(bytes.NewReader(got.body))}
}

// noteRequest leaves reads of steady clients out: they look on.
func (ip *Interposer) noteRequest(q *request, then string, fault Kind) {
	if !q.steady || q.writes() {
		ip.note(q.word(), q.resource.String()+" "+q.shown(), then, fault)
	}
}

// summary says in a few words what an answer is.
func (ip *Interposer) summary(r resource, got reply) string {
	text := strconv.Itoa(got.code)
	if got.code >= http.StatusBadRequest {
		var s metav1.Status
		if json.Unmarshal(got.body, &s) == nil && s.Reason != "" {
			text += " " + string(s.Reason)
		}
		return text
	}
	var o object
	if json.Unmarshal(got.body, &o) != nil || o.Metadata.ResourceVersion == "" {
		return text
	}
	version := ip.version(r, o.Metadata.ResourceVersion)
	switch {
	case o.Items != nil:
		return fmt.Sprintf("%s %d objects at %s", text, len(o.Items), version)
	case o.Metadata.Name != "":
		return fmt.Sprintf("%s %s at %s", text, o.Metadata.Name, version)
	}
	return text
}

// status is an answer of our own.
func (ip *Interposer) status(q *request, code int, reason metav1.StatusReason, message string, fault Kind) answer {
	data, _ := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Code: int32(code), Reason: reason, Message: message,
	})
	ip.noteRequest(q, fmt.Sprintf("%d %s", code, reason), fault)
	header := http.Header{"Content-Type": {"application/json"}}
	if code == http.StatusTooManyRequests {
		header.Set("Retry-After", "1")
	}
	return answer{code: code, header: header, body: io.NopCloser(bytes.NewReader(data))}
}

// reset is what a client sees of a connection that ends before the answer.
func reset() error {
	return &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
}

// refuse answers a request that the server has not looked at.
func (ip *Interposer) refuse(q *request) answer {
	if ip.pick(3, "refusal", q.key, q.nth) == 0 {
		return ip.status(q, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "too many requests, please try again later", Refused)
	}
	return ip.status(q, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "the server is currently unable to handle the request", Refused)
}

// disconnect ends all connections: that of this request, which has not arrived, and
// those of all watches.
func (ip *Interposer) disconnect(q *request) answer {
	ip.noteRequest(q, "not sent: the connection is lost, and all watches with it", Disconnect)
	ip.mu.Lock()
	streams := ip.streams
	ip.streams = nil
	for _, s := range streams {
		if s.request.steady {
			ip.streams = append(ip.streams, s)
		} else {
			s.end(io.ErrUnexpectedEOF)
			ip.looked[s.request.looks()] = time.Now()
		}
	}
	ip.mu.Unlock()
	return answer{err: reset()}
}

// write makes a request that changes something.
func (ip *Interposer) write(q *request) answer {
	switch {
	case ip.fault(q, Refused):
		return ip.refuse(q)
	case ip.fault(q, Disconnect):
		return ip.disconnect(q)
	}
	ip.name(q)
	var fault Kind
	if q.conditional() && ip.fault(q, Conflict) && ip.touch(q) {
		fault = Conflict
	}
	lost := fault == "" && ip.fault(q, LostAnswer)
	var got reply
	var err error
	ip.outside.run(func() {
		if got, err = ip.server.forward(q); err == nil {
			ip.server.follow(q, got)
		}
	})
	ip.mu.Lock()
	ip.unsettled = ip.unsettled || err == nil && got.code < 300 && hasConsequences(q, got)
	ip.mu.Unlock()
	switch {
	case lost && err == nil && got.code < 300:
		return ip.lose(q, got)
	case fault == "":
		ip.clearRow(q)
	}
	return ip.answered(q, got, err, fault)
}

// lose withholds the answer of a request that was carried out.
func (ip *Interposer) lose(q *request, got reply) answer {
	done := "done (" + ip.summary(q.resource, got) + "), but the client gets "
	if ip.pick(2, "loss", q.key, q.nth) == 0 {
		ip.noteRequest(q, done+"connection reset", LostAnswer)
		return answer{err: reset()}
	}
	a := ip.status(q, http.StatusGatewayTimeout, metav1.StatusReasonTimeout, "Timeout: request did not complete within the allotted timeout", LostAnswer)
	ip.mu.Lock()
	if last := len(ip.trace.lines) - 1; last >= 0 && !q.steady {
		ip.trace.lines[last].then = done + ip.trace.lines[last].then
	}
	ip.mu.Unlock()
	return a
}

// hasConsequences reports whether the server's own controllers react to a write.
func hasConsequences(q *request, got reply) bool {
	var o object
	if q.method == http.MethodDelete || json.Unmarshal(got.body, &o) == nil && o.Metadata.DeletionTimestamp != nil {
		return true
	}
	switch q.resource.group {
	case "apiextensions.k8s.io", "apiregistration.k8s.io", "admissionregistration.k8s.io", "rbac.authorization.k8s.io":
		return true
	case "":
		return q.resource.name == "namespaces" || q.resource.name == "serviceaccounts" || q.resource.name == "resourcequotas"
	}
	return false
}

// Touched is the annotation that changes when another client writes an object.
const Touched = "espalier.dev/touched"

// touch writes an object as another client does, before the client can, and
// reports whether it has. A conflict without a change would be a lie: the client
// would wait forever for the event that tells it of the change.
func (ip *Interposer) touch(q *request) bool {
	if q.namespace == "" && q.resource.name == "" || q.name == "" {
		return false
	}
	body := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, Touched, q.verb+"-"+q.nth)
	header := http.Header{"Content-Type": {"application/merge-patch+json"}, "Accept": {"application/json"}}
	var got reply
	var err error
	ip.outside.run(func() {
		path := q.resource.collection(q.namespace) + "/" + q.name
		got, err = ip.server.do(ip.server.rt, http.MethodPatch, path, url.Values{"fieldManager": {"another-client"}}, header, body)
		if err == nil {
			ip.server.follow(&request{verb: "patch", resource: q.resource, namespace: q.namespace, name: q.name}, got)
		}
	})
	if err != nil || got.code >= 300 {
		return false
	}
	ip.note("(another)", q.resource.String()+" "+q.namespace+"/"+q.name, "client writes the object: "+ip.summary(q.resource, got), Conflict)
	return true
}

// name chooses the name of an object that leaves it to the server: the server's
// choice would differ from run to run.
func (ip *Interposer) name(q *request) {
	if q.verb != "create" || q.name != "" {
		return
	}
	var o, meta map[string]json.RawMessage
	var name, prefix string
	if json.Unmarshal(q.body, &o) != nil || json.Unmarshal(o["metadata"], &meta) != nil {
		return
	}
	_ = json.Unmarshal(meta["name"], &name) // absent is empty
	if json.Unmarshal(meta["generateName"], &prefix) != nil || prefix == "" || name != "" {
		return
	}
	const letters = "bcdfghjklmnpqrstvwxz2456789" // as the server has it
	for i := range 5 {
		prefix += string(letters[ip.pick(len(letters), "name", q.key, q.nth, strconv.Itoa(i))])
	}
	meta["name"], _ = json.Marshal(prefix) // of a string
	o["metadata"], _ = json.Marshal(meta)  // of raw JSON
	q.body, _ = json.Marshal(o)
}
