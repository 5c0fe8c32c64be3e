/** A console with what it stands between: an AMQP link that a test is the broker of, and the sensor that it tells. */
import type { AmqpEvents } from '../../../../protocol/amqp/client.ts'
import type { AmqpRefusal } from '../../../../protocol/amqp/session.ts'
import { decodeBody, encodeMessage } from '../../../../protocol/qmf/messages.ts'
import type {
  ClassKey,
  ObjectHeader,
  QmfMessage,
  QmfValue,
  Schema,
  SchemaLookup,
} from '../../../../protocol/qmf/types.ts'
import type { AmqpLink } from '../../../../server/wings/qmf/console.ts'
import { Console } from '../../../../server/wings/qmf/console.ts'
import type { ObjectSample, QmfEvent } from '../../../../server/wings/qmf/console-events.ts'
import { type ConsoleLimits, consoleLimits, newCounters } from '../../../../server/wings/qmf/console-events.ts'
import { keyText, SchemaCache } from '../../../../server/wings/qmf/discovery.ts'
import { VersionChoice } from '../../../../server/wings/qmf/version-choice.ts'
import { FakeClock } from '../../../support/fake-clock.ts'
import { recordedAnswers, recordedKnown, tableOf } from './recorded.ts'

export interface Asked {
  readonly to: string
  readonly message: QmfMessage
}
export interface PeerOptions {
  readonly session?: string
  readonly cache?: SchemaCache
  readonly refusedClasses?: Set<string>
  readonly choice?: VersionChoice
  readonly limits?: Partial<ConsoleLimits>
  /** Every class, as soon as it is learned. */
  readonly wantsAll?: boolean
}

export class ConsolePeer {
  readonly clock = new FakeClock()
  readonly counters = newCounters()
  /** Commands to the broker but transfers: `bind topic-me qpid.management schema.#`. */
  readonly commands: string[] = []
  /** All requests, those of one body as an array. */
  readonly bodies: Asked[][] = []
  /** What was reported to the sensor, in order. */
  readonly reported: string[] = []
  readonly learned: Schema[] = []
  readonly objects: ObjectSample[] = []
  readonly gone: string[] = []
  readonly events: [ClassKey, QmfEvent][] = []
  readonly down: string[] = []
  readonly console: Console
  /** What the sensor does at an event. */
  onEvent = () => {}
  #link: AmqpEvents | undefined
  readonly #unanswered: Asked[] = []
  readonly #known = new Map<string, Schema>()

  constructor({
    session = 'me',
    cache = new SchemaCache(),
    refusedClasses = new Set(),
    limits = {},
    wantsAll = false,
    choice = new VersionChoice(1),
  }: PeerOptions = {}) {
    this.console = new Console({
      session,
      choice,
      intervalMs: 5_000,
      cache,
      refusedClasses,
      limits: { ...consoleLimits, ...limits },
      counters: this.counters,
      clock: this.clock,
      connect: (events) => this.#connect(events),
      events: {
        learned: (schema) => {
          this.learned.push(schema)
          if (wantsAll) this.console.want(schema, true)
        },
        ready: () => this.reported.push('ready'),
        object: (sample) => this.objects.push(sample),
        gone: (id) => this.gone.push(id),
        event: (key, event) => {
          this.events.push([key, event])
          this.onEvent()
        },
        heartbeat: (time) => this.reported.push(`heartbeat ${time}`),
        down: (reason, isProgress) => this.down.push(isProgress ? `${reason} (progress)` : reason),
      },
    })
  }

  get known(): SchemaLookup {
    return {
      schema: (key) => this.#known.get(keyText(key)) ?? recordedKnown.schema(key),
      method: (sequence) => {
        const asked = this.bodies.flat().find(({ message }) => message.sequence === sequence)?.message
        if (asked?.op !== 'M') return undefined
        return tableOf(asked.key.className).methods.find(({ name }) => name === asked.method)
      },
    }
  }

  /** A class that was not recorded: from now on its messages can be written. */
  has(schema: Schema): void {
    this.#known.set(keyText(schema.key), schema)
  }

  /** The broker has this class too, and no objects of it. */
  teach(schema: Schema): void {
    this.has(schema)
    this.tell({ op: 'q', sequence: 0, kind: schema.kind, key: schema.key })
    const [asked] = this.take()
    this.tell({ op: 's', sequence: asked?.message.sequence ?? 0, schema })
    for (const { message } of this.take()) this.tell(done(message.sequence))
    this.commands.length = 0
  }

  open(): this {
    this.#link?.opened({ serverProperties: new Map(), heartbeatSeconds: 0 })
    return this
  }

  /** Open, and answered everything as recorded; what was asked and reported until then is forgotten. */
  ready(): this {
    this.open().serve()
    this.bodies.length = 0
    this.commands.length = 0
    return this
  }

  /** Answers as recorded until nothing more is asked. */
  serve(): void {
    for (let [asked] = this.take(1); asked !== undefined; [asked] = this.take(1)) {
      for (const body of recordedAnswers(asked.message)) this.deliver(body)
    }
  }

  /** Requests that were not taken before. */
  take(most = Number.POSITIVE_INFINITY): Asked[] {
    return this.#unanswered.splice(0, Math.min(most, this.#unanswered.length))
  }

  /** The same, as text: `agent.1.0 G queue`. */
  asked(): string[] {
    return this.take().map(({ to, message }) => {
      const { op } = message
      const what = op === 'G' ? message.query.get('_class') : op === 'Q' ? message.packageName : ''
      return `${to} ${op} ${op === 'S' ? message.key.className : what}`.trim()
    })
  }

  deliver(body: Uint8Array, more: { routingKey?: string; appId?: string } = {}): void {
    this.arrive(body, more)
    while (this.console.work());
  }

  /** The messages of the body wait to be worked on. */
  arrive(body: Uint8Array, { routingKey = 'reply-me', appId }: { routingKey?: string; appId?: string } = {}): void {
    const rest = { destination: 'rdest', exchange: '', headers: new Map(), ...(appId !== undefined && { appId }) }
    this.#link?.delivered({ ...rest, routingKey, body })
  }

  bodyOf(...messages: readonly QmfMessage[]): Uint8Array {
    return Buffer.concat(messages.map((message) => encodeMessage(message, this.known)))
  }

  /** Messages in one body. */
  tell(...messages: readonly QmfMessage[]): void {
    this.tellAs('reply-me', ...messages)
  }

  tellAs(routingKey: string, ...messages: readonly QmfMessage[]): void {
    this.deliver(this.bodyOf(...messages), { routingKey })
  }

  heartbeat(banks = '1.0', time = 1n): void {
    this.tellAs(`console.heartbeat.${banks}`, { op: 'h', sequence: 0, time })
  }

  closed(reason: string, refusal?: AmqpRefusal): void {
    this.#link?.closed(reason, refusal)
  }

  /** Time goes on by so many seconds, with a tick each. */
  pass(seconds: number): void {
    for (let second = 0; second < seconds; second++) {
      this.clock.advance(1_000)
      this.console.tick(this.clock.monotonicMs())
    }
  }

  #connect(events: AmqpEvents): AmqpLink {
    this.#link = events
    const log =
      (name: string) =>
      (...args: readonly unknown[]) =>
        void this.commands.push([name, ...args.filter((argument) => typeof argument === 'string')].join(' '))
    return {
      start: log('start'),
      push: () => {},
      tick: () => {},
      declareQueue: log('declare'),
      bind: log('bind'),
      unbind: log('unbind'),
      subscribe: log('subscribe'),
      close: log('close'),
      transfer: ({ routingKey }, body) => {
        const { messages } = decodeBody(body, this.known)
        const asked = messages.map((message) => ({ to: routingKey, message }))
        this.bodies.push(asked)
        this.#unanswered.push(...asked)
      },
    }
  }
}

/** A living object of a recorded class. */
export function headerOf(className: string, id: string, times: Partial<ObjectHeader> = {}): ObjectHeader {
  return { key: tableOf(className).key, sampled: 10n, created: 5n, deleted: 0n, id, ...times }
}

/** A queue as G gives it. */
export function queue(sequence: number, id: string, name: string, times: Partial<ObjectHeader> = {}): QmfMessage {
  const schema = tableOf('queue')
  return {
    op: 'g',
    sequence,
    header: headerOf('queue', id, times),
    properties: ['0-0-1-0-3', name, false, false, false, new Map(), undefined],
    statistics: schema.statistics.map(({ type }) => plain(type)),
  }
}

/** Something of that type. */
export function plain(type: number): QmfValue {
  if (type === 11) return false
  if (type === 6 || type === 7) return ''
  if (type === 10) return '0-0-0-0-0'
  if (type === 14) return '00000000-0000-0000-0000-000000000000'
  if (type === 15) return new Map()
  return [4, 8, 9, 19].includes(type) ? 0n : 0
}

export const done = (sequence: number): QmfMessage => ({ op: 'z', sequence, code: 0, text: 'OK' })
