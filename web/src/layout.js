// Where the boxes of a graph stand: each to the right of all that it comes after, with as few crossings as some sweeps
// find.

export const box = {width: 172, height: 58, gapX: 46, gapY: 12, lane: 10}

const sweeps = 6

// layout places nodes, each with an id and the ids that it comes after. An edge over several columns goes through lanes
// of its own; those from one node share them.
export function layout(nodes) {
  const known = new Map(nodes.map((n) => [n.id, n]))
  const before = (id) => known.get(id).after.filter((a) => known.has(a))
  const depths = new Map()
  const depthOf = (id) => {
    if (!depths.has(id)) {
      depths.set(id, 0) // a circle, which no peer takes, ends here
      depths.set(
        id,
        before(id).reduce((deepest, a) => Math.max(deepest, depthOf(a) + 1), 0),
      )
    }
    return depths.get(id)
  }
  const columns = []
  const cells = new Map()
  const cell = (key, depth, height) => {
    if (!cells.has(key)) {
      const made = {depth, height, back: [], on: []}
      cells.set(key, made)
      ;(columns[depth] ||= []).push(made)
    }
    return cells.get(key)
  }
  const join = (from, to) => {
    if (!from.on.includes(to)) from.on.push(to)
    if (!to.back.includes(from)) to.back.push(from)
  }
  for (const {id} of nodes) cell(id, depthOf(id), box.height)
  const edges = []
  for (const {id} of nodes) {
    for (const a of before(id)) {
      const way = [cells.get(a)]
      for (let d = depthOf(a) + 1; d < depthOf(id); d++) way.push(cell(`lane ${d} ${a}`, d, box.lane))
      way.push(cells.get(id))
      for (let i = 1; i < way.length; i++) join(way[i - 1], way[i])
      edges.push({from: a, to: id, way})
    }
  }
  order(columns)
  const height = place(columns)
  return {
    places: new Map(nodes.map(({id}) => [id, cells.get(id)])),
    edges: edges.map((e) => ({...e, path: path(e.way)})),
    width: columns.length * (box.width + box.gapX) - box.gapX,
    height,
  }
}

// order sorts each column by where its neighbours are, forwards and backwards.
function order(columns) {
  const number = (column) => column.forEach((c, i) => (c.rank = i))
  columns.forEach(number)
  for (let sweep = 0; sweep < sweeps; sweep++) {
    const side = sweep % 2 ? 'on' : 'back'
    for (const column of sweep % 2 ? [...columns].reverse() : columns) {
      for (const c of column) {
        const all = c[side]
        c.wish = all.length ? all.reduce((sum, n) => sum + n.rank, 0) / all.length : c.rank
      }
      column.sort((a, b) => a.wish - b.wish)
      number(column)
    }
  }
}

// place gives each cell its corner, columns in the middle of the tallest, and returns how high that is.
function place(columns) {
  const tall = (column) => column.reduce((sum, c) => sum + c.height + box.gapY, -box.gapY)
  const most = Math.max(0, ...columns.map(tall))
  columns.forEach((column, depth) => {
    let y = (most - tall(column)) / 2
    for (const c of column) {
      c.x = depth * (box.width + box.gapX)
      c.y = y
      y += c.height + box.gapY
    }
  })
  return most
}

// path draws the way of an edge: straight through its lanes, curved between them.
function path(way) {
  const middle = (c) => c.y + c.height / 2
  let drawn = `M${way[0].x + box.width} ${middle(way[0])}`
  way.slice(1).forEach((c, i) => {
    const bend = box.gapX / 2
    const end = c === way.at(-1) ? c.x - 5 : c.x
    drawn += `C${c.x - bend} ${middle(way[i])} ${end - bend} ${middle(c)} ${end} ${middle(c)}`
    if (c !== way.at(-1)) drawn += `H${c.x + box.width}`
  })
  return drawn
}
