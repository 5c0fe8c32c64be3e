/**
 * A script being played: its connections, what was captured, and each step by itself. What is not as expected is a Failure
 * that names the step.
 */

import { randomBytes, randomUUID } from 'node:crypto'
import type { ConnectionOptions } from 'node:tls'
import { textWith } from './json-speaker.ts'
import { awaitLedger } from './ledger.ts'
import type { Listener } from './listener.ts'
import { answer, beRefused, logIn } from './login.ts'
import { type Bindings, Mismatch } from './match.ts'
import { concrete, type Part, parsePattern, type Variable } from './pattern.ts'
import type { SaltedPasswords } from './scram.ts'
import type { Expectation, Step } from './script.ts'
import { type Arrival, type Message, offeredIn, type Speaker } from './speaker.ts'
import { expectedWords, sentWords } from './words.ts'
import { string, uint64 } from './xdr.ts'

export interface Credentials {
  readonly user: string
  readonly secret: string
}

/** What is tested, and as whom. */
export interface Target {
  /** `certificate`: shows the client certificate, where the connection begins with TLS. */
  open(certificate: boolean): Promise<Speaker>
  /** True if its connections begin with TLS. */
  readonly isSecure: boolean
  /** Whether there are authorities of its own to verify the producer with. */
  readonly hasAuthorities: boolean
  /** For WRAP `tls`. */
  tls(certificate: boolean): ConnectionOptions
  /** Waits to be called. */
  listen(): Promise<Listener>
  readonly user: Credentials
  readonly other: Credentials | undefined
  /** What was salted in earlier scripts of the run. */
  readonly passwords: SaltedPasswords
  /** A token of `user`. */
  readonly token: string | undefined
  /** Whether there is a client certificate of `user`. */
  readonly hasCertificate: boolean
  /** A polled metric, for scripts that need values. */
  readonly polled: string
}

/** What was expected and what came instead. */
export class Failure extends Error {
  readonly expected: readonly Expectation[]
  readonly came: Arrival | undefined
  /** Where in the frame that came the difference is, if it is one frame against another. */
  readonly at: number | undefined
  /** The step, once it is known. */
  step: Step | undefined

  constructor(message: string, expected: readonly Expectation[] = [], came?: Arrival, at?: number) {
    super(message)
    this.expected = expected
    this.came = came
    this.at = at
  }
}

interface Wrap {
  readonly peer: string
  readonly layer: 'tls' | 'deflate'
  readonly certificate: boolean
  /** The only version of TLS, as `1.2`. */
  readonly version?: string | undefined
}

/** The versions of TLS below 1.2 are off in OpenSSL unless its level of security is lowered. */
const OLD = { ciphers: 'DEFAULT:@SECLEVEL=0' }

export class Stage {
  readonly target: Target
  readonly variables = new Map<string, Variable>()
  readonly #speakers = new Map<string, Speaker>()
  /** What the last PRODUCER_CAPS of a connection offered. */
  readonly #offered = new Map<string, ReadonlySet<string>>()
  readonly #listeners = new Map<string, Listener>()

  constructor(target: Target) {
    this.target = target
    const { user, other, polled } = target
    const texts = {
      ...{ user: user.user, secret: user.secret, other: other?.user, 'other-secret': other?.secret, polled },
      ...{ token: target.token, key: randomUUID(), 'channel-secret': randomBytes(24).toString('base64') },
    }
    for (const [name, text] of Object.entries(texts)) if (text !== undefined) this.keepText(name, text)
    this.variables.set('zero', { kind: 'u64', bytes: uint64(0n) })
    this.keepText('nobody', `nobody-${process.hrtime.bigint()}`)
  }

  keepText(name: string, text: string): void {
    this.variables.set(name, { kind: 'str', bytes: string(text) })
  }

  /** Throws Failure, or Error: the script itself cannot be played. */
  async play(step: Step): Promise<void> {
    try {
      await this.#play(step)
    } catch (error) {
      if (!(error instanceof Failure)) throw new Error(`${(error as Error).message} (line ${step.line}: ${step.text})`)
      error.step = step
      throw error
    }
  }

  async #play(step: Step): Promise<void> {
    switch (step.is) {
      case 'connect':
        return this.#connect(step)
      case 'wrap':
        return step.inVain ? this.#wrapInVain(step) : this.wrap(step)
      case 'login':
        return logIn(this, step)
      case 'refused':
        return beRefused(this, step)
      case 'listen':
        return this.#listen(step.peer)
      case 'called':
        return this.called(step.peer)
      case 'answer':
        return answer(this, step)
      case 'offers':
        return this.#offers(step)
      case 'send-below':
        return this.speaker(step.peer).sendBelow(concrete(step.parts, this.variables))
      case 'await':
        return awaitLedger(this, step)
      case 'send':
        return this.send(step.peer, step.parts)
      case 'send-text':
        return this.speaker(step.peer).sendText(textWith(step.content, this.variables))
      case 'expect':
        return this.expect(step.peer, step.any, step.before)
      case 'closed':
        return this.#closed(step)
      case 'silence':
        return this.#silence(step.peer)
      case 'cut':
        return this.speaker(step.peer).cut()
      case 'end':
        return this.speaker(step.peer).end()
    }
  }

  async connect(peer: string, { certificate = false } = {}): Promise<void> {
    this.#speakers.get(peer)?.cut()
    this.#speakers.set(peer, await this.target.open(certificate))
  }

  async #connect({ peer, overTls, certificate }: Extract<Step, { is: 'connect' }>): Promise<void> {
    await this.connect(peer, { certificate })
    if (!overTls || this.target.isSecure) return
    await this.expect(peer, [expectation('LEN PRODUCER_CAPS 00000001 {_:u32} {_:arglist}')])
    await this.wrap({ peer, layer: 'tls', certificate })
  }

  async wrap(wrap: Wrap): Promise<void> {
    const { peer, layer } = wrap
    this.send(peer, parsePattern(`LEN WRAP fffffff1 "${layer}"`, sentWords))
    await this.expect(peer, [expectation('LEN RESPONSE fffffff1 OK fffffffe')])
    await this.#addLayer(wrap)
  }

  async #addLayer({ peer, layer, certificate, version }: Wrap): Promise<void> {
    const speaker = this.speaker(peer)
    if (layer === 'deflate') return speaker.addDeflate()
    const only = version === undefined ? {} : { minVersion: `TLSv${version}`, maxVersion: `TLSv${version}`, ...OLD }
    try {
      await speaker.addTls({ ...this.target.tls(certificate), ...only } as ConnectionOptions)
    } catch (error) {
      throw new Failure(`no TLS: ${(error as Error).message}`)
    }
  }

  async #wrapInVain(wrap: Wrap): Promise<void> {
    try {
      await this.wrap(wrap)
    } catch (error) {
      if (error instanceof Failure && error.expected.length === 0) return
      throw error
    }
    throw new Failure('the handshake succeeded')
  }

  async #listen(peer: string): Promise<void> {
    this.#listeners.get(peer)?.close()
    const listener = await this.target.listen()
    this.#listeners.set(peer, listener)
    this.keepText('url', listener.url)
  }

  async called(peer: string): Promise<void> {
    const listener = this.#listeners.get(peer)
    if (listener === undefined) throw new Error(`${peer} does not listen`)
    const speaker = await listener.call()
    if (speaker === undefined) throw new Failure('the producer does not connect')
    this.#speakers.get(peer)?.cut()
    this.#speakers.set(peer, speaker)
  }

  /** `word`: as `auth password`, or `producer` and `below`, of whatever content. */
  isOffered(peer: string, word: string): boolean {
    const offered = this.offered(peer)
    return word.includes(' ') ? offered.has(word) : [...offered].some((entry) => entry.startsWith(`${word} `))
  }

  offered(peer: string): ReadonlySet<string> {
    return this.#offered.get(peer) ?? new Set()
  }

  #offers({ peer, word, isOffered }: Extract<Step, { is: 'offers' }>): void {
    if (this.isOffered(peer, word) === isOffered) return
    const offered = [...this.offered(peer)].join(', ')
    throw new Failure(`the last PRODUCER_CAPS ${isOffered ? 'does not offer' : 'offers'} ${word}: ${offered}`)
  }

  speaker(peer: string): Speaker {
    const speaker = this.#speakers.get(peer)
    if (speaker === undefined) throw new Error(`${peer} is not connected`)
    return speaker
  }

  send(peer: string, parts: readonly Part[]): void {
    this.speaker(peer).send(concrete(parts, this.variables))
  }

  /** All of `any` come next, in whatever order; before them, any number of `before`. */
  async expect(peer: string, any: readonly Expectation[], before?: Expectation): Promise<void> {
    const left = [...any]
    while (left.length > 0) {
      const arrival = await this.speaker(peer).next()
      if (!('frame' in arrival || 'json' in arrival)) throw new Failure(ended(arrival), left, arrival)
      if (before !== undefined && !this.#isNext(peer, any, arrival) && this.#is(peer, before, arrival)) continue
      this.#takeOne(peer, left, arrival)
    }
  }

  #isNext(peer: string, [first]: readonly Expectation[], message: Message): boolean {
    try {
      if (first !== undefined) this.speaker(peer).match(first, message, this.variables)
      return true
    } catch (error) {
      if (!(error instanceof Mismatch)) throw error
      return false
    }
  }

  /** Whether what comes next is the first of two; else it has to be the second. */
  async isFirst(peer: string, first: Expectation, second: Expectation): Promise<boolean> {
    const left = [second]
    while (left.length > 0) {
      const arrival = await this.speaker(peer).next()
      if (!('frame' in arrival || 'json' in arrival)) throw new Failure(ended(arrival), [first], arrival)
      if (this.#is(peer, first, arrival)) return true
      this.#takeOne(peer, left, arrival)
    }
    return false
  }

  /** Keeps what was captured if it is. */
  #is(peer: string, expectation: Expectation, message: Message): boolean {
    try {
      this.#keep(this.speaker(peer).match(expectation, message, this.variables))
      return true
    } catch (error) {
      if (!(error instanceof Mismatch)) throw error
      return false
    }
  }

  #takeOne(peer: string, left: Expectation[], message: Message): void {
    const speaker = this.speaker(peer)
    const offered = offeredIn(message)
    if (offered !== undefined) this.#learn(peer, offered)
    let worst: Mismatch | undefined
    for (const [index, expectation] of left.entries()) {
      try {
        this.#keep(speaker.match(expectation, message, this.variables))
        left.splice(index, 1)
        return
      } catch (error) {
        if (!(error instanceof Mismatch)) throw error
        if (worst === undefined || error.at > worst.at) worst = error
      }
    }
    if (worst?.isOfAnotherKind && speaker.mayBePassedOver(message)) return
    throw new Failure(worst?.message ?? '', left, message, left.length === 1 ? worst?.at : undefined)
  }

  /** Keeps what PRODUCER_CAPS says, and what the producer is called [MON 9.13]. Throws Failure. */
  #learn(peer: string, offered: ReadonlySet<string>): void {
    this.#offered.set(peer, offered)
    const names = [...offered].filter((entry) => /^(producer|below) /.test(entry))
    const own = names.filter((entry) => entry.startsWith('producer '))
    // The id of one that was never connected is not known.
    const wrong = names.find((entry) => !/^producer \S+ .|^below \S* ./.test(entry))
    if (wrong !== undefined) throw new Failure(`an id, a blank and a name were expected: ${wrong}`)
    if (own.length > 1) throw new Failure(`two entries "producer": ${own.join(', ')}`)
    for (const entry of own) this.keepText('producer', entry.split(' ').slice(2).join(' '))
  }

  #keep(bindings: Bindings): void {
    for (const [name, variable] of bindings) this.variables.set(name, variable)
  }

  /** The connection ends; a NOTICE before it is as good as none [MON 3.5], but not one with another code. */
  async #closed({ peer, notice, code }: Extract<Step, { is: 'closed' }>): Promise<void> {
    const speaker = this.speaker(peer)
    for (;;) {
      const arrival = await speaker.next()
      if ('nothing' in arrival) throw new Failure(`the connection is still open ${ended(arrival)}`, [], arrival)
      if ('closed' in arrival) {
        const came = arrival.closed.code
        if (code === undefined || came === code) return
        throw new Failure(`closed with ${came ?? 'no code'}, not ${code}`, [], arrival)
      }
      if (speaker.mayBePassedOver(arrival)) continue
      const reported = speaker.noticeOf(arrival)
      if (reported === undefined) throw new Failure('a message came where the connection was to end', [], arrival)
      if (notice !== undefined && reported !== notice)
        throw new Failure(`NOTICE ${reported}, not ${notice}`, [], arrival)
    }
  }

  /** Nothing comes before the answer to a NOP. */
  async #silence(peer: string): Promise<void> {
    this.speaker(peer).send(Buffer.from('0000000800000000fffffffd', 'hex'))
    const parts = [{ is: 'bytes' as const, bytes: Buffer.from('00000010fffffffffffffffd0000000000000000', 'hex') }]
    await this.expect(peer, [{ text: '00000010 ffffffff fffffffd 00000000 00000000', parts }])
  }

  /** Deletes the channels of the user that were captured, so that nothing is left behind; ends the connections. */
  async clear(): Promise<void> {
    const channels = [...this.variables.values()].filter(({ kind }) => kind === 'channel')
    this.#cutAll()
    try {
      if (channels.length > 0) await this.#delete(channels)
    } finally {
      this.#cutAll()
    }
  }

  async #delete(channels: readonly Variable[]): Promise<void> {
    await logIn(this, { peer: '_', as: 'user', by: 'scram-sha-256' })
    const speaker = this.speaker('_')
    for (const { bytes } of channels) {
      speaker.send(Buffer.concat([Buffer.from('0000000c00000009fffffffe', 'hex'), bytes]))
      await speaker.next()
    }
  }

  #cutAll(): void {
    for (const speaker of this.#speakers.values()) speaker.cut()
    this.#speakers.clear()
    for (const listener of this.#listeners.values()) listener.close()
    this.#listeners.clear()
  }
}

function expectation(text: string): Expectation {
  return { text, parts: parsePattern(text, expectedWords) }
}

function ended(arrival: Arrival): string {
  return 'nothing' in arrival ? `(nothing came for ${arrival.nothing} ms)` : 'the connection ended'
}
