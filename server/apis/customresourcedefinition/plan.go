package customresourcedefinition

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/conversion"
	"github.com/espalier-dev/espalier/crd/impact"
	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/storage/converter"
	"github.com/espalier-dev/espalier/server/storage/store"
)

const (
	// planWorkers is how many goroutines apply a change to objects, and planBatch how many objects
	// one of them takes at a time: a webhook that converts them gets no more in a call.
	planWorkers, planBatch = 2, 250
	// planGrace is how long a scan may take beyond its time, to finish what it has read.
	planGrace = 15 * time.Second
)

// planner applies changes of CRDs to the objects that are stored.
//
//	etcd ── store.Walk ──▶ pieces of about 1 MiB ──▶ two workers: impact.Change.Page ──▶ impact.Summary
//
// It reads past the watch caches and the served resource: a plan must not make a cache of a million
// objects, and needs the bytes as they are stored. It keeps a few pieces in memory at a time,
// whatever the number of objects.
type planner struct {
	backend    *store.Backend
	conversion *converter.Factory
	plans      chan struct{} // has one for each plan that is being made
}

func newPlanner(backend *store.Backend, conversion *converter.Factory) *planner {
	return &planner{backend: backend, conversion: conversion, plans: make(chan struct{}, maxPlans)}
}

// scan says which objects a change is applied to, and how much of what it finds is wanted.
type scan struct {
	after           string // where the scan before has ended
	revision, since int64
	limit           int64 // objects; 0 for all
	list            int   // affected objects that the summary lists
	time            time.Duration
	enough          func(*impact.Summary) bool // nil for all objects
}

// scanned is what a scan has found.
type scanned struct {
	summary impact.Summary
	store.Walked
}

// change compiles the change from one CRD to another. The converters do not prune: what is pruned
// is a part of the outcome.
func (p *planner) change(old, now *object.Object) (*impact.Change, error) {
	was, err := crd.Parse(old.JSON())
	if err != nil {
		return nil, fmt.Errorf("failed to parse the stored CRD: %w", err)
	}
	defer was.Release()
	is, err := crd.Parse(now.JSON())
	if err != nil {
		return nil, err
	}
	defer is.Release()
	var o impact.Options
	if o.Old, err = p.converter(was); err != nil {
		return nil, fmt.Errorf("conversion of the stored CRD: %w", err)
	}
	if o.New, err = p.converter(is); err != nil {
		return nil, err
	}
	return impact.New(was, is, o)
}

func (p *planner) converter(d *crd.CRD) (impact.ConvertFunc, error) {
	if len(d.Versions) < 2 {
		return nil, nil
	}
	c, err := p.conversion.For(d, func(o *object.Object) (*object.Object, error) { return o, nil })
	if err != nil {
		return nil, err
	}
	return c.Convert, nil
}

// resourceOf returns the resource of a CRD, and where its objects are.
func resourceOf(name string) (schema.GroupResource, string) {
	plural, group, _ := strings.Cut(name, ".") // validation requires this name
	return schema.GroupResource{Group: group, Resource: plural}, "/" + group + "/" + plural
}

// scan applies a change to stored objects of the CRD called name.
func (p *planner) scan(ctx context.Context, name string, c *impact.Change, s scan) (*scanned, error) {
	resource, folder := resourceOf(name)
	ctx, cancel := context.WithTimeout(ctx, s.time+planGrace)
	defer cancel()
	end := time.Now().Add(s.time)
	result := &scanned{summary: impact.Summary{Most: s.list}}
	var enough atomic.Bool
	pieces := make(chan []store.Stored, 1)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		defer close(pieces)
		w := store.Walk{Resource: resource, Folder: folder, After: s.after, Revision: s.revision, Since: s.since, Limit: s.limit}
		result.Walked, err = p.backend.Walk(ctx, w, func(piece []store.Stored) error {
			select {
			case pieces <- piece:
			case <-ctx.Done():
				return ctx.Err()
			}
			if enough.Load() || time.Now().After(end) {
				return store.ErrStop
			}
			return nil
		})
		return err
	})
	group.Go(func() error {
		for piece := range pieces {
			if err := apply(ctx, c, piece, &result.summary); err != nil {
				return err
			}
			if s.enough != nil && s.enough(&result.summary) {
				enough.Store(true)
			}
		}
		return nil
	})
	return result, group.Wait()
}

// apply applies a change to a piece. Objects are counted in their order, so that a plan of the same
// objects lists the same ones.
func apply(ctx context.Context, c *impact.Change, piece []store.Stored, into *impact.Summary) error {
	batches := (len(piece) + planBatch - 1) / planBatch
	outcomes := make([][]impact.Outcome, batches)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(planWorkers)
	for i := range batches {
		group.Go(func() (err error) {
			outcomes[i], err = applyBatch(ctx, c, piece[i*planBatch:min(len(piece), (i+1)*planBatch)])
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, batch := range outcomes {
		for i := range batch {
			into.Add(&batch[i])
		}
	}
	return nil
}

func applyBatch(ctx context.Context, c *impact.Change, batch []store.Stored) ([]impact.Outcome, error) {
	values := make([][]byte, len(batch))
	for i := range batch {
		values[i] = batch[i].Value
	}
	outcomes, err := c.Page(ctx, values)
	if err != nil {
		return nil, err
	}
	for i := range outcomes {
		x := &outcomes[i]
		if batch[i].Err != nil {
			*x = impact.Outcome{Effects: impact.UnreadableToday, Explanation: batch[i].Err.Error()}
		}
		if x.Name == "" { // it cannot be read, but has a key
			if x.Namespace, x.Name, _ = strings.Cut(batch[i].Name, "/"); x.Name == "" {
				x.Namespace, x.Name = "", x.Namespace
			}
		}
	}
	return outcomes, nil
}

// digest identifies what a plan is of: the CRD that is stored by its UID, the new spec, and the rules
// for conversion. Without the UID, the approval of a plan that was made on another server would be
// one here: manifests go from one cluster to the next, with their annotations.
func digest(stored types.UID, o *object.Object) string {
	h := sha256.New()
	h.Write([]byte(stored))
	h.Write([]byte{0})
	h.Write(o.Member("spec"))
	h.Write([]byte{0})
	h.Write([]byte(o.GetAnnotations()[conversion.Annotation]))
	return hex.EncodeToString(h.Sum(nil))
}

// planID names a plan: of the change from a generation of a CRD to a spec, for the objects at a
// revision. It is no secret and no signature: an approval is for people who make mistakes, and the
// right to change a CRD is for RBAC to give.
type planID struct {
	generation, revision int64
	digest               string // the beginning of it
}

const digestLength = 16

func newPlanID(old *object.Object, revision int64, digest string) planID {
	return planID{generation: old.GetGeneration(), revision: revision, digest: digest[:digestLength]}
}

// String is the value of the annotation.
func (id planID) String() string {
	return fmt.Sprintf("g%d-r%d-%s", id.generation, id.revision, id.digest)
}

var planIDs = regexp.MustCompile(`^g([0-9]{1,18})-r([0-9]{1,18})-([0-9a-f]{16})$`)

func parsePlanID(text string) (planID, error) {
	parts := planIDs.FindStringSubmatch(text)
	if parts == nil {
		return planID{}, errors.New("it is not the id of a plan, such as g3-r12345-0123456789abcdef")
	}
	generation, _ := strconv.ParseInt(parts[1], 10, 64) // 18 digits always fit
	revision, _ := strconv.ParseInt(parts[2], 10, 64)
	return planID{generation: generation, revision: revision, digest: parts[3]}, nil
}
