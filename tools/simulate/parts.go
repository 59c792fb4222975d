package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// parts are what one of each costs, as measured. Times are in seconds, sizes in bytes.
type parts struct {
	// of a get and a create, in a server and in etcd
	serverRead, serverWrite, etcdRead, etcdWrite float64
	// of a tenant that comes into use on a replica
	serverStart, etcdStart float64
	server                 float64 // memory of a replica without tenants in use
	plane                  float64 // and of each tenant in use
	stored                 float64 // of a tenant, in etcd
}

// benchmark is what a benchmark has written into docs/results.json.
type benchmark struct{ Figures map[string]string }

type results map[string]benchmark

func parse(text []byte) (r results, err error) { return r, json.Unmarshal(text, &r) }

var units = map[string]float64{"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1, "KB": 1e3, "MB": 1e6, "": 1}

// figure is a figure in seconds, bytes or without a unit.
func (r results) figure(of, name string) (float64, error) {
	text, found := r[of].Figures[name]
	if !found {
		return 0, fmt.Errorf("docs/results.json has no figure %q of %s: run `make %s`", name, of, of)
	}
	number, unit, _ := strings.Cut(strings.TrimSuffix(text, "/s"), " ")
	value, err := strconv.ParseFloat(strings.ReplaceAll(number, ",", ""), 64)
	scale, known := units[unit]
	if err != nil || !known {
		return 0, fmt.Errorf("the figure %q of %s is %q, which is no number with a unit that is known", name, of, text)
	}
	return value * scale, nil
}

// read finds the parts.
func (r results) read() (p parts, err error) {
	var reads, writes float64
	for _, one := range []struct {
		to       *float64
		of, name string
	}{
		{&p.serverRead, "bench-server", "certificates.get.espalier.cpu"},
		{&p.serverWrite, "bench-server", "certificates.create.espalier.cpu"},
		{&reads, "bench-server", "certificates.get.etcd.rate"},
		{&writes, "bench-server", "certificates.create.etcd.rate"},
		{&p.serverStart, "bench-scale", "start.server"},
		{&p.etcdStart, "bench-scale", "start.etcd"},
		{&p.server, "bench-scale", "0 in use.resident"},
		{&p.plane, "bench-scale", "plane.heap"},
		{&p.stored, "bench-tenants", "stored"},
	} {
		if *one.to, err = r.figure(one.of, one.name); err != nil {
			return p, err
		}
	}
	// An etcd works on as many at a time as its clients send; what limits it is how many a second.
	p.etcdRead, p.etcdWrite = 1/reads, 1/writes
	p.plane *= 2 // Go's garbage collector lets garbage grow to the size of the live heap
	return p, nil
}
