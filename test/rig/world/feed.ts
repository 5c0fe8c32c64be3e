/**
 * Several producers of counters over gmetric: `c1` says `1-1`, `1-2` ... A burst is sent only when the server has read what
 * was sent before, as the kernel's table says: so the kernel drops nothing, and what is missing was lost by the server.
 */
import { createSocket, type Socket } from 'node:dgram'
import { readFileSync } from 'node:fs'
import { join, str, u32 } from '../../support/bytes.ts'
import type { Random } from '../../support/random.ts'
import type { Checker } from './checker.ts'

const STRING = 133
const PAUSE_MS = 4
/** Values in a burst. */
const MOST = 10

export const metricOf = (source: number): string => `c${source}`

/** Where a producer listens for a feed. */
export interface FeedTarget {
  readonly host: string
  readonly port: number
  /** The kernel's table of the UDP sockets there. */
  readonly table: string
}

export const feedOnLoopback = (port: number): FeedTarget => ({ host: '127.0.0.1', port, table: '/proc/net/udp' })

export class Feed {
  readonly sources: readonly number[]
  /** The producer of the moment. */
  target: FeedTarget
  readonly #checker: Checker
  readonly #random: Random
  readonly #socket: Socket
  /** How much longer than its number a value is. */
  paddingBytes = 0
  #running = false
  #sending = 0

  constructor(target: FeedTarget, sources: readonly number[], checker: Checker, random: Random) {
    this.target = target
    this.sources = sources
    this.#checker = checker
    this.#random = random
    this.#socket = createSocket('udp4')
  }

  /** Goes on until `stop`; `pauseMs`: between two bursts. */
  async run(pauseMs = PAUSE_MS): Promise<void> {
    this.#running = true
    while (this.#running) {
      if (this.idle) await this.burst(1 + this.#random.below(MOST))
      await new Promise((resolve) => setTimeout(resolve, pauseMs))
    }
  }

  stop(): void {
    this.#running = false
  }

  close(): void {
    this.stop()
    this.#socket.close()
  }

  /** Sends `count` values of sources picked at random. */
  async burst(count: number): Promise<void> {
    for (let i = 0; i < count; i++) await this.send(this.#random.pick(this.sources))
  }

  send(source: number): Promise<void> {
    const padding = this.paddingBytes > 0 ? `-${'x'.repeat(this.paddingBytes)}` : ''
    const value = `${source}-${this.#checker.next(source)}${padding}`
    const packet = join(u32(STRING), str('kills'), str(metricOf(source)), u32(0), str('%s'), str(value))
    this.#sending++
    return new Promise((resolve) => {
      this.#socket.send(packet, this.target.port, this.target.host, () => {
        this.#sending--
        resolve()
      })
    })
  }

  /** The server listens and has read everything. */
  get idle(): boolean {
    if (this.#sending > 0) return false
    const { host, port, table } = this.target
    const address = host.split('.').map((byte) => hex(Number(byte), 2))
    const local = `${address.toReversed().join('')}:${hex(port, 4)}`
    const lines = udpTable(table).split('\n')
    const fields = lines
      .find((line) => line.includes(` ${local} `))
      ?.trim()
      .split(/\s+/)
    if (fields === undefined) return false
    if (fields[12] !== '0') throw new Error(`the kernel dropped ${fields[12]} datagrams: this run proves nothing`)
    return fields[4]?.endsWith(':00000000') ?? false
  }
}

const hex = (value: number, digits: number): string => value.toString(16).toUpperCase().padStart(digits, '0')

/** Nothing if its process is gone. */
function udpTable(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
