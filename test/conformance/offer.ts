/** What a producer has of what scripts need, found out by asking it: its capabilities, and metrics by COLLECT. */
import { parsePattern } from './pattern.ts'
import type { Message } from './speaker.ts'
import { Failure, Stage, type Target } from './stage.ts'
import { expectedWords, sentWords, types } from './words.ts'
import { inside, opaqueEnd, string, valueEnd } from './xdr.ts'

/** `auth password`, `layer deflate`, `extension gap`: the words of PRODUCER_CAPS [MON 3.2]. */
export function capabilitiesOf(message: Message): Set<string> {
  return new Set('frame' in message ? ofFrame(message.frame) : ofJson(message.json))
}

function ofFrame(frame: Buffer): string[] {
  const found: string[] = []
  let at = 20
  for (let left = frame.readUInt32BE(16); left > 0; left--) {
    const name = inside(frame, at).toString('utf8')
    const typeAt = opaqueEnd(frame, at)
    const type = frame.readUInt32BE(typeAt)
    const end = valueEnd(frame, typeAt + 4, type)
    if (type === types.STRING) found.push(`${name} ${inside(frame, typeAt + 4).toString('utf8')}`)
    at = end
  }
  return found
}

function ofJson(json: unknown): string[] {
  const lists = json as Record<string, unknown>
  return ['auth', 'layer', 'extension'].flatMap((name) => {
    const words = lists[name]
    return Array.isArray(words) ? words.map((word) => `${name} ${String(word)}`) : []
  })
}

/** The first message of a new connection. Throws Error if it is not PRODUCER_CAPS. */
export async function readCapabilities(open: Target['open']): Promise<Set<string>> {
  const speaker = await open()
  try {
    const message = await speaker.next()
    const isMessage = 'frame' in message || 'json' in message
    if (!isMessage || !speaker.mayBePassedOver(message) || speaker.noticeOf(message) !== undefined) {
      throw new Error('the first thing that came is not PRODUCER_CAPS: is this a producer?')
    }
    return capabilitiesOf(message)
  } finally {
    speaker.cut()
  }
}

/** Tells why a script does not apply; asks for each metric once. */
export class Offer {
  readonly #target: Target
  readonly #capabilities: ReadonlySet<string>
  readonly #metrics = new Map<string, Promise<boolean>>()

  constructor(target: Target, capabilities: ReadonlySet<string>) {
    this.#target = target
    this.#capabilities = capabilities
  }

  /** The first need that is not met, as a sentence; undefined: all are. */
  async missing(needs: readonly string[]): Promise<string | undefined> {
    for (const need of needs) {
      const isMet = await this.#has(need)
      if (!isMet) return need === 'other' ? 'needs a second user (--other)' : `needs ${need}`
    }
    return undefined
  }

  async #has(need: string): Promise<boolean> {
    if (need === 'other') return this.#target.other !== undefined
    if (need.startsWith('no ')) return !(await this.#has(need.slice(3)))
    if (/^(auth|layer|extension) /.test(need)) return this.#capabilities.has(need)
    const metric = need === 'polled' ? this.#target.polled : need
    const known = this.#metrics.get(metric) ?? this.#collects(metric)
    this.#metrics.set(metric, known)
    return known
  }

  async #collects(metric: string): Promise<boolean> {
    const stage = new Stage(this.#target)
    stage.variables.set('asked', { kind: 'str', bytes: string(metric) })
    await stage.play({ is: 'login', peer: 'A', as: 'user', by: 'scram-sha-256', line: 0, text: 'login A' })
    stage.send('A', parsePattern('LEN COLLECT 00000001 {asked} 00000000', sentWords))
    try {
      const text = 'LEN RESPONSE 00000001 OK {_:id}'
      await stage.expect('A', [{ text, parts: parsePattern(text, expectedWords) }])
      return true
    } catch (error) {
      if (error instanceof Failure) return false
      throw error
    } finally {
      await stage.clear()
    }
  }
}
