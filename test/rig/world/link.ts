/** A connection that may end at any moment: whoever waits for an answer then gets `undefined`. Logs in without bcrypt. */
import { connect } from 'node:net'
import { ScramClient } from '../../../auth/scram/client.ts'
import type { ScramKeys } from '../../../auth/scram/keys.ts'
import { command } from '../../support/bytes.ts'
import { RawPeer, type Received } from '../../support/raw-peer.ts'

export type Response = Extract<Received, { kind: 'response' }>
export type Message = Extract<Received, { kind: 'value' | 'gap' | 'notice' }>
type Make = (seq: number) => Uint8Array

/** By these numbers the failpoints know the responses to COMMITs. */
const FIRST_COMMIT_SEQ = 0x40000000
const EMPTY = new Uint8Array(0)

/** Who logs in: the keys are derived once. */
export interface User {
  readonly name: string
  secret: string
  keys: ScramKeys | undefined
}

/** Where a server takes consumers. */
export interface Listener {
  /** Default: loopback. */
  readonly host?: string
  readonly port: number
}

export class Link {
  readonly #peer: RawPeer
  readonly #asked = new Map<number, (response: Response | undefined) => void>()
  #seq = 0
  #commitSeq = FIRST_COMMIT_SEQ
  #challenge: Uint8Array = EMPTY
  #closed = false
  /** VALUEs, GAPs and NOTICEs, in order. */
  onMessage: (message: Message) => void = () => {}
  readonly ended: Promise<void>

  private constructor(peer: RawPeer) {
    this.#peer = peer
    this.ended = this.#read()
  }

  /** Undefined if the server is gone before the login is done. */
  static async open({ host = '127.0.0.1', port }: Listener, user: User): Promise<Link | undefined> {
    const link = new Link(new RawPeer(connect({ host, port, noDelay: true })))
    const scram = new ScramClient({ identity: user.name, password: user.secret, keys: user.keys })
    if (!(await link.#auth('scram-sha-256', scram.first()))) return undefined
    const final = await scram.final(link.#challenge)
    user.keys = scram.keys
    if (!(await link.#auth('', final))) return undefined
    scram.verify(link.#challenge)
    return (await link.#auth('', EMPTY)) ? link : undefined
  }

  /** A connection that is logged in already. */
  static over(peer: RawPeer): Link {
    return new Link(peer)
  }

  get closed(): boolean {
    return this.#closed
  }

  /** The response, as soon as it is looked at: before everything after it. */
  ask(make: Make, seen: (response: Response) => void = () => {}): Promise<Response | undefined> {
    return this.#ask(++this.#seq, make, seen)
  }

  /** The result; undefined if the connection ended. Anything but OK is an error. */
  async ok(make: Make, seen?: (response: Response) => void): Promise<number | undefined> {
    const response = await this.ask(make, seen)
    if (response === undefined) return undefined
    if (response.status !== 0) throw new Error(`answered with status ${response.status}: ${response.detail}`)
    return response.result
  }

  /** A COMMIT; `done` with its response. */
  commit(id: number, through: boolean, done: (response: Response) => void): void {
    const make = through ? command.commitThrough : command.commit
    void this.#ask(++this.#commitSeq, (seq) => make(seq, id), done)
  }

  close(): void {
    this.#peer.destroy()
  }

  #ask(seq: number, make: Make, seen: (response: Response) => void): Promise<Response | undefined> {
    if (this.#closed) return Promise.resolve(undefined)
    return new Promise((resolve) => {
      this.#asked.set(seq, (response) => {
        if (response !== undefined) seen(response)
        resolve(response)
      })
      this.#peer.send(make(seq))
    })
  }

  async #auth(method: string, data: Uint8Array): Promise<boolean> {
    const response = await this.ask((seq) => command.auth(seq, method, data))
    if (response === undefined) return false
    if (response.status > 1) throw new Error(`AUTH was answered with status ${response.status}: ${response.detail}`)
    // The AUTH message stands right after the response.
    while (response.status === 1 && this.#challenge === EMPTY && !this.#closed) await new Promise(setImmediate)
    const came = response.status === 0 || this.#challenge !== EMPTY
    return came
  }

  async #read(): Promise<void> {
    for (;;) {
      const message = await this.#peer.next()
      if (message.kind === 'closed') break
      if (message.kind === 'auth') this.#challenge = message.data
      else if (message.kind === 'response') {
        const asked = this.#asked.get(message.seq)
        this.#asked.delete(message.seq)
        // What waits for a challenge must not find the one before.
        if (message.status === 1) this.#challenge = EMPTY
        asked?.(message)
      } else if (message.kind !== 'caps') this.onMessage(message)
    }
    this.#closed = true
    for (const asked of this.#asked.values()) asked(undefined)
    this.#asked.clear()
  }
}
