package impact

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/crd/request"
	"github.com/espalier-dev/espalier/internal/object"
)

// convert brings objects that are stored in another version into the new storage version.
func (c *Change) convert(ctx context.Context, list []Outcome) error {
	var other []int
	for i := range list {
		if list[i].read != nil && list[i].Effects&Unreadable == 0 && list[i].Version != c.now.storage {
			other = append(other, i)
		}
	}
	if len(other) == 0 || c.now.versions[c.now.storage] == nil {
		return nil
	}
	objs := make([]*object.Object, len(other))
	for i, at := range other {
		objs[i] = list[at].read
	}
	converted, errs := c.now.all(ctx, objs, c.now.storage)
	if err := ctx.Err(); err != nil {
		return err
	}
	for i, at := range other {
		x := &list[at]
		switch err := errs[i]; {
		case err == errNoConversion: //nolint:errorlint // it is never wrapped
			x.Effects, x.Explanation = x.Effects|ConversionUnknown, err.Error()
		case err != nil:
			x.Effects, x.Explanation = x.Effects|NotConvertible, err.Error()
		default:
			c.pruned(ctx, x, converted[i])
		}
	}
	return nil
}

// retryTime is how long objects are converted one by one.
const retryTime = 2 * time.Second

// all converts objects with one call, and those of a call that fails one by one, so that one
// object does not hide what becomes of the others.
func (s *side) all(ctx context.Context, objs []*object.Object, version string) ([]*object.Object, []error) {
	errs := make([]error, len(objs))
	if s.convert == nil {
		for i := range errs {
			errs[i] = errNoConversion
		}
		return nil, errs
	}
	converted, err := s.convert(ctx, objs, version)
	if err == nil && len(converted) == len(objs) {
		return converted, errs
	}
	converted = make([]*object.Object, len(objs))
	end := time.Now().Add(retryTime)
	for i := range objs {
		if i > 0 && time.Now().After(end) { // a webhook that hangs would do so for each object
			errs[i] = errors.New("the conversion of this and other objects takes too long")
			continue
		}
		one, err := s.convert(ctx, objs[i:i+1], version)
		switch {
		case err != nil:
			errs[i] = err
		case len(one) != 1:
			errs[i] = fmt.Errorf("the conversion of one object returned %d", len(one))
		default:
			converted[i] = one[0]
		}
		if ctx.Err() != nil {
			break
		}
	}
	return converted, errs
}

// pruned records what an object loses on the way to the new storage version, and did not lose
// on the way to the old one.
func (c *Change) pruned(ctx context.Context, x *Outcome, converted *object.Object) {
	target := c.now.versions[c.now.storage]
	lost := losses(target, converted)
	if _, err := target.schema.DecodeConverted(converted); err != nil {
		x.Effects, x.Explanation = x.Effects|NotConvertible, err.Error()
		return
	}
	if len(lost) == 0 {
		return
	}
	if was := c.old.versions[c.old.storage]; was != nil && c.old.storage == c.now.storage && c.old.storage != x.Version {
		if before, errs := c.old.all(ctx, []*object.Object{x.read}, c.old.storage); errs[0] == nil {
			lost = minus(lost, losses(was, before[0]))
		}
	}
	if len(lost) > 0 {
		x.Effects |= LosesInConversion
		x.LostConverting = lost
	}
}

// losses returns the paths that the schema of a version prunes from a converted object.
func losses(v *version, converted *object.Object) []string {
	data := converted.JSON()
	result, err := v.schema.Normalize.Normalize(data, espalier.NormalizeOptions{Source: espalier.Converted})
	if err != nil || result.Changes&lossy == 0 {
		return nil
	}
	var r espalier.Report
	if _, err := v.schema.Normalize.Normalize(data, espalier.NormalizeOptions{Source: espalier.Converted, Report: &r}); err != nil {
		return nil
	}
	return listed(&r).pruned
}

// requests records what the server answers if the object is created again or updated.
func (c *Change) requests(ctx context.Context, x *Outcome) {
	client := c.now.client(x.Version)
	if x.read == nil || client == nil || client.same && client.name == x.Version {
		return // it cannot be read or written, or both requests get the same answer as today
	}
	if c.clean(x, client) {
		return
	}
	current, sent := x.read, x.before.JSON()
	if client.name != x.Version {
		if current = c.as(ctx, &c.now, x.read, client); current == nil {
			return // the conversion that failed is recorded, or it is one to a version that is not stored
		}
		sent = current.JSON()
	}
	created := client.create(sent, current)
	if len(created) > 0 {
		if before, was := c.today(ctx, x); before != nil {
			today := was.create(before.JSON(), before)
			x.RefusedAlready = len(today) > 0
			created = fresh(slices.Clone(created), today)
		}
		if x.Create = created; len(created) > 0 {
			x.Effects |= RefusedOnCreate
		}
	} else if client.ratchets(current) {
		return
	}
	if refused := client.update(current); len(refused) > 0 {
		if before, was := c.today(ctx, x); before != nil {
			refused = fresh(refused, was.update(before))
		}
		if x.Update = refused; len(refused) > 0 {
			x.Effects |= RefusedOnUpdate
		}
	}
}

// clean reports whether the new CRD finds nothing wrong with an object that reads as before, or has
// only lost fields. Then it refuses neither request: both have the object in this form when it is
// validated, but for its metadata, which the change of a CRD does not concern, and the status, which a
// create has not. Most objects are so, and to find out takes a fraction of the time of the requests.
func (c *Change) clean(x *Outcome, client *version) bool {
	if !client.simple || client.name != x.Version || x.Effects&(NewDefaults|KeepsFields|ChangesValues) != 0 {
		return false
	}
	if client.resource.Status && !client.free && x.read.Member("status") != nil {
		return false
	}
	found, err := client.resource.Validate(client.schema, x.read, request.Options{})
	return err == nil && len(found.Problems) == 0
}

// as returns an object in the version of a client, nil if that fails.
func (c *Change) as(ctx context.Context, s *side, o *object.Object, client *version) *object.Object {
	converted, errs := s.all(ctx, []*object.Object{o}, client.name)
	if errs[0] != nil {
		return nil
	}
	decoded, err := client.schema.DecodeConverted(converted[0])
	if err != nil {
		return nil
	}
	return decoded
}

// today returns the object as clients read it before the change, and the version they use.
func (c *Change) today(ctx context.Context, x *Outcome) (*object.Object, *version) {
	client := c.old.client(x.Version)
	switch {
	case client == nil:
		return nil, nil
	case client.name == x.Version:
		return x.before, client
	}
	return c.as(ctx, &c.old, x.before, client), client
}

// undecodable is the type of a refusal that is about the whole object.
const undecodable = "Undecodable"

// create returns why a server refuses a new object. If the body is that of an object as it was read, it is
// not decoded again.
//
// Metadata stay as they are, where a server sets them anew: what is wrong with them does not
// depend on the CRD.
func (v *version) create(body []byte, read *object.Object) []Refusal {
	o := read
	if string(body) != string(read.JSON()) {
		var err error
		if o, _, err = v.schema.Decode(body, nil, 0); err != nil {
			return []Refusal{{Message: err.Error(), Type: undecodable}}
		}
	}
	if v.dropsStatus(o) {
		o = o.DeepCopy()
		o.ReplaceMember("status", nil)
	}
	return v.validate(o, request.Options{})
}

// dropsStatus reports whether a server removes the status of an object that is created.
func (v *version) dropsStatus(o *object.Object) bool {
	return v.resource.Status && o.Member("status") != nil
}

// ratchets reports whether an update that changes nothing succeeds if creating the object does: rules can compare
// with the old object, and a status is validated only then.
func (v *version) ratchets(o *object.Object) bool {
	return v.schema.Rules == nil && !v.dropsStatus(o)
}

// update returns why a server refuses to write an object that has not changed. Values of the wrong type
// are not refused: they were there before.
func (v *version) update(current *object.Object) []Refusal {
	return v.validate(current, request.Options{Old: current})
}

func (v *version) validate(o *object.Object, options request.Options) []Refusal {
	found, err := v.resource.Validate(v.schema, o, options)
	if err != nil {
		return []Refusal{{Message: err.Error(), Type: undecodable}}
	}
	return refusals(found.ErrorList())
}

func refusals(errs field.ErrorList) []Refusal {
	var list []Refusal
	for _, e := range errs {
		list = append(list, Refusal{Field: e.Field, Type: string(e.Type), Message: e.ErrorBody(), Detail: e.Detail})
	}
	return list
}

// fresh returns the refusals that are not among those of today.
func fresh(refused, today []Refusal) []Refusal {
	return slices.DeleteFunc(refused, func(r Refusal) bool { return slices.Contains(today, r) })
}
