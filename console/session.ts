/**
 * Who is signed in. The secret and the connection live in the memory of the tab only. What ends the session brings back the
 * sign-in, with the reason; a lost connection does not end it, the client library connects again.
 */
import { type ReadonlySignal, signal } from '@preact/signals'
import { ConnectionError, type Consumer, connect, StatusError } from '../client/browser.ts'
import { recordsOf } from './query.ts'
import { reasonOf, sentence } from './refusals.ts'

/** Nobody is told which of the two it is. */
export const NOT_ADMITTED = 'The user or the secret is wrong.'

export type Secret = { readonly password: string } | { readonly token: string }

export type SessionState =
  | { readonly kind: 'out'; readonly reason: string }
  | { readonly kind: 'connecting' }
  | { readonly kind: 'in'; readonly consumer: Consumer; readonly identity: string }

export interface Link {
  readonly isUp: boolean
  /** When it was lost, milliseconds since 1970, and when the next attempt is made. */
  readonly lostAt?: number
  readonly nextAt?: number
}

export class Session {
  readonly #url: string
  readonly #state = signal<SessionState>({ kind: 'out', reason: '' })
  readonly #link = signal<Link>({ isUp: true })

  /** `url`: where the server takes connections, with http or https. */
  constructor(url: URL) {
    this.#url = url.href.replace(/^http/, 'ws')
  }

  get state(): ReadonlySignal<SessionState> {
    return this.#state
  }

  get link(): ReadonlySignal<Link> {
    return this.#link
  }

  /** Never rejects: what fails is the reason that the sign-in shows. */
  async signIn(identity: string, secret: Secret): Promise<void> {
    this.#state.value = { kind: 'connecting' }
    let consumer: Consumer | undefined
    try {
      const credentials = 'token' in secret ? secret : { identity, password: secret.password }
      consumer = await connect(this.#url, credentials, { durable: false })
      this.#watch(consumer)
      const name = 'token' in secret ? await ownerOf(consumer) : identity
      this.#state.value = { kind: 'in', consumer, identity: name }
    } catch (error) {
      this.#state.value = { kind: 'out', reason: endReason(error) }
      // Without this, it would connect again and again.
      await consumer?.close().catch(() => {})
    }
  }

  async signOut(): Promise<void> {
    const { value } = this.#state
    this.#state.value = { kind: 'out', reason: '' }
    if (value.kind === 'in') await value.consumer.close()
  }

  #watch(consumer: Consumer): void {
    this.#link.value = { isUp: true }
    consumer.on('connected', () => {
      this.#link.value = { isUp: true }
    })
    consumer.on('disconnected', () => {
      this.#link.value = { isUp: false, lostAt: Date.now() }
    })
    consumer.on('retrying', ({ delayMs }) => {
      this.#link.value = { ...this.#link.value, isUp: false, nextAt: Date.now() + delayMs }
    })
    consumer.on('closed', (error) => {
      const { value } = this.#state
      if (value.kind !== 'in' || value.consumer !== consumer) return
      this.#state.value = { kind: 'out', reason: error === undefined ? '' : endReason(error) }
    })
  }
}

/** Who has logged in with a token; `token` if its scope does not cover the question. */
async function ownerOf(consumer: Consumer): Promise<string> {
  try {
    const { plain } = await consumer.query('producer.connections')
    const own = recordsOf(plain).find(({ channel }) => channel === consumer.channel)
    return String(own?.['identity'] ?? 'token')
  } catch (error) {
    if (error instanceof StatusError) return 'token'
    throw error
  }
}

function endReason(error: unknown): string {
  if (error instanceof ConnectionError && error.cause instanceof StatusError) {
    const { status, detail } = error.cause
    if (status === 'AUTH_FAILED') return detail === 'not admitted' ? NOT_ADMITTED : sentence(detail)
  }
  return reasonOf(error)
}
