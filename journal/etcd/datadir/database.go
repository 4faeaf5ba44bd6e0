package datadir

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"slices"
)

// The format of the database's file, which is bbolt's: pages in trees, each with a header and as many elements as that
// says, which tell where in the page their keys and values are.
const (
	headerBytes, elementBytes = 16, 16
	branchPage, leafPage      = 1, 2
	bucketElement             = 1
	bucketBytes               = 16 // what the value of such an element begins with
	metaBytes                 = 64
	metaMagic, metaVersion    = 0xED0CDAED, 2
	pageBytesMin              = 1 << 10
	pageBytesMax              = pageBytesMin << 15
	// depthMax is more levels than any file has.
	depthMax = 32
)

// held is what a member's database holds.
type held struct {
	index   uint64   // the last entry that is in it
	members []string // those that it knows, and those that were removed, as the engine writes them
}

// database is a file that is read.
type database struct {
	file      *os.File
	pageBytes uint64
	root      uint64
	pages     uint64
	change    uint64 // the number of the one that was written last
	seen      []bool // by page: something refers to it
	buffers   [depthMax][]byte
	held      held
}

// readDatabase reads all that a database refers to, and checks that its trees are whole.
func readDatabase(file *os.File) (held, error) {
	info, err := file.Stat()
	if err == nil && info.IsDir() {
		err = errors.New("it is a folder")
	}
	d := database{file: file}
	for at := int64(0); err == nil && at <= pageBytesMax; at = max(2*at, pageBytesMin) {
		err = d.readMeta(at)
	}
	switch {
	case err != nil:
		return held{}, err
	case d.pages < 2:
		return held{}, errors.New("it does not begin as a database does")
	case uint64(info.Size())/d.pageBytes < d.pages:
		return held{}, fmt.Errorf("it has %d bytes, and %d pages of %d bytes belong to it: its end is missing", info.Size(), d.pages,
			d.pageBytes)
	}
	d.seen = make([]bool, d.pages)
	d.seen[0], d.seen[1] = true, true
	err = d.walk(part{}, d.root)
	return d.held, err
}

// readMeta reads one of the two pages that say where the rest is. The newer one that is whole counts: the engine writes
// them in turn.
func (d *database) readMeta(at int64) error {
	page := make([]byte, headerBytes+metaBytes)
	if _, err := d.file.ReadAt(page, at); errors.Is(err, io.EOF) {
		return nil
	} else if err != nil {
		return err
	}
	meta, order := page[headerBytes:], binary.NativeEndian
	sum := fnv.New64a()
	sum.Write(meta[:metaBytes-8])
	size, change := uint64(order.Uint32(meta[8:])), order.Uint64(meta[48:])
	if order.Uint32(meta) != metaMagic || order.Uint32(meta[4:]) != metaVersion ||
		order.Uint64(meta[56:]) != sum.Sum64() ||
		size < pageBytesMin || at > 0 && uint64(at) != size || d.pages > 0 && change < d.change {
		return nil
	}
	d.pageBytes, d.root, d.pages, d.change = size, order.Uint64(meta[16:]), order.Uint64(meta[40:]), change
	return nil
}

// part is a page of a tree and all below. Its keys are at least low and less than high, as far as these are given. The
// outermost tree, whose name is empty, has the others as values.
type part struct {
	tree      string
	depth     int
	low, high []byte
}

// walk reads a part, whose first page is given.
func (d *database) walk(p part, id uint64) error {
	if p.depth == depthMax {
		return fmt.Errorf("page %d: its tree has more than %d levels", id, depthMax)
	}
	page, err := d.page(id, p.depth)
	if err == nil {
		err = d.elements(p, page)
	}
	if err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	return nil
}

// page reads a page with those that continue it. It is valid until the next one of that depth is read.
func (d *database) page(id uint64, depth int) ([]byte, error) {
	if id >= d.pages {
		return nil, fmt.Errorf("the file has %d pages", d.pages)
	}
	if d.buffers[depth] == nil {
		d.buffers[depth] = make([]byte, d.pageBytes)
	}
	page, order := d.buffers[depth][:d.pageBytes], binary.NativeEndian
	if _, err := d.file.ReadAt(page, int64(id*d.pageBytes)); err != nil {
		return nil, err
	}
	last := id + uint64(order.Uint32(page[12:]))
	if order.Uint64(page) != id || last >= d.pages {
		return nil, errors.New("it is none of a database")
	}
	for i := id; i <= last; i++ {
		if d.seen[i] {
			return nil, errors.New("it is used twice")
		}
		d.seen[i] = true
	}
	if last == id {
		return page, nil
	}
	page = slices.Grow(page, int((last-id)*d.pageBytes))[:(last+1-id)*d.pageBytes]
	d.buffers[depth] = page
	_, err := d.file.ReadAt(page[d.pageBytes:], int64((id+1)*d.pageBytes))
	return page, err
}

// elements reads what the first page of a part holds, and what is below.
func (d *database) elements(p part, page []byte) error {
	kind, all, err := p.read(page)
	for i := 0; err == nil && i < len(all); i++ {
		switch e := &all[i]; {
		case kind == branchPage:
			below := part{p.tree, p.depth + 1, e.key, p.high}
			if i+1 < len(all) {
				below.high = all[i+1].key
			}
			err = d.walk(below, e.page)
		case e.isTree:
			err = d.tree(part{tree: string(e.key), depth: p.depth}, e.value)
		default:
			d.held.take(p.tree, e.key, e.value)
		}
	}
	return err
}

// read returns the elements of the first page of a part, which are in order.
func (p part) read(page []byte) (kind uint16, all []element, err error) {
	kind = binary.NativeEndian.Uint16(page[8:])
	if kind != branchPage && kind != leafPage {
		return 0, nil, errors.New("it is neither a branch nor a leaf")
	}
	all = make([]element, binary.NativeEndian.Uint16(page[10:]))
	for i, last := 0, p.low; i < len(all); i++ {
		var ok bool
		if all[i], ok = elementAt(page, headerBytes+i*elementBytes, kind); !ok {
			return 0, nil, fmt.Errorf("element %d is not within it", i)
		}
		// What is alike is so by right only where a part begins: with the key by which the page above names it.
		if order := bytes.Compare(last, all[i].key); i > 0 && order == 0 || last != nil && order > 0 ||
			p.high != nil && bytes.Compare(all[i].key, p.high) >= 0 {
			return 0, nil, fmt.Errorf("element %d is not in order", i)
		}
		last = all[i].key
	}
	return kind, all, nil
}

// tree reads a tree that is the value of an element. A small one lies within.
func (d *database) tree(p part, value []byte) error {
	if len(value) < bucketBytes {
		return fmt.Errorf("tree %q has no root", p.tree)
	}
	root, inner := binary.NativeEndian.Uint64(value), value[bucketBytes:]
	if root != 0 {
		p.depth++
		return d.walk(p, root)
	}
	if len(inner) < headerBytes || binary.NativeEndian.Uint16(inner[8:]) != leafPage {
		return fmt.Errorf("tree %q is not whole", p.tree)
	}
	return d.elements(p, inner)
}

// element is one of a page: of a leaf it has a value, of a branch the page below.
type element struct {
	key, value []byte
	page       uint64
	isTree     bool
}

// elementAt reads an element, and tells whether all of it lies within the page.
func elementAt(page []byte, at int, kind uint16) (e element, ok bool) {
	order := binary.NativeEndian
	if at+elementBytes > len(page) {
		return e, false
	}
	head := page[at:]
	if kind == branchPage {
		from, size := at+int(order.Uint32(head)), int(order.Uint32(head[4:]))
		if from+size > len(page) {
			return e, false
		}
		return element{key: page[from : from+size], page: order.Uint64(head[8:])}, true
	}
	from, size := at+int(order.Uint32(head[4:])), int(order.Uint32(head[8:]))
	end := from + size + int(order.Uint32(head[12:]))
	if end > len(page) {
		return e, false
	}
	e = element{key: page[from : from+size], value: page[from+size : end]}
	e.isTree = order.Uint32(head)&bucketElement != 0
	return e, true
}

// take takes what a key of a tree says, if it matters here.
func (h *held) take(tree string, key, value []byte) {
	switch {
	case tree == "meta" && string(key) == "consistent_index" && len(value) == 8:
		h.index = binary.BigEndian.Uint64(value)
	case tree == "members" || tree == "members_removed":
		h.members = append(h.members, string(key))
	}
}
