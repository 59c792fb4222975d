package endpoints

import "errors"

// splitter cuts a JSON object that arrives in pieces into its members, and the
// array of one of them into its items. It keeps no more than one value at a
// time. What it reads was written by an encoder: it looks for the ends of
// values and checks nothing else. The writer gets members whose values are complete; open
// begins the array whose items come one by one, and close ends it.
type splitter struct {
	out    *textWriter
	arrays map[string]bool // the members whose items come one by one

	state          splitState
	depth          int // within the value that is being read
	quoted, escape bool
	key, value     []byte
}

type splitState int

const (
	beforeObject splitState = iota
	beforeKey
	inKey
	beforeValue
	inValue
	beforeItem
	inItem
	afterObject
)

var errNoObject = errors.New("the response is not a JSON object")

// Write implements io.Writer.
func (s *splitter) Write(p []byte) (int, error) {
	for i, c := range p {
		if err := s.next(c); err != nil {
			return i, err
		}
	}
	return len(p), nil
}

func (s *splitter) next(c byte) error {
	switch s.state {
	case inValue, inItem:
		return s.within(c)
	case inKey:
		if s.inString(c); s.quoted {
			s.key = append(s.key, c)
		} else {
			s.state = beforeValue
		}
		return nil
	}
	if c == ' ' || c == '\n' || c == '\t' || c == '\r' {
		return nil
	}
	return s.between(c)
}

// between is next for what stands between values.
func (s *splitter) between(c byte) error {
	switch s.state {
	case beforeObject:
		if c != '{' {
			return errNoObject
		}
		s.state = beforeKey
	case beforeKey:
		switch c {
		case '"':
			s.state, s.quoted, s.key = inKey, true, s.key[:0]
		case '}':
			s.state = afterObject
		}
	case beforeValue:
		switch {
		case c == ':':
		case c == '[' && s.arrays[string(s.key)]:
			s.state = beforeItem
			return s.out.open(string(s.key))
		default:
			s.state, s.value = inValue, s.value[:0]
			return s.within(c)
		}
	case beforeItem:
		switch c {
		case ',':
		case ']':
			s.state = beforeKey
			return s.out.close()
		default:
			s.state, s.value = inItem, s.value[:0]
			return s.within(c)
		}
	}
	return nil
}

// within reads one byte of a value, or the one after it.
func (s *splitter) within(c byte) error {
	if s.quoted {
		s.inString(c)
		s.value = append(s.value, c)
		return nil
	}
	switch c {
	case '"':
		s.quoted = true
	case '{', '[':
		s.depth++
	case '}', ']':
		if s.depth == 0 {
			return s.end(c)
		}
		s.depth--
	case ',':
		if s.depth == 0 {
			return s.end(c)
		}
	}
	s.value = append(s.value, c)
	return nil
}

// inString follows a string up to its end.
func (s *splitter) inString(c byte) {
	switch {
	case s.escape:
		s.escape = false
	case c == '\\':
		s.escape = true
	case c == '"':
		s.quoted = false
	}
}

// end passes a value on. c is what follows it.
func (s *splitter) end(c byte) error {
	if s.state == inItem {
		s.state = beforeItem
		if err := s.out.item(s.value); err != nil {
			return err
		}
	} else {
		s.state = beforeKey
		if err := s.out.member(s.key, s.value); err != nil {
			return err
		}
	}
	return s.between(c)
}
