package pattern

// minimize merges the states of a table that no text tells apart. rows has
// width entries for each state; dead and accept are the first two and stay so.
//
// This is Hopcroft's algorithm: begin with the two blocks of states that the
// end of the text tells apart, and split blocks by what leads into another one.
// It takes n log n steps where the obvious way takes n², which is what counted
// repetitions would have it take.
func minimize(rows []int, width, start int) (merged []int, newStart int) {
	count, classes := len(rows)/width, width-1
	p := newBlocks(rows, width)
	into := invert(rows, width)
	for len(p.work) > 0 {
		splitter := p.work[len(p.work)-1]
		p.work = p.work[:len(p.work)-1]
		p.queued[splitter] = false
		// A copy: the splitter may itself be split.
		members := append([]int(nil), p.members(splitter)...)
		for c := range classes {
			for _, s := range members {
				for _, from := range into.sources(c*count + s) {
					p.mark(from)
				}
			}
			p.split()
		}
	}
	return p.quotient(rows, width), p.ids()[p.block[start]]
}

// sources are the states that lead to each pair of class and state.
type sources struct {
	first []int // of each pair in list, and the list's length
	list  []int
}

func (s *sources) sources(pair int) []int { return s.list[s.first[pair]:s.first[pair+1]] }

func invert(rows []int, width int) *sources {
	count, classes := len(rows)/width, width-1
	s := &sources{first: make([]int, classes*count+1), list: make([]int, classes*count)}
	each := func(f func(from, pair int)) {
		for from := range count {
			for c := range classes {
				f(from, c*count+rows[from*width+c])
			}
		}
	}
	each(func(_, pair int) { s.first[pair+1]++ })
	for i := range classes * count {
		s.first[i+1] += s.first[i]
	}
	at := append([]int(nil), s.first...)
	each(func(from, pair int) {
		s.list[at[pair]] = from
		at[pair]++
	})
	return s
}

// blocks is a partition of the states. The members of a block are next to each
// other in order, those that are marked first.
type blocks struct {
	order       []int // states
	place       []int // of a state in order
	block       []int // of a state
	first, size []int // of a block
	marked      []int // how many members of a block are marked
	touched     []int // blocks with marked members
	work        []int // blocks that others are still to be split by
	queued      []bool
}

// newBlocks returns the blocks of the states that reject and accept where the
// text ends.
func newBlocks(rows []int, width int) *blocks {
	count := len(rows) / width
	p := &blocks{place: make([]int, count), block: make([]int, count)}
	for final := range []int{deadID, acceptID} {
		p.first = append(p.first, len(p.order))
		for s := range count {
			if rows[(s+1)*width-1] == final {
				p.place[s], p.block[s] = len(p.order), final
				p.order = append(p.order, s)
			}
		}
		p.size = append(p.size, len(p.order)-p.first[final])
		p.marked = append(p.marked, 0)
		p.work = append(p.work, final)
		p.queued = append(p.queued, true)
	}
	return p
}

func (p *blocks) members(block int) []int {
	return p.order[p.first[block] : p.first[block]+p.size[block]]
}

// mark moves a state to the front of its block.
func (p *blocks) mark(s int) {
	b := p.block[s]
	to := p.first[b] + p.marked[b]
	if p.place[s] < to {
		return
	}
	if p.marked[b] == 0 {
		p.touched = append(p.touched, b)
	}
	other := p.order[to]
	p.order[to], p.order[p.place[s]] = s, other
	p.place[s], p.place[other] = to, p.place[s]
	p.marked[b]++
}

// split takes the marked states out of their blocks.
func (p *blocks) split() {
	for _, b := range p.touched {
		n := p.marked[b]
		p.marked[b] = 0
		if n == p.size[b] {
			continue
		}
		fresh := len(p.first)
		p.first = append(p.first, p.first[b])
		p.size = append(p.size, n)
		p.marked = append(p.marked, 0)
		p.queued = append(p.queued, false)
		p.first[b] += n
		p.size[b] -= n
		for _, s := range p.members(fresh) {
			p.block[s] = fresh
		}
		// Splitting by a block and by one half of it is splitting by the other.
		if !p.queued[b] && p.size[b] < n {
			fresh = b
		}
		p.queued[fresh] = true
		p.work = append(p.work, fresh)
	}
	p.touched = p.touched[:0]
}

// ids numbers the blocks such that dead and accept keep their places.
func (p *blocks) ids() []int {
	ids := make([]int, len(p.first))
	next := firstID
	for b := range ids {
		switch b {
		case p.block[deadID]:
			ids[b] = deadID
		case p.block[acceptID]:
			ids[b] = acceptID
		default:
			ids[b] = next
			next++
		}
	}
	return ids
}

// quotient builds the table of the blocks.
func (p *blocks) quotient(rows []int, width int) []int {
	ids := p.ids()
	merged := make([]int, len(ids)*width)
	for b, id := range ids {
		s := p.order[p.first[b]]
		for c, to := range rows[s*width : (s+1)*width] {
			merged[id*width+c] = ids[p.block[to]]
		}
	}
	return merged
}
