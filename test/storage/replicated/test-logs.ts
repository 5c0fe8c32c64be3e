/** The logs of several nodes over nats-servers of a test, and what the tests of the log have in common. */
import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { Log, type LogEntry } from '../../../storage/replicated/log.ts'
import type { LogOptions } from '../../../storage/replicated/options.ts'
import { StorageError } from '../../../storage/store.ts'
import { NatsServers, type NatsServersOptions } from '../../support/nats.ts'

export const STREAM = 'CIN_main_1'

export const epoch = (number: number) => ({ kind: 'epoch', epoch: number, bytes: new Uint8Array() }) as const

export function batch(content: string | Uint8Array, number = 1) {
  return { kind: 'batch', epoch: number, bytes: typeof content === 'string' ? Buffer.from(content) : content } as const
}

export const textOf = (entry: LogEntry | undefined): string => Buffer.from(entry?.bytes ?? []).toString()

/** What a text begins with, up to a space. */
export function wordOf(entry: LogEntry | undefined): string {
  return textOf(entry).split(' ', 1)[0] ?? ''
}

/** 'appended', or the code with which it was refused. */
export async function outcomeOf(appending: Promise<unknown>): Promise<string> {
  return appending.then(
    () => 'appended',
    (error: unknown) => (error instanceof StorageError ? error.code : String(error)),
  )
}

export class TestLogs {
  readonly servers: NatsServers
  readonly #logs: Log[] = []

  private constructor(servers: NatsServers) {
    this.servers = servers
  }

  static async start(count: 1 | 3, options?: NatsServersOptions): Promise<TestLogs> {
    return new TestLogs(await NatsServers.start(count, options))
  }

  options(changes: Partial<LogOptions> = {}): LogOptions {
    const { urls } = this.servers
    return { cluster: 'main', node: 'a', servers: urls, replicas: urls.length, maxBytes: 2 ** 33, ...changes }
  }

  /** The log of a node, with log 1 open. */
  async connected(changes: Partial<LogOptions> = {}): Promise<Log> {
    const log = await Log.connect(this.options(changes))
    this.#logs.push(log)
    log.open(1)
    return log
  }

  /** The same, and log 1 is there. */
  async created(changes: Partial<LogOptions> = {}): Promise<Log> {
    const log = await this.connected(changes)
    await log.create(1)
    return log
  }

  async stop(): Promise<void> {
    for (const log of this.#logs) await log.close()
    await this.servers.stop()
  }
}

/** The first records after a message. */
export async function firstOf(log: Log, count: number, after = 0): Promise<LogEntry[]> {
  const found: LogEntry[] = []
  for await (const entry of log.read(after, new AbortController().signal)) {
    found.push(entry)
    if (found.length === count) break
  }
  return found
}

/** A node that reads all the time, from the beginning. */
export class Reader {
  /** What the records contain, without spaces at the end. */
  readonly texts: string[] = []
  /** The sequence of the last one. */
  last = 0
  readonly #ended = new AbortController()
  readonly #reading: Promise<void>

  constructor(log: Log) {
    this.#reading = this.#read(log)
  }

  /** Rejects if reading has failed. */
  async stop(): Promise<void> {
    this.#ended.abort()
    await this.#reading
  }

  async #read(log: Log): Promise<void> {
    for await (const entry of log.read(0, this.#ended.signal)) {
      this.texts.push(wordOf(entry))
      this.last = entry.sequence
    }
  }
}

export interface Progress {
  readonly acknowledged: number
  readonly last: number
}

export const START: Progress = { acknowledged: 0, last: 0 }

/** Appends records as fast as it can, until it is stopped. They contain 1, 2, 3 ..., and spaces up to the length given for each. */
export class Appending {
  /** The number of the last one that is acknowledged. */
  acknowledged: number
  last: number
  #isStopped = false
  readonly #done: Promise<void>

  /** Goes on after another one. */
  constructor(log: Log, { acknowledged, last }: Progress, lengthOf: (number: number) => number) {
    this.acknowledged = acknowledged
    this.last = last
    this.#done = this.#run(log, lengthOf)
  }

  /** Rejects if an append has failed. */
  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#done
  }

  /** Waits until as many more are acknowledged. */
  async more(count: number): Promise<void> {
    const goal = this.acknowledged + count
    await Promise.race([this.#done, this.#until(goal)])
  }

  async #until(goal: number): Promise<void> {
    while (this.acknowledged < goal) await delay(5)
  }

  async #run(log: Log, lengthOf: (number: number) => number): Promise<void> {
    while (!this.#isStopped) {
      const number = this.acknowledged + 1
      // Records of one letter would become short ones of one part.
      const rest = randomBytes(lengthOf(number)).toString('base64')
      this.last = await log.append(batch(`${number} ${rest}`), this.last)
      this.acknowledged = number
    }
  }
}
