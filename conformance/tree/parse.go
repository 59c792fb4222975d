package tree

import (
	"errors"
	"fmt"
)

// maxDepth keeps hostile documents from exhausting the stack of this recursive reader.
const maxDepth = 20000

// Parse reads one JSON value. Strings may hold any bytes and scalars any text; only the brackets must be right.
func Parse(src []byte) (*Node, error) {
	p := parser{src: src}
	n, err := p.value(0)
	if err != nil {
		return nil, err
	}
	p.space()
	if p.at < len(p.src) {
		return nil, fmt.Errorf("trailing data at %d", p.at)
	}
	return n, nil
}

type parser struct {
	src []byte
	at  int
}

var errEnd = errors.New("unexpected end")

func (p *parser) space() {
	for p.at < len(p.src) {
		switch p.src[p.at] {
		case ' ', '\t', '\r', '\n':
			p.at++
		default:
			return
		}
	}
}

func (p *parser) value(depth int) (*Node, error) {
	if depth > maxDepth {
		return nil, errors.New("too deep")
	}
	p.space()
	if p.at >= len(p.src) {
		return nil, errEnd
	}
	switch c := p.src[p.at]; c {
	case '{':
		return p.object(depth)
	case '[':
		return p.array(depth)
	case '"':
		raw, err := p.str()
		return &Node{Raw: raw}, err
	}
	start := p.at
	for p.at < len(p.src) {
		switch p.src[p.at] {
		case ' ', '\t', '\r', '\n', ',', ':', '{', '}', '[', ']', '"':
			goto done
		}
		p.at++
	}
done:
	if p.at == start {
		return nil, fmt.Errorf("no value at %d", start)
	}
	return &Node{Raw: string(p.src[start:p.at])}, nil
}

func (p *parser) str() (string, error) {
	start := p.at
	for p.at++; p.at < len(p.src); p.at++ {
		switch p.src[p.at] {
		case '\\':
			p.at++
		case '"':
			p.at++
			return string(p.src[start:p.at]), nil
		}
	}
	return "", errEnd
}

func (p *parser) array(depth int) (*Node, error) {
	n := &Node{Kind: Array}
	p.at++
	for first := true; ; first = false {
		p.space()
		if p.at >= len(p.src) {
			return nil, errEnd
		}
		switch c := p.src[p.at]; {
		case c == ']' && (first || len(n.Kids) > 0):
			p.at++
			return n, nil
		case c == ',' && !first:
			p.at++
		case !first:
			return nil, fmt.Errorf("no comma at %d", p.at)
		}
		kid, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		n.Kids = append(n.Kids, kid)
	}
}

func (p *parser) object(depth int) (*Node, error) {
	n := &Node{Kind: Object}
	p.at++
	for first := true; ; first = false {
		p.space()
		if p.at >= len(p.src) {
			return nil, errEnd
		}
		switch c := p.src[p.at]; {
		case c == '}':
			p.at++
			return n, nil
		case c == ',' && !first:
			p.at++
			p.space()
		case !first:
			return nil, fmt.Errorf("no comma at %d", p.at)
		}
		if p.at >= len(p.src) || p.src[p.at] != '"' {
			return nil, fmt.Errorf("no key at %d", p.at)
		}
		key, err := p.str()
		if err != nil {
			return nil, err
		}
		p.space()
		if p.at >= len(p.src) || p.src[p.at] != ':' {
			return nil, fmt.Errorf("no colon at %d", p.at)
		}
		p.at++
		kid, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		n.Keys = append(n.Keys, key)
		n.Kids = append(n.Kids, kid)
	}
}
