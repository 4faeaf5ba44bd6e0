// How amounts, times and states are written: as the command line writes them.

// text makes control characters visible, so that output is shown as what it is: ^[ for Escape, as cat -v writes it.
export const text = (s) =>
  (s || '').replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g, (c) =>
    c.charCodeAt(0) < 32 ? '^' + String.fromCharCode(c.charCodeAt(0) + 64) : '\ufffd',
  )

export const cpu = (milli) => (Number(milli) % 1000 === 0 ? String(Number(milli) / 1000) : `${Number(milli)}m`)

export function bytes(n) {
  let value = Number(n)
  for (const unit of ['', 'Ki', 'Mi', 'Gi', 'Ti']) {
    if (Math.abs(value) < 1024 || unit === 'Ti')
      return (value % 1 && value < 100 ? value.toFixed(1) : Math.round(value)) + unit
    value /= 1024
  }
}

// amount writes so much of a kind of resource; devices are counted in thousandths.
export function amount(kind, n) {
  if (kind === 'cpu') return cpu(n)
  if (kind === 'memory' || kind === 'disk') return bytes(n)
  return String(Number(n) / 1000)
}

export const clock = (time) => (time ? new Date(time).toLocaleTimeString([], {hour12: false}) : '-')
export const date = (time) => (time ? new Date(time).toLocaleString([], {hour12: false}) : '-')

// times writes a sentence of a peer with its times as clock or date have them.
export function times(text) {
  return text.replace(/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\b/g, (time) =>
    new Date(time).toDateString() === new Date().toDateString() ? clock(time) : date(time),
  )
}

// age writes for how long something is so, at a moment.
export function age(time, now) {
  if (!time) return '-'
  const s = Math.max(0, Math.round(((now ? new Date(now) : new Date()) - new Date(time)) / 1000))
  if (s < 120) return `${s}s`
  if (s < 7200) return `${Math.floor(s / 60)}m`
  if (s < 172800) return `${Math.floor(s / 3600)}h`
  return `${Math.floor(s / 86400)}d`
}

export const counted = (n, noun) => `${n} ${noun}${n === 1 ? '' : 's'}`

// counts writes how the instances of a job stand: "4 running (1 not healthy), 2 waiting".
export function counts(c) {
  const parts = []
  for (const name of [
    'running',
    'assigned',
    'waiting',
    'backing_off',
    'rescheduling',
    'unknown',
    'stopping',
    'succeeded',
    'failed',
    'stopped',
  ]) {
    if (!c?.[name]) continue
    const word = name === 'assigned' ? 'starting' : name.replace('_', ' ')
    parts.push(`${c[name]} ${word}` + (name === 'running' && c.not_healthy ? ` (${c.not_healthy} not healthy)` : ''))
  }
  return parts.join(', ') || '-'
}

// waits tells whether instances of a job wait for something that can be explained.
export const waits = (job) =>
  !job.finished_at && job.counts.waiting + job.counts.backing_off + job.counts.rescheduling + job.counts.unknown > 0

// tone is how a state looks: each has a shape of its own, too.
export function tone(word) {
  if (/^(running|member|succeeded|complete|healthy|ready|ok)/i.test(word)) return 'good'
  if (/^(failed|left|lost|silent|refused|unhealthy|dead|differs|removed|canceled|will not)/i.test(word)) return 'bad'
  if (
    /^(waiting|pending|backing|rescheduling|unknown|draining|joining|assigned|starting|stopping|not|away|paused)/i.test(
      word,
    )
  )
    return 'busy'
  return 'calm'
}
const shapes = {good: '●', bad: '✕', busy: '◐', calm: '○'}

// shapeOf is how a state looks beside its colour.
export const shapeOf = (looks) => shapes[looks]

export const pool = (job) => (job.includes('/') ? job.slice(0, job.lastIndexOf('/')) : 'default')
