package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"

	"k8s.io/client-go/rest"
)

// profile collects a CPU profile of our server for a minute, beside the run, and tells when it is written.
func (b *bench) profile(ctx context.Context, file string) <-chan error {
	done := make(chan error, 1)
	go func() { done <- b.collect(ctx, file) }()
	return done
}

func (b *bench) collect(ctx context.Context, file string) error {
	i := slices.IndexFunc(b.sides, func(s *side) bool { return s.name == ours })
	if i < 0 {
		return errors.New("our server is not among the sides")
	}
	config := b.sides[i].server.Config
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+"/debug/pprof/profile?seconds=55", http.NoBody)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the server answers %s", response.Status)
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, response.Body)
	return errors.Join(err, out.Close())
}
