/** What a producer has of what scripts need, found out by asking it: its capabilities, metrics by COLLECT, calls by DEF_CHANNEL. */
import { type Part, parsePattern } from './pattern.ts'
import { Failure, Stage, type Target } from './stage.ts'
import { expectedWords, sentWords } from './words.ts'
import { string } from './xdr.ts'

/** The first message of a new connection. Throws Error if it is not PRODUCER_CAPS. */
export async function checkIsProducer(open: Target['open']): Promise<void> {
  const speaker = await open(false)
  try {
    const message = await speaker.next()
    const isMessage = 'frame' in message || 'json' in message
    if (!isMessage || !speaker.mayBePassedOver(message) || speaker.noticeOf(message) !== undefined) {
      throw new Error('the first thing that came is not PRODUCER_CAPS: is this a producer?')
    }
  } finally {
    speaker.cut()
  }
}

const CAPS = 'LEN PRODUCER_CAPS 00000001 {_:u32} {_:arglist}'
const NAMED: Readonly<Record<string, string>> = {
  other: 'needs a second user (--other)',
  token: 'needs a token (--token-file), and the method on offer',
  certificate: 'needs a client certificate (--cert, --key), and the method on offer',
  tls: 'needs TLS: no layer tls is advertised',
}

/** Tells why a script does not apply; asks for each thing once. */
export class Offer {
  readonly #target: Target
  readonly #answers = new Map<string, Promise<boolean>>()
  readonly #words = new Map<string, Promise<ReadonlySet<string>>>()
  /** The first destination that could not be defined, with the refusal. */
  #notDialled = ''
  /** Why there is no TLS although the layer is advertised; nothing to blame the producer for without its authorities. */
  #notTrusted = ''

  constructor(target: Target) {
    this.#target = target
  }

  /** The first need that is not met, as a sentence; undefined: all are. */
  async missing(needs: readonly string[]): Promise<string | undefined> {
    for (const need of needs) {
      if (await this.#has(need)) continue
      if (need === 'dial') return `needs to be called, but the producer may not dial ${this.#notDialled} (--dial)`
      if (this.#notTrusted !== '' && /tls|certificate/.test(need)) return `${this.#notTrusted} (--ca)`
      if (need.startsWith('layer ')) return `${need} is not advertised`
      return NAMED[need] ?? `needs ${need}`
    }
    return undefined
  }

  #has(need: string): Promise<boolean> {
    const known = this.#answers.get(need) ?? this.#find(need)
    this.#answers.set(need, known)
    return known
  }

  async #find(need: string): Promise<boolean> {
    const { other, polled, isSecure, hasCertificate, token } = this.#target
    if (need === 'other') return other !== undefined
    if (need.startsWith('no ')) return !(await this.#has(need.slice(3)))
    if (need === 'tls') return isSecure || this.#has('layer tls')
    if (need === 'token') {
      return token !== undefined && ((await this.#has('auth token')) || this.#has('auth token over tls'))
    }
    if (need === 'certificate') return hasCertificate && this.#has('auth certificate over tls')
    if (need === 'dial') return this.#dials()
    if (need.endsWith(' over tls')) {
      return (await this.#has('tls')) && (await this.#offered('over tls')).has(need.replace(' over tls', ''))
    }
    if (need.startsWith('auth ')) return (await this.#offered('before login')).has(need)
    if (need === 'layer tls') return (await this.#offered('before login')).has(need) && this.#isTrusted()
    if (need === 'producer' || need === 'below') {
      return [...(await this.#offered('after login'))].some((entry) => entry.startsWith(`${need} `))
    }
    if (/^(layer|extension) /.test(need)) {
      return (await this.#offered('before login')).has(need) || (await this.#offered('after login')).has(need)
    }
    return this.#isOk('COLLECT 00000001 {asked} 00000000', '{_:id}', need === 'polled' ? polled : need)
  }

  /** The words of PRODUCER_CAPS at some time. */
  #offered(when: 'before login' | 'after login' | 'over tls'): Promise<ReadonlySet<string>> {
    const known = this.#words.get(when) ?? this.#on((stage) => this.#read(stage, when))
    this.#words.set(when, known)
    return known
  }

  async #read(stage: Stage, when: 'before login' | 'after login' | 'over tls'): Promise<ReadonlySet<string>> {
    const line = { line: 0, text: when, peer: 'A' }
    if (when === 'after login') {
      await logIn(stage)
    } else {
      const overTls = when === 'over tls'
      const certificate = overTls && this.#target.hasCertificate
      await stage.play({ is: 'connect', overTls, certificate, ...line })
      await stage.expect('A', [expected(CAPS)])
    }
    return stage.offered('A')
  }

  async #isTrusted(): Promise<boolean> {
    if (this.#target.hasAuthorities) return true
    try {
      await this.#offered('over tls')
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      this.#notTrusted = error.message
    }
    return this.#notTrusted === ''
  }

  async #dials(): Promise<boolean> {
    const listener = await this.#target.listen()
    listener.close()
    this.#notDialled = listener.url
    const command = 'DEF_CHANNEL 00000001 {asked} 00000001 "secret" OPAQUE {channel-secret}'
    return this.#isOk(command, '{D:channel}', listener.url)
  }

  /** Whether a command with a text is answered OK. */
  #isOk(command: string, result: string, text: string): Promise<boolean> {
    return this.#on(async (stage) => {
      stage.variables.set('asked', { kind: 'str', bytes: string(text) })
      await logIn(stage)
      stage.send('A', parsePattern(`LEN ${command}`, sentWords))
      try {
        await stage.expect('A', [expected(`LEN RESPONSE 00000001 OK ${result}`)])
        return true
      } catch (error) {
        if (error instanceof Failure) return false
        throw error
      }
    })
  }

  async #on<T>(ask: (stage: Stage) => Promise<T>): Promise<T> {
    const stage = new Stage(this.#target)
    try {
      return await ask(stage)
    } finally {
      await stage.clear()
    }
  }
}

function logIn(stage: Stage): Promise<void> {
  return stage.play({ is: 'login', peer: 'A', as: 'user', by: 'scram-sha-256', line: 0, text: 'login A' })
}

function expected(text: string): { readonly text: string; readonly parts: readonly Part[] } {
  return { text, parts: parsePattern(text, expectedWords) }
}
