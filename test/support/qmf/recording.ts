/**
 * What the recorded broker answers and tells, found by what it is asked: the recorded bytes, with the sequence of the
 * question. Requests are read by hand, as far as they have to be told apart.
 */
import { capturedTransfers } from './capture.ts'
import { str8, str16, u32 } from './wire.ts'

export interface Request {
  /** `B`, `P`, `Q <package>`, `S <class>`, `G <class>`, `M <method>` */
  readonly text: string
  readonly sequence: number
  /** From the sequence on. */
  readonly rest: Buffer
}
export interface Broadcast {
  readonly ms: number
  readonly routingKey: string
  readonly body: Buffer
}

interface Answer {
  readonly ms: number
  readonly text: string
  readonly rest: Buffer
  readonly sequence: number
  readonly bodies: readonly Buffer[]
}

const all = capturedTransfers()
const OPS = 'BPQSGMA'

/** The requests of a body, one after the other. */
export function requestsIn(body: Buffer): Request[] {
  const requests: Request[] = []
  for (let at = 0; at < body.length; ) {
    if (body.toString('latin1', at, at + 3) !== 'AM2') throw new Error('a request does not begin with AM2')
    const op = body.toString('latin1', at + 3, at + 4)
    let end = at + 8
    const text8 = (): string => {
      const start = end + 1
      end = start + body[end]!
      return body.toString('utf8', start, end)
    }
    let text = op
    if (op === 'Q') text += ` ${text8()}`
    else if (op === 'S') {
      text8()
      text += ` ${text8()}`
      end += 16
    } else if (op === 'G') {
      const start = end + 4
      end = start + body.readUInt32BE(end)
      text += ` ${entryOf(body.subarray(start, end), '_class')}`
    } else if (op === 'M') {
      end += 16
      text8()
      text8()
      end += 16
      text += ` ${text8()}`
      // How long arguments are is said by the schema only.
      end = nextRequest(body, end)
    } else if (op === 'A') end = nextRequest(body, end)
    requests.push({ text, sequence: body.readUInt32BE(at + 4), rest: body.subarray(at + 8, end) })
    at = end
  }
  return requests
}

function nextRequest(body: Buffer, from: number): number {
  for (let at = body.indexOf('AM2', from); at >= 0; at = body.indexOf('AM2', at + 1)) {
    if (OPS.includes(body.toString('latin1', at + 3, at + 4))) return at
  }
  return body.length
}

/** A text of a map that holds nothing but str16. */
function entryOf(map: Buffer, wanted: string): string {
  for (let at = 4; at < map.length; ) {
    const key = map.toString('utf8', at + 1, at + 1 + map[at]!)
    at += 1 + map[at]! + 1
    const size = map.readUInt16BE(at)
    if (key === wanted) return map.toString('utf8', at + 2, at + 2 + size)
    at += 2 + size
  }
  return ''
}

const answers: Answer[] = all
  .filter(({ from }) => from === 'client')
  .flatMap(({ ms, body }) => {
    return requestsIn(Buffer.from(body)).map(({ text, rest, sequence }) => {
      const bodies = all
        .filter(({ from, destination }) => from === 'broker' && destination === 'rdest')
        .map((answer) => Buffer.from(answer.body))
        .filter((answer) => answer.readUInt32BE(4) === sequence)
      return { ms, text, rest, sequence, bodies }
    })
  })

/** A message with that sequence. */
export function message(op: string, sequence: number, ...parts: readonly Uint8Array[]): Buffer {
  const header = Buffer.from(`AM2${op}0000`, 'latin1')
  header.writeUInt32BE(sequence, 4)
  return Buffer.concat([header, ...parts])
}

/** As it was answered last until `ms` of the recording, or first; OK with nothing where it never was asked. */
export function answersTo(request: Request, ms: number): Buffer[] {
  const same = answers.filter(({ text, rest }) => {
    return text === request.text && (text[0] !== 'M' || rest.equals(request.rest))
  })
  const recorded = same.findLast((answer) => answer.ms <= ms) ?? same[0]
  if (recorded === undefined) {
    if (request.text[0] === 'M') return [message('m', request.sequence, u32(4), str16('not recorded'))]
    return [message('z', request.sequence, u32(0), str8('OK'))]
  }
  return recorded.bodies.map((body) => renumbered(body, recorded.sequence, request.sequence))
}

function renumbered(body: Buffer, from: number, to: number): Buffer {
  const copy = Buffer.from(body)
  for (let at = copy.indexOf('AM2'); at >= 0; at = copy.indexOf('AM2', at + 1)) {
    if (copy.length >= at + 8 && copy.readUInt32BE(at + 4) === from) copy.writeUInt32BE(to, at + 4)
  }
  return copy
}

/** What was reported unasked, in order. */
export const broadcasts: readonly Broadcast[] = all
  .filter(({ from, destination }) => from === 'broker' && destination === 'tdest')
  .map(({ ms, routingKey, body }) => ({ ms, routingKey, body: Buffer.from(body) }))

/** The objects of a body, sampled so much later; eight bytes after package, class and hash. */
export function sampledLater(body: Buffer, ms: number): Buffer {
  const copy = Buffer.from(body)
  for (let at = copy.indexOf('AM2'); at >= 0; at = copy.indexOf('AM2', at + 1)) {
    if (!'gci'.includes(copy.toString('latin1', at + 3, at + 4))) continue
    const name = at + 8 + 1 + copy[at + 8]!
    const time = name + 1 + copy[name]! + 16
    copy.writeBigUInt64BE(copy.readBigUInt64BE(time) + BigInt(ms) * 1_000_000n, time)
  }
  return copy
}

/** Of a topic exchange: a star is one word, # any number of them. */
export function matches(binding: string, routingKey: string): boolean {
  const words = binding.split('.')
  const given = routingKey.split('.')
  const from = (word: number, at: number): boolean => {
    if (word === words.length) return at === given.length
    if (words[word] === '#') return from(word + 1, at) || (at < given.length && from(word, at + 1))
    return at < given.length && (words[word] === '*' || words[word] === given[at]) && from(word + 1, at + 1)
  }
  return from(0, 0)
}
