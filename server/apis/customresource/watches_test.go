package customresource

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/endpoints/apitest"
)

// counted counts what a server sends.
type counted struct {
	net.Listener
	sent atomic.Int64
}

func (l *counted) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &countedConn{conn, l}, nil
}

type countedConn struct {
	net.Conn
	l *counted
}

func (c *countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.l.sent.Add(int64(n))
	return n, err
}

// withSelectable makes what is cached of boxes wrong: their storage is replaced.
func withSelectable(d map[string]any) {
	version := d["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
	version["selectableFields"] = []any{map[string]any{"jsonPath": ".spec.a"}}
}

// adopted waits as the acknowledgement of a change does.
func (e *env) adopted() {
	e.TB.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := e.server.Adopted(ctx); err != nil {
		e.TB.Fatal(err)
	}
}

// blockedEvents is how many events a watch is to get that does not read, and blockedSize
// how large each of them is.
const blockedEvents, blockedSize = 300, 64 << 10

// blocked opens a watch whose client does not read until everything is blocked.
func blocked(t *testing.T, e *env, protocol string) (*counted, *http.Response) {
	t.Helper()
	e.define(boxesWith("a: {type: string}"))
	rv := e.Do("POST", boxes, box("first", `"a":"1"`)).Is(http.StatusCreated).At("metadata.resourceVersion").(string)
	server := httptest.NewUnstartedServer(e.handler)
	l := &counted{Listener: server.Listener}
	server.Listener, server.EnableHTTP2 = l, protocol == "HTTP/2.0"
	server.StartTLS()
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	client := server.Client()
	resp, err := client.Get(server.URL + boxes + "?watch=1&resourceVersion=" + rv)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusOK || resp.Proto != protocol {
		t.Fatalf("%s by %s", resp.Status, resp.Proto)
	}
	large := strings.Repeat("x", blockedSize)
	for i := range blockedEvents {
		e.Do("POST", boxes, box(fmt.Sprintf("b%03d", i), `"a":"`+large+`"`)).Is(http.StatusCreated)
	}
	apitest.Eventually(t, func() bool {
		before := l.sent.Load()
		time.Sleep(100 * time.Millisecond)
		return l.sent.Load() == before
	})
	if n := l.sent.Load(); n > blockedEvents*blockedSize*3/4 {
		t.Fatalf("%d bytes are sent to a client that does not read", n)
	}
	return l, resp
}

// readEvents reads what a watch sends until it ends, and counts the events. There is
// none missing between them.
func readEvents(t *testing.T, resp *http.Response) (got int) {
	t.Helper()
	timer := time.AfterFunc(time.Minute, func() {
		t.Error("the watch does not end")
		_ = resp.Body.Close()
	})
	defer timer.Stop()
	for lines := bufio.NewReader(resp.Body); ; got++ {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return got // with what was sent of an event
		}
		var event struct {
			Object struct{ Metadata struct{ Name string } }
		}
		if err := json.Unmarshal(line, &event); err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("b%03d", got); event.Object.Metadata.Name != want {
			t.Fatalf("event %d is of %s", got, event.Object.Metadata.Name)
		}
	}
}

// When a change is acknowledged that replaces the storage, clients that do not read are
// sent nothing more of what was kept for them.
func TestNothingKeptIsSentAfterTheAcknowledgement(t *testing.T) {
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(protocol, func(t *testing.T) {
			e := start(t)
			l, resp := blocked(t, e, protocol)
			began := time.Now()
			e.define(boxesWith("a: {type: string}"), withSelectable)
			e.adopted()
			took, sent := time.Since(began), l.sent.Load()
			got := readEvents(t, resp)
			after := l.sent.Load() - sent
			t.Logf("acknowledged after %v; %d events were sent before, %d bytes after", took.Round(time.Millisecond), got, after)
			if after > 1000 {
				t.Errorf("%d bytes are sent after the acknowledgement", after)
			}
			if got >= blockedEvents {
				t.Errorf("all of %d events are sent", got)
			}
			if took > 30*time.Second {
				t.Errorf("the acknowledgement waits %v for a client that does not read", took)
			}
		})
	}
}

// A replica that does not know whether it is behind sends nothing more of what a handler
// has taken ahead.
func TestNothingIsSentByAReplicaThatMayBeBehind(t *testing.T) {
	var behind atomic.Bool
	e := start(t, func(o *Options) { o.Current = func() bool { return !behind.Load() } })
	l, resp := blocked(t, e, "HTTP/1.1")
	behind.Store(true)
	sent := l.sent.Load()
	got := readEvents(t, resp)
	after := l.sent.Load() - sent
	t.Logf("%d events, and %d bytes after", got, after)
	if after > blockedSize*3/2 { // one was being written
		t.Errorf("%d bytes are sent by a replica that may be behind", after)
	}
}

// Watches end before a change is acknowledged also while another request keeps the
// storage that is replaced in use.
func TestWatchesEndUnderARequest(t *testing.T) {
	held, proceed := make(chan struct{}, 1), make(chan struct{})
	plugin := &recorder{change: func(o *object.Object) {
		if o.GetName() == "held" {
			held <- struct{}{}
			<-proceed
		}
	}}
	e := start(t, func(o *Options) { o.Admission = plugin })
	e.define(boxesWith("a: {type: string}"))
	e.Do("POST", boxes, box("one", `"a":"1"`)).Is(http.StatusCreated)
	w := e.Watch(boxes + "?watch=1&resourceVersion=0")
	w.Next()
	value, ok := e.server.servedResources.Load(e.catalog.Resource("example.com", "boxes").UID)
	if !ok {
		t.Fatal("boxes are not served")
	}
	servedResource := value.(*servedResource)
	old := servedResource.current.storages["v1"]
	var open []*watching
	for one := range old.watches.open {
		open = append(open, one)
	}
	if len(open) != 1 {
		t.Fatalf("%d watches", len(open))
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		resp, err := http.Post(e.URL+boxes, "application/json", strings.NewReader(box("held", `"a":"1"`)))
		if err == nil {
			_ = resp.Body.Close()
		}
	}()
	<-held
	servedResource.mu.Lock() // so that the acknowledgement waits before the change is adopted
	e.define(boxesWith("a: {type: string}"), withSelectable)
	time.AfterFunc(100*time.Millisecond, servedResource.mu.Unlock)
	e.adopted()
	select {
	case <-open[0].left:
	default:
		t.Error("a watch goes on after the acknowledgement")
	}
	if event, ok := w.Next(); ok {
		t.Errorf("the watch goes on: %s", event.Body)
	}
	close(proceed)
	<-done
}

// A client that goes on from its last event each time that its watch ends gets every
// event once, however often the storage is replaced.
func TestNoEventIsLostWhenStoragesAreReplaced(t *testing.T) {
	e := start(t)
	e.define(boxesWith("a: {type: string}"))
	rv := e.Do("POST", boxes, box("first", `"a":"1"`)).Is(http.StatusCreated).At("metadata.resourceVersion").(string)
	const events = 200
	ends := make(chan int, 1)
	failed := make(chan error, 1)
	go func() {
		n := 0
		defer func() { ends <- n }()
		for got := 0; got < events; n++ {
			resp, err := http.Get(e.URL + boxes + "?watch=1&timeoutSeconds=20&resourceVersion=" + rv)
			if err != nil {
				failed <- err
				return
			}
			for lines := bufio.NewReader(resp.Body); resp.StatusCode == http.StatusOK && got < events; {
				line, err := lines.ReadBytes('\n')
				if err != nil {
					break
				}
				var event struct {
					Object struct {
						Metadata struct{ Name, ResourceVersion string }
					}
				}
				if err := json.Unmarshal(line, &event); err != nil {
					failed <- err
					return
				}
				if want := fmt.Sprintf("b%03d", got); event.Object.Metadata.Name != want {
					failed <- fmt.Errorf("event %d is %s", got, line)
					return
				}
				rv = event.Object.Metadata.ResourceVersion
				got++
			}
			_ = resp.Body.Close()
		}
	}()
	for i := range events {
		e.Do("POST", boxes, box(fmt.Sprintf("b%03d", i), `"a":"1"`)).Is(http.StatusCreated)
		switch i % 20 {
		case 9:
			e.define(boxesWith("a: {type: string}"), withSelectable)
		case 19:
			e.define(boxesWith("a: {type: string}"))
		}
	}
	select {
	case n := <-ends:
		if n < 5 {
			t.Errorf("the watch has ended %d times", n)
		}
		t.Logf("%d watches", n)
	case <-time.After(time.Minute):
		t.Error("there are events missing")
	}
	select {
	case err := <-failed:
		t.Error(err)
	default:
	}
}

// When a change of the schema alone is acknowledged, a client that does not read is sent
// nothing more of what is encoded by the former schema.
func TestNoFormerEncodingIsWrittenAfterTheAcknowledgement(t *testing.T) {
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(protocol, func(t *testing.T) {
			e := start(t)
			l, resp := blocked(t, e, protocol)
			began := time.Now()
			e.define(boxesWith("a: {type: string}, b: {type: string}"))
			e.adopted()
			took, sent := time.Since(began), l.sent.Load()
			got := readEvents(t, resp)
			after := l.sent.Load() - sent
			t.Logf("acknowledged after %v; %d events were sent before, %d bytes after", took.Round(time.Millisecond), got, after)
			if after > 1000 {
				t.Errorf("%d bytes are sent after the acknowledgement", after)
			}
			if took > 30*time.Second {
				t.Errorf("the acknowledgement waits %v for a client that does not read", took)
			}
		})
	}
}

// A slow watch goes on when the schema changes. What it sends after the acknowledgement
// is encoded by the new schema, also if a faster watch of the same cache has had the
// events encoded before.
func TestSlowWatchGoesOnWithTheNewSchema(t *testing.T) {
	e := start(t)
	e.define(boxesWith("a: {type: string}, b: {type: string}"))
	rv := e.Do("POST", boxes, box("first", `"a":"1"`)).Is(http.StatusCreated).At("metadata.resourceVersion").(string)
	server := httptest.NewUnstartedServer(e.handler)
	l := &counted{Listener: server.Listener}
	server.Listener = l
	server.Start()
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	open := func(base string) *http.Response {
		resp, err := http.Get(base + boxes + "?watch=1&resourceVersion=" + rv)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = resp.Body.Close() })
		return resp
	}
	_ = open(e.URL).Body.Close() // the cache begins here
	rv = e.Do("POST", boxes, box("second", `"a":"1"`)).Is(http.StatusCreated).At("metadata.resourceVersion").(string)
	fast, slow := open(e.URL), open(server.URL)
	large := strings.Repeat("x", blockedSize)
	for i := range blockedEvents {
		e.Do("POST", boxes, box(fmt.Sprintf("b%03d", i), `"a":"`+large+`","b":"old"`)).Is(http.StatusCreated)
	}
	for lines, i := bufio.NewReader(fast.Body), 0; i < blockedEvents; i++ {
		if _, err := lines.ReadBytes('\n'); err != nil {
			t.Fatal(err)
		}
	}
	// The client reads slowly from now on.
	type event struct {
		end int64 // of the connection's bytes, or less
		old bool
	}
	events := make(chan event, blockedEvents)
	go func() {
		defer close(events)
		lines, end := bufio.NewReader(slow.Body), int64(0)
		for range blockedEvents {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return
			}
			end += int64(len(line))
			events <- event{end, bytes.Contains(line, []byte(`"b":"old"`))}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	e.define(boxesWith("a: {type: string}"))
	e.adopted()
	sent := l.sent.Load()
	var before, after, old int
	for event := range events {
		switch {
		case event.end <= sent:
			before++
		case event.old:
			old++
			fallthrough
		default:
			after++
		}
	}
	t.Logf("%d events before the acknowledgement, %d after, %d of these by the former schema", before, after, old)
	if old > 0 {
		t.Errorf("%d events are sent by the former schema after the acknowledgement", old)
	}
	if before+after != blockedEvents || after < blockedEvents/4 {
		t.Errorf("%d events before the acknowledgement and %d after: the watch does not go on", before, after)
	}
}

// A watch ends with its version, also if objects are stored in it.
func TestWatchOfAVersionThatIsNotServedAnyMore(t *testing.T) {
	e := start(t)
	e.define(boxesWith("a: {type: string}"))
	w := e.Watch(boxes + "?watch=1&resourceVersion=0")
	defer w.Close()
	e.Do("POST", boxes, box("one", "")).Is(http.StatusCreated)
	event, _ := w.Next()
	event.Has("type", "ADDED")
	e.define(boxesWith("a: {type: string}"), func(d map[string]any) {
		spec := d["spec"].(map[string]any)
		last := maps.Clone(spec["versions"].([]any)[0].(map[string]any))
		last["name"], last["storage"] = "v2", false
		spec["versions"].([]any)[0].(map[string]any)["served"] = false
		spec["versions"] = append(spec["versions"].([]any), last)
	})
	e.adopted()
	if event, ok := w.Next(); ok {
		t.Errorf("the watch goes on with %v", event.At("type"))
	}
}

// Rows have the columns of the CRD that their watch has begun with.
func TestWatchOfATableWithOtherColumns(t *testing.T) {
	const table = "Accept: application/json;as=Table;g=meta.k8s.io;v=v1"
	column := func(name string) func(map[string]any) {
		return func(d map[string]any) {
			d["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)["additionalPrinterColumns"] = []any{
				map[string]any{"name": name, "type": "string", "jsonPath": ".spec." + name},
			}
		}
	}
	e := start(t)
	e.define(boxesWith("a: {type: string}, b: {type: string}"), column("a"))
	before := e.Watch(boxes+"?watch=1&resourceVersion=0", table)
	defer before.Close()
	e.Do("POST", boxes, box("one", `"a":"1","b":"2"`)).Is(http.StatusCreated)
	event, _ := before.Next()
	event.Has("object.columnDefinitions.1.name", "a").Has("object.rows.0.cells.1", "1")
	e.define(boxesWith("a: {type: string}, b: {type: string}"), column("b"))
	e.adopted()
	after := e.Watch(boxes+"?watch=1&resourceVersion=0", table)
	defer after.Close()
	event, _ = after.Next()
	event.Has("object.columnDefinitions.1.name", "b").Has("object.rows.0.cells.1", "2")
	e.Do("POST", boxes, box("two", `"a":"3","b":"4"`)).Is(http.StatusCreated)
	event, ok := before.Next()
	if ok {
		event.Has("object.rows.0.cells.1", "3")
	}
	event, _ = after.Next()
	event.Has("object.rows.0.cells.1", "4")
}
