/**
 * One connection to an upstream, logged in. Values of what is followed go to their taps as they came; answers to QUERY and EXECUTE
 * go to those who wait for them.
 */
import { readFile } from 'node:fs/promises'
import { AwaitedValues } from '../../../client/commands.ts'
import type { ClientConnection, FrameTaker } from '../../../client/connection.ts'
import type { Proof } from '../../../client/credentials.ts'
import { ConnectionError } from '../../../client/errors.ts'
import { inTime, openSession } from '../../../client/session.ts'
import { type BoundMetric, bindingsOf } from '../../../client/subscriptions.ts'
import type { Transport } from '../../../client/transport.ts'
import { toArgumentList } from '../../../client/values.ts'
import type { ArgumentList } from '../../../protocol/monitor/arguments.ts'
import type { Capabilities } from '../../../protocol/monitor/capabilities.ts'
import { NoticeCode } from '../../../protocol/monitor/constants.ts'
import type { Gap, Notice, ValueMessage } from '../../../protocol/monitor/message.ts'
import { FRAME_METRIC } from '../../../protocol/monitor/message.ts'
import type { Pacer } from '../../kit/io/pacer.ts'
import { MIN_ITERATIONS } from '../../kit/producers.ts'
import type { Clock } from '../../kit/running.ts'
import type { UpstreamTable } from './config.ts'
import { PacedTransport } from './paced-transport.ts'

/** How long a response may take: far longer than a disk does. */
const RESPONSE_MS = 30_000

/** Characters of a secret by which one knows who announces itself. */
const MIN_SECRET = 16

/** The message id of a payload, which begins without the length of its frame. */
const PAYLOAD_METRIC = FRAME_METRIC - 4

/** Characters of what an upstream says, where people read it. */
const MAX_SHOWN = 300
/** Pages of a list of bindings. */
const MAX_PAGES = 100
/** Questions that were given up, and may be answered yet. */
const MAX_OWED = 1_000

/** What is wrong, for people: an upstream may say as much as fits into a frame. */
export function shownProblem(problem: string): string {
  return problem.length > MAX_SHOWN ? `${problem.slice(0, MAX_SHOWN)}…` : problem
}

export interface UpstreamSessionOptions {
  readonly table: UpstreamTable
  readonly clock: Clock
  readonly pacer: Pacer
  /** Makes the connection, or hands over one that was made by the upstream. */
  readonly connect: (table: UpstreamTable, signal: AbortSignal) => Promise<Transport>
}

export interface UpstreamReceiver {
  /** Takes the payload of a VALUE; false if its id is not one that is followed. Throws ProtocolError. */
  value(metric: number, bytes: Uint8Array, start: number, end: number, view: DataView): boolean
  gap(gap: Gap): void
  /** The upstream says who it is, and whom it consumes, now. */
  capabilities(caps: Capabilities): void
  /** Called once. */
  ended(reason: Error): void
}

export class UpstreamSession implements FrameTaker {
  readonly #awaited: AwaitedValues
  /** Takes the values of metrics that are followed. */
  #receiver: UpstreamReceiver | undefined
  /** Called when the connection has ended. */
  readonly #overs = new Set<() => void>()
  /** Questions that were given up and not answered since. */
  #owed = 0
  /** Why the connection has ended. */
  #reason: ConnectionError | undefined
  #connection!: ClientConnection
  /** The channel that the upstream has made for this connection. */
  channel = 0

  private constructor(clock: Clock) {
    this.#awaited = new AwaitedValues(clock)
  }

  /** Throws Error, for people and without a secret; then nothing is left open. */
  static async open(options: UpstreamSessionOptions, signal: AbortSignal): Promise<UpstreamSession> {
    const { table, clock, pacer, connect } = options
    const session = new UpstreamSession(clock)
    const peer = `upstream ${table.name}`
    const proof: Proof = await proofOf(table)
    await inTime({ clock, signal, peer }, async (signal) => {
      const transport = await connect(table, signal)
      const listener = {
        message: (message: ValueMessage | Gap) => session.#message(message),
        notice: ({ code, detail }: Notice) => {
          // What it says of one metric has to be found out: the next connection does.
          if (code === NoticeCode.WITHDRAWN) session.close(new Error(shownProblem(detail)))
        },
        capabilities: (caps: Capabilities) => session.#receiver?.capabilities(caps),
        closed: (_: ClientConnection, reason: ConnectionError) => session.#ended(reason),
      }
      const paced = new PacedTransport(transport, pacer)
      const opening = { clock, peer, deadlineMs: RESPONSE_MS, listener, frames: session, proof, wrap: [], signal }
      const { connection, channel } = await openSession(paced, opening)
      session.#connection = connection
      session.channel = channel
      await connection.ready
    })
    return session
  }

  /** To be called once, when the connection is used from now on. */
  receive(receiver: UpstreamReceiver): void {
    this.#receiver = receiver
    if (this.#reason !== undefined) receiver.ended(this.#reason)
  }

  /** Calls `over` when the connection has ended, unless the function that is returned is called before. */
  whenOver(over: () => void): () => void {
    if (this.#reason === undefined) this.#overs.add(over)
    else over()
    return () => void this.#overs.delete(over)
  }

  get capabilities(): Capabilities | undefined {
    return this.#connection.capabilities
  }

  get request(): ClientConnection['request'] {
    return this.#connection.request.bind(this.#connection)
  }

  /** Rejects with StatusError or ConnectionError, TIMEOUT if there is no answer in time. */
  query(metric: string, args: ArgumentList, deadlineMs = RESPONSE_MS): Promise<ValueMessage> {
    return this.#inTime(this.#awaited.ask(this.request, 'QUERY', { metric, args }, { isKept: false, deadlineMs }))
  }

  /** The same; rejects with ConnectionError TIMEOUT if there is no result in time, and with the reason of a signal that is aborted. */
  execute(control: string, args: ArgumentList, deadlineMs = RESPONSE_MS, signal?: AbortSignal): Promise<ValueMessage> {
    const options = { isKept: false, deadlineMs, ...(signal && { signal }) }
    return this.#inTime(this.#awaited.ask(this.request, 'EXECUTE', { control, args }, options))
  }

  /** What a channel binds, by id; undefined if the upstream does not say it. */
  bindings(channel: number): Promise<ReadonlyMap<number, BoundMetric> | undefined> {
    let pages = 0
    return bindingsOf(channel, (metric, args) => {
      if (++pages > MAX_PAGES) throw new Error('the list of what its channel binds has no end')
      return this.query(metric, toArgumentList(args))
    })
  }

  value(bytes: Uint8Array, start: number, end: number, view: DataView): boolean {
    return this.#receiver?.value(view.getUint32(start + PAYLOAD_METRIC), bytes, start, end, view) ?? false
  }

  close(reason?: Error): void {
    const error = reason && new ConnectionError('CLOSED', reason.message)
    this.#connection.close(error)
  }

  /** What was given up takes memory until it is answered. */
  async #inTime(asked: Promise<ValueMessage>): Promise<ValueMessage> {
    try {
      return await asked
    } catch (error) {
      const isLate = error instanceof ConnectionError && error.code === 'TIMEOUT'
      if (isLate && ++this.#owed > MAX_OWED) this.close(new Error(`the upstream owes ${MAX_OWED} answers`))
      throw error
    }
  }

  #ended(reason: ConnectionError): void {
    this.#reason = reason
    this.#awaited.reject(reason, false)
    this.#receiver?.ended(reason)
    for (const over of this.#overs) over()
    this.#overs.clear()
  }

  #message(message: ValueMessage | Gap): void {
    if (message.kind === 'gap') this.#receiver?.gap(message)
    // The answer to what was given up meanwhile, or a value of what was stopped, is nobody's.
    else if (this.#awaited.take(message) === 'unwanted') this.#owed--
  }
}

/** What is shown to the upstream, from files that are read for each connection. Throws Error, for people and without a secret. */
async function proofOf({ tokenFile, user, secretFile, listen }: UpstreamTable): Promise<Proof> {
  if (tokenFile !== undefined) return { token: await firstLineOf(tokenFile) }
  if (secretFile !== undefined) {
    // Its password is never sent: the upstream has to prove that it knows it, too.
    const password = await firstLineOf(secretFile)
    const proof = { identity: user, password, methods: ['scram-sha-256-plus', 'scram-sha-256'] } as const
    if (listen === undefined) return proof
    // Anybody may announce themselves: they could try out secrets with what they are shown then, or have this server compute.
    if (password.length < MIN_SECRET)
      throw new Error(`${secretFile}: its first line has less than ${MIN_SECRET} characters`)
    return { ...proof, maxIterations: MIN_ITERATIONS }
  }
  return { certificate: true }
}

async function firstLineOf(path: string): Promise<string> {
  const [line = ''] = (await readFile(path, 'utf8')).split(/\r?\n/)
  if (line === '') throw new Error(`${path} is empty`)
  return line
}
