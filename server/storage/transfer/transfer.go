package transfer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/espalier-dev/espalier/server/storage/scan"
	"github.com/espalier-dev/espalier/server/storage/store"
)

const (
	// batchKeys is how many keys a transaction writes: etcd refuses more than 128 by default. batchBytes is how many
	// bytes, unless one value is larger: etcd refuses requests of 1.5 MiB, and does nothing else while it writes.
	batchKeys, batchBytes = 100, 256 << 10
	// requestTime bounds each request.
	requestTime = 5 * time.Second
	// silence is how long a watch may be silent although it was asked how far it is.
	silence, askAgain = 5 * time.Second, 20 * time.Millisecond
	// rounds is how often Follow tries to catch up.
	rounds = 50
)

var (
	// ErrTaken is that a condition of the copy holds no longer.
	ErrTaken = errors.New("something else has taken over")
	// ErrBusy is that the keys change faster than they are copied.
	ErrBusy = errors.New("the keys change faster than they can be copied")
)

// Options say what is copied. All of them must be set except where noted.
type Options struct {
	From, To *clientv3.Client
	// Begin and End are the range that is copied. Marks is where the range that is watched begins: it may have
	// more keys before Begin, which are not copied.
	Begin, End, Marks string
	// Skip reports whether a key is not copied; nil copies all.
	Skip func(key string) bool
	// While are the conditions of each write.
	While []clientv3.Cmp
	// Stream names the connection of the watch, which is no other watch's.
	Stream string
}

// Copy is a copy that is under way. It is not safe for concurrent use.
type Copy struct {
	Options
	// Keys and Bytes are how much was written.
	Keys, Bytes int64

	revision int64 // of the source, up to which all is in the target or in the batch
	events   clientv3.WatchChan
	watching context.Context
	end      context.CancelFunc
	leases   map[int64]lease // by those of the source

	batch map[string]clientv3.Op
	bytes int
}

// lease is what stands for a lease in the target.
type lease struct {
	id   clientv3.LeaseID
	gone bool // it has ended in the source: its keys are about to be deleted
}

// New returns a copy that has not begun. It must be closed.
func New(o Options) *Copy {
	return &Copy{Options: o, end: func() {}, leases: map[int64]lease{}, batch: map[string]clientv3.Op{}}
}

// Close ends the watch.
func (c *Copy) Close() { c.end() }

// Load copies all keys, as they are at one revision. The target must have none of the range.
func (c *Copy) Load(ctx context.Context) (err error) {
	reading, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchdog := time.AfterFunc(2*silence, func() { cancel(errSilent) })
	defer watchdog.Stop()
	c.revision, err = scan.All(reading, c.From, c.Begin, c.End, 0, func(kv *mvccpb.KeyValue) error {
		watchdog.Reset(2 * silence)
		return c.put(ctx, kv)
	})
	if err != nil {
		if cause := context.Cause(reading); cause != nil {
			err = cause
		}
		return fmt.Errorf("copy the keys: %w", err)
	}
	return c.flush(ctx)
}

var errSilent = errors.New("etcd does not answer")

// Follow applies what changed meanwhile, until a round of that takes a short time.
func (c *Copy) Follow(ctx context.Context, short time.Duration) error {
	c.watching, c.end = context.WithCancel(store.OwnStream(clientv3.WithRequireLeader(ctx), c.Stream))
	c.events = c.From.Watch(c.watching, c.Marks, clientv3.WithRange(c.End), clientv3.WithRev(c.revision+1))
	for range rounds {
		began := time.Now()
		now, err := revision(ctx, c.From, c.Begin)
		if err != nil {
			return err
		}
		if err := c.Until(ctx, now); err != nil {
			return err
		}
		if time.Since(began) < short {
			return nil
		}
	}
	return ErrBusy
}

func revision(ctx context.Context, etcd *clientv3.Client, key string) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	now, err := scan.Revision(ctx, etcd, key)
	if err != nil {
		return 0, fmt.Errorf("read the revision: %w", err)
	}
	return now, nil
}

// Until applies all changes up to a revision, which the source must have reached. Follow must have begun.
func (c *Copy) Until(ctx context.Context, revision int64) error {
	ask, heard := time.NewTicker(askAgain), time.Now()
	defer ask.Stop()
	for c.revision < revision {
		select {
		case answer, ok := <-c.events:
			if !ok {
				return errors.Join(errors.New("follow the changes: the watch has ended"), ctx.Err())
			}
			if err := answer.Err(); err != nil {
				return fmt.Errorf("follow the changes: %w", err)
			}
			heard = time.Now()
			for _, event := range answer.Events {
				if err := c.apply(ctx, event); err != nil {
					return err
				}
			}
			switch n := len(answer.Events); {
			case n > 0: // one answer has all changes of a transaction, as it is not fragmented
				c.revision = max(c.revision, answer.Events[n-1].Kv.ModRevision)
			case answer.IsProgressNotify():
				c.revision = max(c.revision, answer.Header.Revision)
			}
		case <-ask.C:
			if time.Since(heard) > silence {
				return errors.New("follow the changes: etcd does not tell how far the watch is")
			}
			_ = c.From.RequestProgress(c.watching) // asked again
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return c.flush(ctx)
}

// apply applies a change.
func (c *Copy) apply(ctx context.Context, event *clientv3.Event) error {
	key := string(event.Kv.Key)
	if event.Type != clientv3.EventTypeDelete {
		return c.put(ctx, event.Kv)
	}
	if c.skips(key) {
		return nil
	}
	return c.add(ctx, clientv3.OpDelete(key))
}

func (c *Copy) skips(key string) bool {
	return key < c.Begin || key >= c.End || c.Skip != nil && c.Skip(key)
}

// put copies a key with its value and the rest of its time.
func (c *Copy) put(ctx context.Context, kv *mvccpb.KeyValue) error {
	key := string(kv.Key)
	if c.skips(key) {
		return nil
	}
	if kv.Lease == 0 {
		return c.add(ctx, clientv3.OpPut(key, string(kv.Value)))
	}
	l, err := c.lease(ctx, kv.Lease)
	if err != nil {
		return err
	}
	if l.gone {
		return c.add(ctx, clientv3.OpDelete(key))
	}
	return c.add(ctx, clientv3.OpPut(key, string(kv.Value), clientv3.WithLease(l.id)))
}

// lease returns one of the target that ends when one of the source does.
func (c *Copy) lease(ctx context.Context, id int64) (lease, error) {
	if known, ok := c.leases[id]; ok {
		return known, nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	left, err := c.From.TimeToLive(ctx, clientv3.LeaseID(id))
	switch {
	case errors.Is(err, rpctypes.ErrLeaseNotFound), err == nil && left.TTL <= 0:
		c.leases[id] = lease{gone: true}
		return c.leases[id], nil
	case err != nil:
		return lease{}, fmt.Errorf("read the time of a lease: %w", err)
	}
	granted, err := c.To.Grant(ctx, left.TTL)
	if err != nil {
		return lease{}, fmt.Errorf("grant a lease: %w", err)
	}
	c.leases[id] = lease{id: granted.ID}
	return c.leases[id], nil
}

// add puts an operation in the batch, in place of a former one of the same key.
func (c *Copy) add(ctx context.Context, op clientv3.Op) error {
	key, size := string(op.KeyBytes()), len(op.KeyBytes())+len(op.ValueBytes())
	if len(c.batch) > 0 && (len(c.batch) >= batchKeys || c.bytes+size > batchBytes) {
		if err := c.flush(ctx); err != nil {
			return err
		}
	}
	c.batch[key] = op
	c.bytes += size
	return nil
}

// flush writes the batch.
func (c *Copy) flush(ctx context.Context) error {
	if len(c.batch) == 0 {
		return nil
	}
	ops := make([]clientv3.Op, 0, len(c.batch))
	for _, op := range c.batch {
		ops = append(ops, op)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	answer, err := c.To.Txn(ctx).If(c.While...).Then(ops...).Commit()
	if err != nil {
		return fmt.Errorf("write to the other etcd: %w", err)
	}
	if !answer.Succeeded {
		return ErrTaken
	}
	c.Keys += int64(len(c.batch))
	c.Bytes += int64(c.bytes)
	clear(c.batch)
	c.bytes = 0
	return nil
}
