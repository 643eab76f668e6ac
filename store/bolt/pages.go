package bolt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
)

// bbolt believes its pages: a damaged one makes it panic, read at wild addresses, or, when
// a branch leads back to where it came from, go round until the stack is full and the
// process ends. So the trees are walked here first, by plain reads and with a bound on
// everything: wholly by [Check], and at the start of the engine as far as it takes to be
// safe.

// Layout of pages, see internal/common of bbolt. Fields are in the byte order of the
// machine.
const (
	pageHeaderLen  = 16 // id 8, flags 2, count 2, overflow 4
	pageElementLen = 16 // branch: pos 4, ksize 4, page 8; leaf: flags 4, pos 4, ksize 4, vsize 4
	bucketLen      = 16 // root page 8, sequence 8; an inline page may follow

	pageBranch   = 0x01
	pageLeaf     = 0x02
	pageFreelist = 0x10

	elementBucket = 1
	manyFree      = 0xFFFF // the number of free pages stands in the first element
	noFreelist    = ^uint64(0)

	metaRoot     = 32
	metaFreelist = 48
)

// Bounds of a walk.
const (
	maxHeight = 64
	// mostPageProblems is how many are told of.
	mostPageProblems = 1000
	// startPages is how many branch pages of a tree are looked at when the engine starts:
	// all of them up to some hundred MiB of data, and of larger stores the upper ones,
	// from where all partitions are reached.
	startPages = 512
)

// pageWalk examines the trees of a file.
type pageWalk struct {
	file     io.ReaderAt
	pageSize int64
	root     uint64
	freelist uint64
	pages    uint64 // in use, counted from the start of the file
	seen     []uint64
	problems []string
	// loop tells of a page that is reached twice. Nothing must follow such a tree.
	loop string
	// branches bounds the branch pages of each tree that are looked at, and leaves are
	// not; 0: everything is.
	branches int
}

const listOfBuckets = "the list of buckets"

func (w *pageWalk) bad(page uint64, tree, format string, args ...any) {
	if len(w.problems) < mostPageProblems {
		w.problems = append(w.problems, fmt.Sprintf("page %d of %s: ", page, tree)+fmt.Sprintf(format, args...))
	}
}

// newPageWalk begins with the newest whole meta page; there is none in a file that bbolt
// would not open.
func newPageWalk(file io.ReaderAt) (*pageWalk, bool) {
	meta, ok := newestMeta(file)
	if !ok {
		return nil, false
	}
	w := &pageWalk{
		file:     file,
		pageSize: int64(binary.NativeEndian.Uint32(meta[metaPageSize:])),
		root:     binary.NativeEndian.Uint64(meta[metaRoot:]),
		freelist: binary.NativeEndian.Uint64(meta[metaFreelist:]),
		pages:    binary.NativeEndian.Uint64(meta[metaPages:]),
	}
	if w.pageSize < metaEnd {
		return nil, false
	}
	w.seen = make([]uint64, w.pages/64+1)
	return w, true
}

// whole walks everything and accounts for every page.
func (w *pageWalk) whole() {
	w.tree(listOfBuckets, w.root, true)
	if w.freelist == noFreelist {
		return
	}
	w.free()
	lost := uint64(0)
	for page := uint64(2); page < w.pages; page++ {
		if !w.isSeen(page) {
			lost++
		}
	}
	if lost > 0 && len(w.problems) == 0 {
		w.problems = append(w.problems, fmt.Sprintf("%d pages are neither in use nor free", lost))
	}
}

// upper walks the branch pages of each tree from above, at most limit of them.
func (w *pageWalk) upper(limit int) {
	w.branches = limit
	w.tree(listOfBuckets, w.root, true)
}

func (w *pageWalk) isSeen(page uint64) bool { return w.seen[page/64]&(1<<(page%64)) != 0 }

// take notes pages as reached, and reports whether that is the first time.
func (w *pageWalk) take(page, overflow uint64, tree string) bool {
	if page < 2 || page >= w.pages || overflow >= w.pages-page {
		w.bad(page, tree, "there is no such page, the file has %d", w.pages)
		return false
	}
	for i := page; i <= page+overflow; i++ {
		if w.isSeen(i) {
			w.loop = fmt.Sprintf("page %d of %s is reached in two ways", i, tree)
			w.bad(i, tree, "it is reached in two ways")
			return false
		}
		w.seen[i/64] |= 1 << (i % 64)
	}
	return true
}

// branchTo is a page that is to be looked at, with the bounds of its keys.
type branchTo struct {
	page     uint64
	min, max []byte // nil: none
	level    int
}

// tree walks one tree. Only that of buckets may hold buckets.
func (w *pageWalk) tree(name string, root uint64, buckets bool) {
	height, left := w.height(root), w.branches
	bounded := left > 0 && !buckets
	next := []branchTo{{page: root, level: 1}}
	for len(next) > 0 {
		var at branchTo
		if bounded { // level by level
			at, next = next[0], next[1:]
		} else { // down first, for a level may have very many pages
			at, next = next[len(next)-1], next[:len(next)-1]
		}
		if bounded && at.level == height {
			w.take(at.page, 0, name)
			continue
		}
		p, ok := w.read(at.page, name)
		if !ok || !w.take(at.page, p.overflow, name) {
			continue
		}
		switch {
		case p.flags == pageBranch && at.level < height:
			if left--; bounded && left < 0 {
				return
			}
			next = append(next, w.branch(p, at, name)...)
		case p.flags == pageLeaf && at.level == height:
			w.leaf(p, at, name, buckets)
		default:
			w.bad(at.page, name, "it is no page of that level (type %#x)", p.flags)
		}
	}
}

// height finds the number of levels by going down on the left.
func (w *pageWalk) height(root uint64) int {
	page := root
	for level := 1; level < maxHeight; level++ {
		p, ok := w.read(page, "")
		if !ok || p.flags != pageBranch || p.count == 0 {
			return level
		}
		var e [pageElementLen]byte
		if _, err := w.file.ReadAt(e[:], p.at+pageHeaderLen); err != nil {
			return level
		}
		page = binary.NativeEndian.Uint64(e[8:])
	}
	return maxHeight
}

// page is the header of one.
type page struct {
	id       uint64
	at       int64 // where it begins in the file
	length   int64
	flags    uint16
	count    int
	overflow uint64
	head     []byte // its beginning, one page of it
}

// read reads the beginning of a page. Without a tree's name it is silent.
func (w *pageWalk) read(id uint64, tree string) (p page, ok bool) {
	problem := func(format string, args ...any) {
		if tree != "" {
			w.bad(id, tree, format, args...)
		}
	}
	if id < 2 || id >= w.pages {
		problem("there is no such page, the file has %d", w.pages)
		return p, false
	}
	p = page{id: id, at: int64(id) * w.pageSize, head: make([]byte, w.pageSize)}
	if _, err := w.file.ReadAt(p.head, p.at); err != nil {
		problem("it cannot be read: %v", err)
		return p, false
	}
	if got := binary.NativeEndian.Uint64(p.head); got != id {
		problem("it says that it is page %d", got)
		return p, false
	}
	p.flags = binary.NativeEndian.Uint16(p.head[8:])
	p.count = int(binary.NativeEndian.Uint16(p.head[10:]))
	p.overflow = uint64(binary.NativeEndian.Uint32(p.head[12:]))
	p.length = int64(1+p.overflow) * w.pageSize
	if p.overflow >= w.pages-id || int64(p.count)*pageElementLen > p.length-pageHeaderLen && p.flags != pageFreelist {
		problem("it has %d elements on %d pages", p.count, 1+p.overflow)
		return p, false
	}
	return p, true
}

// bytes gives a stretch of a page.
func (w *pageWalk) bytes(p *page, from, n int64) ([]byte, error) {
	if from < 0 || n < 0 || from+n > p.length {
		return nil, fmt.Errorf("%d bytes at %d lie outside", n, from)
	}
	if from+n <= int64(len(p.head)) {
		return p.head[from : from+n], nil
	}
	b := make([]byte, n)
	_, err := w.file.ReadAt(b, p.at+from)
	return b, err
}

// keyOf gives the key of an element and the position behind it.
func (w *pageWalk) keyOf(p *page, element int64, pos, size uint32) (key []byte, end int64, err error) {
	from := element + int64(pos)
	key, err = w.bytes(p, from, int64(size))
	return key, from + int64(size), err
}

// order checks that a key lies behind the one before and within the bounds.
func (w *pageWalk) order(p *page, tree string, i int, before, key []byte, at branchTo) {
	switch {
	case len(key) == 0: // bbolt reads on, and panics when the page is written anew
		w.bad(p.id, tree, "the key of element %d is empty", i)
	case i > 0 && bytes.Compare(before, key) >= 0, i == 0 && at.min != nil && bytes.Compare(at.min, key) > 0:
		w.bad(p.id, tree, "key %x is not above the one before it", key)
	case at.max != nil && bytes.Compare(key, at.max) >= 0:
		w.bad(p.id, tree, "key %x is not below that of the next page", key)
	}
}

// branch examines a branch page and gives the pages below it.
func (w *pageWalk) branch(p page, at branchTo, tree string) []branchTo {
	if p.count == 0 {
		w.bad(p.id, tree, "it is a branch without elements")
	}
	below := make([]branchTo, 0, p.count)
	var before []byte
	for i := range p.count {
		element := int64(pageHeaderLen + i*pageElementLen)
		e, err := w.bytes(&p, element, pageElementLen)
		var key []byte
		if err == nil {
			key, _, err = w.keyOf(&p, element, binary.NativeEndian.Uint32(e), binary.NativeEndian.Uint32(e[4:]))
		}
		if err != nil {
			w.bad(p.id, tree, "element %d: %v", i, err)
			return below
		}
		w.order(&p, tree, i, before, key, at)
		if i > 0 {
			below[i-1].max = key
		}
		below = append(below, branchTo{page: binary.NativeEndian.Uint64(e[8:]), min: key, max: at.max, level: at.level + 1})
		before = key
	}
	return below
}

// leaf examines a leaf page, and the trees of the buckets in it.
func (w *pageWalk) leaf(p page, at branchTo, tree string, buckets bool) {
	var before []byte
	for i := range p.count {
		element := int64(pageHeaderLen + i*pageElementLen)
		e, err := w.bytes(&p, element, pageElementLen)
		var key []byte
		var end int64
		if err == nil {
			key, end, err = w.keyOf(&p, element, binary.NativeEndian.Uint32(e[4:]), binary.NativeEndian.Uint32(e[8:]))
		}
		flags, size := uint32(0), int64(0)
		if err == nil {
			flags, size = binary.NativeEndian.Uint32(e), int64(binary.NativeEndian.Uint32(e[12:]))
			if end+size > p.length {
				err = fmt.Errorf("its value of %d bytes lies outside", size)
			}
		}
		if err != nil {
			w.bad(p.id, tree, "element %d: %v", i, err)
			return
		}
		w.order(&p, tree, i, before, key, at)
		before = key
		if (flags == elementBucket) != buckets || flags > elementBucket {
			w.bad(p.id, tree, "element %d has flags %#x", i, flags)
			continue
		}
		if buckets {
			w.bucket(&p, tree, key, end, size)
		}
	}
}

// bucket walks the tree of a bucket, unless it lies in the value itself.
func (w *pageWalk) bucket(p *page, tree string, key []byte, from, size int64) {
	v, err := w.bytes(p, from, size)
	if err != nil || size < bucketLen {
		w.bad(p.id, tree, "bucket %q has %d bytes: %v", key, size, err)
		return
	}
	name := fmt.Sprintf("bucket %q", key)
	if root := binary.NativeEndian.Uint64(v); root != 0 {
		w.tree(name, root, false)
		return
	}
	v = v[bucketLen:]
	if len(v) < pageHeaderLen {
		w.bad(p.id, name, "it has no room for a page")
		return
	}
	inline := page{
		id: p.id, length: int64(len(v)), head: v,
		flags: binary.NativeEndian.Uint16(v[8:]), count: int(binary.NativeEndian.Uint16(v[10:])),
	}
	if inline.flags != pageLeaf {
		w.bad(p.id, name, "it is no leaf (type %#x)", inline.flags)
		return
	}
	w.leaf(inline, branchTo{}, name, false)
}

// free examines the list of free pages.
func (w *pageWalk) free() {
	const tree = "the list of free pages"
	p, ok := w.read(w.freelist, tree)
	if !ok || !w.take(p.id, p.overflow, tree) {
		return
	}
	if p.flags != pageFreelist {
		w.bad(p.id, tree, "it is no such list (type %#x)", p.flags)
		return
	}
	from, count := int64(pageHeaderLen), int64(p.count)
	if p.count == manyFree {
		count, from = int64(binary.NativeEndian.Uint64(p.head[pageHeaderLen:])), from+8
	}
	if count < 0 || count > p.length/8 {
		w.bad(p.id, tree, "it has %d elements", count)
		return
	}
	ids, err := w.bytes(&p, from, 8*count)
	if err != nil {
		w.bad(p.id, tree, "%v", err)
		return
	}
	for ; len(ids) > 0; ids = ids[8:] {
		id := binary.NativeEndian.Uint64(ids)
		switch {
		case id < 2 || id >= w.pages:
			w.bad(p.id, tree, "it names page %d, the file has %d", id, w.pages)
		case w.isSeen(id):
			w.bad(p.id, tree, "it names page %d, which is in use", id)
		default:
			w.seen[id/64] |= 1 << (id % 64)
		}
	}
}
