// How the page asks: procedures with one answer, and those with a stream of answers, both by the server of the page.

const procedures = '/starling.v1.Starling/'
const kept = 'starling-page'

// Failure is what a peer, or the way to it, refused.
export class Failure extends Error {
  constructor(code, message) {
    super(message)
    this.code = code
  }
}

// The key of the link by which the page was opened, if there is one. It stays in no history.
const key = /^#key=(\w+)$/.exec(location.hash)?.[1]
if (key) history.replaceState(null, '', '#/')

// signIn uses it.
export async function signIn() {
  if (!key) return
  const answer = await fetch('/session', {method: 'POST', body: JSON.stringify({key})})
  if (!answer.ok) throw await failureOf(answer)
  localStorage.setItem(kept, (await answer.json()).page)
}

function headers(kind, at) {
  const all = {
    'Content-Type': kind,
    'Connect-Protocol-Version': '1',
    'Starling-Page': localStorage.getItem(kept) || '',
  }
  if (at != null) all['Starling-At'] = String(at)
  return all
}

async function failureOf(answer) {
  let told = {}
  try {
    told = await answer.json()
  } catch {
    // no JSON: it is not a peer that answers
  }
  return new Failure(told.code || 'unavailable', told.message || `the page's server answered ${answer.status}`)
}

async function post(path, body, kind, {at, signal}) {
  let answer
  try {
    answer = await fetch(path, {method: 'POST', body, headers: headers(kind, at), signal})
  } catch (cause) {
    if (signal?.aborted) throw cause
    throw new Failure('unavailable', 'the page has lost its server: is starling ui still running?')
  }
  if (!answer.ok) throw await failureOf(answer)
  return answer
}

// call asks for one answer.
export async function call(procedure, request = {}, options = {}) {
  return (await post(procedures + procedure, JSON.stringify(request), 'application/json', options)).json()
}

// callAll asks for one answer, and if list names one in it for all pages of that.
export async function callAll(procedure, request, list, options = {}) {
  const all = await call(procedure, request, options)
  for (let last = all; list && last.next_page_token; ) {
    last = await call(procedure, {...request, page_token: last.next_page_token}, options)
    all[list].push(...last[list])
  }
  return all
}

// local asks the page's own server: /plan what would come of a file, /scale of a number of instances, /whoami who looks
// at the page.
export async function local(what, request, options = {}) {
  return (await post('/' + what, JSON.stringify(request), 'application/json', options)).json()
}

// shellSocket opens a way to a program. A script cannot send headers with it, so the page's secret is one of its
// protocols.
export function shellSocket() {
  const secret = 'starling-page.' + (localStorage.getItem(kept) || '')
  const socket = new WebSocket(`ws://${location.host}/shell`, ['starling-shell', secret])
  socket.binaryType = 'arraybuffer'
  return socket
}

const decoder = new TextDecoder()

// stream asks for answers and calls visit with each; it ends when they do. Each is a byte of flags, its length, and
// JSON.
export async function stream(procedure, request, visit, options = {}) {
  const text = new TextEncoder().encode(JSON.stringify(request))
  const body = new Uint8Array(5 + text.length)
  new DataView(body.buffer).setUint32(1, text.length)
  body.set(text, 5)
  const answer = await post(procedures + procedure, body, 'application/connect+json', options)
  const reader = answer.body.getReader()
  let held = new Uint8Array(0)
  for (;;) {
    const {done, value} = await reader.read()
    if (done) throw new Failure('unavailable', 'the stream broke off')
    if (held.length === 0) {
      held = value
    } else {
      const joined = new Uint8Array(held.length + value.length)
      joined.set(held)
      joined.set(value, held.length)
      held = joined
    }
    let from = 0
    while (held.length - from >= 5) {
      const length = new DataView(held.buffer, held.byteOffset + from).getUint32(1)
      if (held.length - from < 5 + length) break
      const message = JSON.parse(decoder.decode(held.subarray(from + 5, from + 5 + length)))
      if (held[from] & 2) {
        if (message.error) throw new Failure(message.error.code, message.error.message)
        return
      }
      visit(message)
      from += 5 + length
    }
    held = held.subarray(from)
  }
}

// requestID returns an id for a write: sent again with it, it counts once.
export function requestID() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, '0')).join('')
}

// silentMax is how long a peer may tell nothing, in ms: a stream has a bookmark every ten seconds.
const silentMax = 12_000

// whileHeard does the work with a signal that is aborted also when it has heard nothing for long; it calls heard.
export async function whileHeard(signal, work) {
  const silent = new AbortController()
  let timer = 0
  const heard = () => {
    clearTimeout(timer)
    timer = setTimeout(() => silent.abort(), silentMax)
  }
  heard()
  try {
    return await work(AbortSignal.any([signal, silent.signal]), heard)
  } catch (failure) {
    if (silent.signal.aborted && !signal.aborted)
      throw new Failure('stale', `the peer has told nothing for ${silentMax / 1000} seconds.`)
    throw failure
  } finally {
    clearTimeout(timer)
  }
}
