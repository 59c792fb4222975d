package store

import (
	"context"

	"google.golang.org/grpc/metadata"
)

// OwnStream has the watches of a context, and its requests for progress, use a gRPC
// stream of their own. etcd's client puts watches with the same metadata on one stream,
// and etcd tells the progress of a stream only when all of its watches have caught up: a
// slow watch, or one of a revision of the future, would keep the others waiting.
func OwnStream(ctx context.Context, name string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "espalier-watch", name)
}
