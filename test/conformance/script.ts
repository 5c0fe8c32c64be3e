/**
 * Scripts as they lie in scripts/<section>/<name>.txt: a header, a blank line, steps; one per line. The grammar stands in
 * docs/conformance.md. Whatever is wrong with one is said with file and line.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { type LoginMethod, loginMethods } from './login.ts'
import { type Part, parsePattern } from './pattern.ts'
import { counters, expectedWords, sentWords } from './words.ts'

export type Way = 'tcp' | 'ws-xdr' | 'ws-json'

/** What a step expects to come. `text`: as it was written. */
export type Expectation = { readonly text: string } & ({ readonly parts: readonly Part[] } | { readonly json: unknown })

type Action =
  | { readonly is: 'connect'; readonly overTls: boolean; readonly certificate: boolean }
  | {
      readonly is: 'wrap'
      readonly layer: 'tls' | 'deflate'
      readonly version: string | undefined
      readonly certificate: boolean
      /** The handshake has to fail. */
      readonly inVain: boolean
    }
  | { readonly is: 'login'; readonly as: 'user' | 'other'; readonly by: LoginMethod }
  /** `secret`: the name of what is proven; `boundTo`: the connection that the proof is bound to. */
  | { readonly is: 'refused'; readonly secret: string; readonly boundTo: string | undefined }
  | { readonly is: 'answer'; readonly channel: string }
  | { readonly is: 'offers'; readonly word: string; readonly isOffered: boolean }
  | { readonly is: 'send-below'; readonly parts: readonly Part[] }
  | { readonly is: 'send'; readonly parts: readonly Part[] }
  | { readonly is: 'send-text'; readonly content: string }
  /** `before`: any number of these may come before. */
  | { readonly is: 'expect'; readonly any: readonly Expectation[]; readonly before?: Expectation }
  | { readonly is: 'closed'; readonly notice: number | undefined; readonly code: number | undefined }
  | {
      readonly is: 'await'
      readonly field: string
      readonly count: bigint
      readonly orMore: boolean
      readonly channel: string | undefined
    }
  | { readonly is: 'silence' | 'cut' | 'end' | 'listen' | 'called' }

export type Step = Action & { readonly peer: string; readonly line: number; readonly text: string }

export interface Script {
  /** `<section>/<name>`. */
  readonly name: string
  readonly title: string
  /** Clauses of monitoring.md: `6.4`, `8.2`. */
  readonly clauses: readonly string[]
  readonly needs: readonly string[]
  readonly ways: readonly Way[]
  readonly steps: readonly Step[]
}

export class ScriptError extends Error {
  constructor(file: string, line: number, problem: string) {
    super(`${file}:${line}: ${problem}`)
    this.name = 'ScriptError'
  }
}

const WAYS: Readonly<Record<string, readonly Way[]>> = {
  xdr: ['tcp', 'ws-xdr'],
  json: ['ws-json'],
  tcp: ['tcp'],
  ws: ['ws-xdr', 'ws-json'],
}
const KEYS = ['title', 'clause', 'needs', 'only']

/** All scripts of a directory, by name. Throws ScriptError. */
export function readScripts(directory: URL): Script[] {
  const scripts: Script[] = []
  for (const section of readdirSync(directory).sort()) {
    for (const file of readdirSync(new URL(`${section}/`, directory)).sort()) {
      const name = `${section}/${file}`
      scripts.push(parseScript(name, readFileSync(new URL(name, directory), 'utf8')))
    }
  }
  return scripts
}

export function parseScript(file: string, text: string): Script {
  const lines = text.split('\n')
  const blank = lines.findIndex((line) => line.trim() === '')
  const bodyAt = blank < 0 ? lines.length : blank
  const header = parseHeader(file, lines.slice(0, bodyAt))
  const steps = parseSteps(file, lines, bodyAt)
  if (steps.length === 0) throw new ScriptError(file, lines.length, 'no steps after the header and its blank line')
  return { ...header, name: file.replace(/\.txt$/, ''), steps }
}

function parseHeader(file: string, lines: readonly string[]): Omit<Script, 'name' | 'steps'> {
  const header = new Map<string, string>()
  for (const [index, line] of lines.entries()) {
    if (line.startsWith('#')) continue
    const [, key, value] = /^([a-z]+):\s*(.+?)\s*$/.exec(line) ?? []
    if (key === undefined || value === undefined || !KEYS.includes(key)) {
      throw new ScriptError(file, index + 1, `the header has lines "key: value"; keys are ${KEYS.join(', ')}`)
    }
    if (header.has(key)) throw new ScriptError(file, index + 1, `"${key}" stands twice`)
    header.set(key, value)
  }
  const list = (key: string): string[] => header.get(key)?.split(/\s*,\s*/) ?? []
  const title = header.get('title')
  if (title === undefined) throw new ScriptError(file, 1, 'no title')
  if (!header.has('clause')) throw new ScriptError(file, 1, 'no clause')
  const wrong = list('clause').find((clause) => !/^\d+(\.\d+)?$/.test(clause))
  if (wrong !== undefined) throw new ScriptError(file, 1, `"${wrong}" is no clause; they look like 8 or 8.2`)
  const only = header.get('only')
  const ways = only === undefined ? (['tcp', 'ws-xdr', 'ws-json'] as const) : WAYS[only]
  if (ways === undefined) throw new ScriptError(file, 1, `"only" is one of ${Object.keys(WAYS).join(', ')}`)
  return { title, clauses: list('clause'), needs: list('needs'), ways }
}

function parseSteps(file: string, lines: readonly string[], from: number): Step[] {
  const steps: Step[] = []
  let mayCome: (Expectation & { readonly peer: string }) | undefined
  let group: { expectations: Expectation[]; step: Step } | undefined
  for (let index = from; index < lines.length; index++) {
    const text = (lines[index] as string).trim()
    if (text === '' || text.startsWith('#')) continue
    const fail = (problem: string): never => {
      throw new ScriptError(file, index + 1, problem)
    }
    try {
      if (text === 'any order') {
        if (group !== undefined) fail('a group inside a group')
        const expectations: Expectation[] = []
        group = { expectations, step: { is: 'expect', any: expectations, peer: '', line: index + 1, text } }
      } else if (text === 'end of group') {
        if (group === undefined || group.expectations.length < 2) return fail('a group is two or more expectations')
        steps.push(group.step)
        group = undefined
      } else {
        const before = BEFORE.exec(text)
        if (before !== null) {
          const [, peer = '', tokens = ''] = before
          mayCome = { peer, text: tokens, parts: parsePattern(tokens, expectedWords) }
          continue
        }
        const parsed = parseStep(text).map((action) => ({ ...action, line: index + 1, text }))
        if (mayCome !== undefined) {
          const { peer, ...expectation } = mayCome
          const [step] = parsed
          if (step?.is !== 'expect' || step.peer !== peer || group !== undefined)
            return fail(`after ${peer}<* stands what ends it: ${peer}< ...`)
          steps.push({ ...step, before: expectation }, ...parsed.slice(1))
          mayCome = undefined
        } else if (group === undefined) steps.push(...parsed)
        else {
          const [step] = parsed
          if (step?.is !== 'expect') return fail('a group holds only what is expected')
          if (group.step.peer !== '' && group.step.peer !== step.peer) fail('a group is of one connection')
          group.step = { ...group.step, peer: step.peer }
          group.expectations.push(...step.any)
        }
      }
    } catch (error) {
      if (error instanceof ScriptError) throw error
      fail((error as Error).message)
    }
  }
  if (group !== undefined) throw new ScriptError(file, group.step.line, 'a group without "end of group"')
  if (mayCome !== undefined) throw new ScriptError(file, lines.length, `nothing after ${mayCome.peer}<*`)
  return steps
}

type Parsed = Action & { readonly peer: string }

const FRAME = /^([A-Z])([<>])(?:(\d+)x)?\s+(.+)$/
const BEFORE = /^([A-Z])<\*\s+(.+)$/
const TEXT = /^([A-Z])([<>])(?:(\d+)x)?json\s+(.+)$/
const CLOSED = /^closed ([A-Z])(?: NOTICE (\d))?(?: code (\d{4}))?$/
const BELOW = /^([A-Z])>>\s+(.+)$/
const CONNECT = /^connect ([A-Z])( over tls)?( with certificate)?$/
const WRAP = /^wrap ([A-Z]) (tls|deflate)(?: (1\.[0-3]))?( with certificate)?( in vain)?$/
const LOGIN = /^login ([A-Z])( other)?(?: by ([a-z0-9-]+))?$/
const REFUSED = /^refused ([A-Z]) with \{([a-z-]+)\}(?: bound to ([A-Z]))?$/
const ANSWER = /^answer ([A-Z]) on \{([A-Za-z][\w-]*)\}$/
const OFFERS = /^offers ([A-Z])( no)? ((?:auth|layer|extension) \S+|producer|below)$/
const AWAIT = /^await ([A-Z]) ([a-z_]+) (\d+)( or more)?(?: on ([A-Za-z][\w-]*))?$/
const PLAIN = /^(silence|cut|end|listen|called) ([A-Z])$/

function parseStep(text: string): Parsed[] {
  const frame = FRAME.exec(text)
  if (frame !== null) {
    const [, peer, sign, times = '1', tokens] = frame as unknown as string[] & { 3?: string }
    if (sign === '>') return repeated(times, { is: 'send', peer: peer!, parts: parsePattern(tokens!, sentWords) })
    const expectation = { text: tokens!, parts: parsePattern(tokens!, expectedWords) }
    return repeated(times, { is: 'expect', peer: peer!, any: [expectation] })
  }
  const json = TEXT.exec(text)
  if (json !== null) {
    const [, peer, sign, times, content] = json as unknown as string[] & { 3?: string }
    if (sign === '>') {
      const many = times === undefined ? content! : `[${new Array(Number(times)).fill(content).join(',')}]`
      return [{ is: 'send-text', peer: peer!, content: many }]
    }
    const expectation = { text: content!, json: JSON.parse(content!) as unknown }
    return repeated(times ?? '1', { is: 'expect', peer: peer!, any: [expectation] })
  }
  const closed = CLOSED.exec(text)
  if (closed !== null) {
    const [, peer, notice, code] = closed
    const number = (digits: string | undefined) => (digits === undefined ? undefined : Number(digits))
    return [{ is: 'closed', peer: peer!, notice: number(notice), code: number(code) }]
  }
  const connection = parseConnection(text)
  if (connection !== undefined) return [connection]
  const ledger = AWAIT.exec(text)
  if (ledger !== null) {
    const [, peer, field, count, orMore, channel] = ledger
    if (!counters.includes(field!)) throw new Error(`a ledger has no ${field}; it has ${counters.join(', ')}`)
    if (orMore !== undefined && count === '0') throw new Error('0 or more is no condition')
    return [{ is: 'await', peer: peer!, field: field!, count: BigInt(count!), orMore: orMore !== undefined, channel }]
  }
  const [, word, peer] = PLAIN.exec(text) ?? []
  if (peer === undefined) throw new Error('no such step; docs/conformance.md lists them')
  return [{ is: word as 'silence' | 'cut' | 'end' | 'listen' | 'called', peer }]
}

/** The steps that make connections and say who one is. */
function parseConnection(text: string): Parsed | undefined {
  const [, below, bytes] = BELOW.exec(text) ?? []
  if (below !== undefined) return { is: 'send-below', peer: below, parts: parsePattern(bytes!, sentWords) }
  const [, connecting, tls, shown] = CONNECT.exec(text) ?? []
  if (connecting !== undefined)
    return { is: 'connect', peer: connecting, overTls: tls !== undefined, certificate: shown !== undefined }
  const [, wrapped, layer, version, proven, vain] = WRAP.exec(text) ?? []
  if (wrapped !== undefined) {
    const how = { version, certificate: proven !== undefined, inVain: vain !== undefined }
    return { is: 'wrap', peer: wrapped, layer: layer as 'tls' | 'deflate', ...how }
  }
  const [, peer, other, by = 'scram-sha-256'] = LOGIN.exec(text) ?? []
  if (peer !== undefined) {
    const method = loginMethods.find((one) => one === by)
    if (method === undefined) throw new Error(`${by} is no method of login; there are ${loginMethods.join(', ')}`)
    return { is: 'login', peer, as: other === undefined ? 'user' : 'other', by: method }
  }
  const [, refused, secret, boundTo] = REFUSED.exec(text) ?? []
  if (refused !== undefined) return { is: 'refused', peer: refused, secret: secret!, boundTo }
  const [, answering, channel] = ANSWER.exec(text) ?? []
  if (answering !== undefined) return { is: 'answer', peer: answering, channel: channel! }
  const [, offering, no, word] = OFFERS.exec(text) ?? []
  if (offering !== undefined) return { is: 'offers', peer: offering, word: word!, isOffered: no === undefined }
  return undefined
}

function repeated(times: string, step: Parsed): Parsed[] {
  return new Array<Parsed>(Number(times)).fill(step)
}
