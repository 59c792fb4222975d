package meter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/server/storage/scan"
)

const (
	// ownFolder has what the server keeps for itself, and usageKey is where the sum is.
	ownFolder, usageKey = "-espalier/", ownFolder + "usage"
	// smallNote is how large a value of the server itself may be to be written in any case:
	// fences and marks, without which objects cannot be deleted either.
	smallNote = 4 << 10
	// share is which part of what is left a replica may add before it tells the others.
	share = 20
	// Period is how old a count may be, and fullPeriod how old if writes are refused since. A
	// count that is of a later time than maxSkew from now is not believed.
	Period, fullPeriod, maxSkew = 24 * time.Hour, time.Minute, time.Hour
	// askEvery is how often a replica looks whether others have made room. In between, what would make a full part larger is
	// refused by what the replica knows.
	askEvery = time.Second
	// settleEvery is how often the growth of a replica becomes part of the sum at least.
	settleEvery = 10 * time.Second
	// lastTime is how long the last time may take.
	lastTime = 2 * time.Second
)

// Usage is how many keys a part of etcd has, and how many bytes they and their values have.
type Usage struct {
	Keys  int64 `json:"keys"`
	Bytes int64 `json:"bytes"`
}

func (u Usage) plus(o Usage) Usage  { return Usage{u.Keys + o.Keys, u.Bytes + o.Bytes} }
func (u Usage) minus(o Usage) Usage { return Usage{u.Keys - o.Keys, u.Bytes - o.Bytes} }

// sum is what is stored.
type sum struct {
	Usage
	Counted time.Time `json:"counted"`
}

// Meter counts what is below a prefix. It is safe for concurrent use.
type Meter struct {
	prefix string
	limit  Usage
	kv     clientv3.KV // that does not count
	due    chan struct{}

	mu       sync.Mutex
	sum      sum
	revision int64 // of the sum; 0 before it was read
	growth   Usage // by this replica, not yet in the sum
	settling bool
	refused  bool      // since the last count
	asked    time.Time // when a write that was too large last had the sum read
}

// New returns a meter for what is below a prefix, with a limit of keys and bytes. It limits
// nothing before Load.
func New(prefix string, limit Usage) *Meter {
	return &Meter{prefix: strings.TrimSuffix(prefix, "/") + "/", limit: limit, due: make(chan struct{}, 1)}
}

// Wrap returns a KV whose writes are counted. It must be called once, before anything else.
func (m *Meter) Wrap(kv clientv3.KV) clientv3.KV {
	m.kv = kv
	return counted{kv, m}
}

// Usage returns what the part has, as far as this replica knows.
func (m *Meter) Usage() Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sum.plus(m.growth)
}

// Load reads the sum.
func (m *Meter) Load(ctx context.Context) error {
	found, err := m.kv.Get(ctx, m.prefix+usageKey)
	if err != nil {
		return fmt.Errorf("reading the usage of a tenant: %w", err)
	}
	return m.take(found.Kvs)
}

// take learns the sum from what was read.
func (m *Meter) take(kvs []*mvccpb.KeyValue) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(kvs) == 0 {
		m.sum, m.revision = sum{}, 0
		return nil
	}
	var s sum
	if err := json.Unmarshal(kvs[0].Value, &s); err != nil { // a count puts it right
		s = sum{}
	}
	m.sum, m.revision = s, kvs[0].ModRevision
	return nil
}

// Run counts when it is time to, and adds the growth by this replica to the sum, until the
// context ends. report is told of failures; they are tried again.
func (m *Meter) Run(ctx context.Context, report func(error)) error {
	tick := time.NewTicker(settleEvery)
	defer tick.Stop()
	for {
		var err error
		if m.stale() {
			err = m.Count(ctx)
		} else {
			err = m.settle(ctx)
		}
		if err != nil && ctx.Err() == nil {
			report(err)
		}
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTime)
			defer cancel()
			if err := m.settle(last); err != nil {
				report(err)
			}
			return ctx.Err()
		case <-tick.C:
		case <-m.due:
		}
	}
}

// stale reports whether it is time to count.
func (m *Meter) stale() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	age := time.Since(m.sum.Counted)
	return age > Period || age < -maxSkew || age > fullPeriod && m.refused
}

// Count reads all values, and makes what they are the sum.
func (m *Meter) Count(ctx context.Context) error {
	m.mu.Lock()
	before := m.growth
	m.mu.Unlock()
	var counted Usage
	_, err := scan.All(ctx, m.kv, m.prefix, clientv3.GetPrefixRangeEnd(m.prefix), 0, func(kv *mvccpb.KeyValue) error {
		counted = counted.plus(Usage{1, size(kv)})
		return nil
	})
	if err != nil {
		return fmt.Errorf("counting what a tenant has in etcd: %w", err)
	}
	// What this replica wrote during the count may be counted twice until the next one.
	return m.store(ctx, before, func(sum) sum { return sum{counted, time.Now()} })
}

// settle adds the growth by this replica to the sum.
func (m *Meter) settle(ctx context.Context) error {
	m.mu.Lock()
	growth := m.growth
	m.mu.Unlock()
	if growth == (Usage{}) {
		return m.Load(ctx) // others may have written
	}
	return m.store(ctx, growth, func(s sum) sum { s.Usage = s.plus(growth); return s })
}

// store changes the sum, which has the growth in it afterwards.
func (m *Meter) store(ctx context.Context, growth Usage, change func(sum) sum) error {
	key := m.prefix + usageKey
	for {
		m.mu.Lock()
		was, revision := m.sum, m.revision
		m.mu.Unlock()
		next := change(was)
		data, err := json.Marshal(next)
		if err != nil {
			return err
		}
		answer, err := m.kv.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", revision)).
			Then(clientv3.OpPut(key, string(data))).Else(clientv3.OpGet(key)).Commit()
		if err != nil {
			return fmt.Errorf("storing the usage of a tenant: %w", err)
		}
		if !answer.Succeeded {
			if err := m.take(answer.Responses[0].GetResponseRange().Kvs); err != nil {
				return err
			}
			continue
		}
		m.mu.Lock()
		m.sum, m.revision = next, answer.Header.Revision
		m.growth = m.growth.minus(growth)
		if !next.Counted.Equal(was.Counted) {
			m.refused = false
		}
		m.mu.Unlock()
		return nil
	}
}

func size(kv *mvccpb.KeyValue) int64 { return int64(len(kv.Key) + len(kv.Value)) }

// grown notes what a write has changed, and whether that is all it has changed.
func (m *Meter) grown(ctx context.Context, by Usage) {
	m.mu.Lock()
	m.growth = m.growth.plus(by)
	settles := !m.settling && m.telling()
	m.settling = m.settling || settles
	m.mu.Unlock()
	if !settles {
		return
	}
	// In the time of the write: otherwise it could be followed by many others before the
	// rest of the replicas learn of it. If it fails, Run tries again.
	if err := m.settle(ctx); err != nil {
		m.wake()
	}
	m.mu.Lock()
	m.settling = false
	m.mu.Unlock()
}

// telling reports whether the growth is large enough to be told to the other replicas. The
// caller holds mu.
func (m *Meter) telling() bool {
	if m.revision == 0 {
		return false
	}
	return m.growth.Keys > max(0, m.limit.Keys-m.sum.Keys)/share || m.growth.Bytes > max(0, m.limit.Bytes-m.sum.Bytes)/share
}

func (m *Meter) wake() {
	select {
	case m.due <- struct{}{}:
	default:
	}
}

// Full returns the error for writes of new keys, whatever their size, if this replica knows that there is no room for any. It reads
// nothing. Now and then it returns nil, so that a write is tried, which finds out whether others have made room.
func (m *Meter) Full() error {
	m.mu.Lock()
	now := m.sum.plus(m.growth)
	full := m.revision != 0 && (now.Keys >= m.limit.Keys || now.Bytes >= m.limit.Bytes) && time.Since(m.asked) < askEvery
	m.mu.Unlock()
	if !full {
		return nil
	}
	return m.refusal(now)
}

// allow returns an error if writes would make the part larger than it may be. Writes that
// make it smaller, or no larger, are always allowed. The writes are done if the conditions hold.
func (m *Meter) allow(ctx context.Context, puts []clientv3.Op, conditions []clientv3.Cmp) error {
	var most Usage
	var large []clientv3.Op
	for _, op := range puts {
		key := string(op.KeyBytes())
		if strings.HasPrefix(key, m.prefix+ownFolder) && len(op.ValueBytes()) <= smallNote {
			continue
		}
		large = append(large, op)
		most = most.plus(Usage{1, int64(len(key) + len(op.ValueBytes()))})
	}
	if len(large) == 0 {
		return nil
	}
	m.mu.Lock()
	now, known := m.sum.plus(m.growth), m.revision != 0
	if after := now.plus(most); !known || after.Keys <= m.limit.Keys && after.Bytes <= m.limit.Bytes {
		m.mu.Unlock()
		return nil
	}
	asks := !creates(large, conditions) || time.Since(m.asked) >= askEvery
	if asks {
		m.asked = time.Now()
	}
	m.mu.Unlock()
	growth := most
	if asks {
		var err error
		if growth, err = m.difference(ctx, large); err != nil {
			return err
		}
		now = m.Usage() // with what others have written
	}
	after := now.plus(growth)
	if (growth.Keys <= 0 || after.Keys <= m.limit.Keys) && (growth.Bytes <= 0 || after.Bytes <= m.limit.Bytes) {
		return nil
	}
	m.mu.Lock()
	m.refused = true
	m.mu.Unlock()
	if m.stale() {
		m.wake() // to count: the sum may be more than there is
	}
	return m.refusal(now)
}

// difference is by how much puts make the part larger, as it is now. It reads the sum, too.
func (m *Meter) difference(ctx context.Context, puts []clientv3.Op) (by Usage, err error) {
	gets := make([]clientv3.Op, len(puts), len(puts)+1)
	for i, op := range puts {
		gets[i] = clientv3.OpGet(string(op.KeyBytes()))
	}
	answer, err := m.kv.Txn(ctx).Then(append(gets, clientv3.OpGet(m.prefix+usageKey))...).Commit()
	if err != nil {
		return by, err
	}
	if err := m.take(answer.Responses[len(puts)].GetResponseRange().Kvs); err != nil {
		return by, err
	}
	for i, op := range puts {
		by = by.plus(Usage{1, int64(len(op.KeyBytes()) + len(op.ValueBytes()))})
		for _, kv := range answer.Responses[i].GetResponseRange().Kvs {
			by = by.minus(Usage{1, size(kv)})
		}
	}
	return by, nil
}

// ErrFull is what errors of writes that are refused are.
var ErrFull = errors.New("the tenant is full")

// refusal says what is full. Its form is that of a ResourceQuota.
func (m *Meter) refusal(now Usage) error {
	text := fmt.Sprintf("the tenant is full: it has %d of %d objects and %s of %s in etcd (spec.objects and spec.storage of its tenants.espalier.dev): delete objects, or ask the operator of the server for more",
		now.Keys, m.limit.Keys, quantity(now.Bytes), quantity(m.limit.Bytes))
	return &fullError{apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: text,
	}}}
}

// fullError is ErrFull with a Status for clients.
type fullError struct{ apierrors.StatusError }

// Is implements errors.Is.
func (e *fullError) Is(target error) bool { return target == ErrFull }

// quantity writes bytes as spec.storage does.
func quantity(bytes int64) string {
	const ki, mi = 1 << 10, 1 << 20
	switch { // a few digits are enough
	case bytes >= 10*mi:
		bytes -= bytes % mi
	case bytes >= ki:
		bytes -= bytes % ki
	}
	return resource.NewQuantity(bytes, resource.BinarySI).String()
}
