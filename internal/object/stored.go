package object

import "context"

// stored is what a request for another kind writes.
type stored struct{ o, old *Object }

type storedKey struct{}

// WithStored notes what is going to be stored, and what was, while admission looks at
// a subresource of another kind (scale). It costs one allocation.
func WithStored(ctx context.Context, o, old *Object) context.Context {
	return context.WithValue(ctx, storedKey{}, &stored{o, old})
}

// Stored returns what [WithStored] has noted.
func Stored(ctx context.Context) (o, old *Object, ok bool) {
	s, ok := ctx.Value(storedKey{}).(*stored)
	if !ok {
		return nil, nil, false
	}
	return s.o, s.old, true
}
