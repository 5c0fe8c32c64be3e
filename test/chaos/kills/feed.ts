/**
 * Several producers of counters over gmetric: `c1` says `1-1`, `1-2` ... A burst is sent only when the server has read what
 * was sent before, as the kernel's table says: so the kernel drops nothing, and what is missing was lost by the server.
 */
import { createSocket, type Socket } from 'node:dgram'
import { readFileSync } from 'node:fs'
import { join, str, u32 } from '../../support/bytes.ts'
import type { Random } from '../../support/random.ts'
import type { Checker } from '../checker.ts'

const STRING = 133
const PAUSE_MS = 4
/** Values in a burst. */
const MOST = 10

export const metricOf = (source: number): string => `c${source}`

export class Feed {
  readonly sources: readonly number[]
  /** The producer of the moment listens there. */
  port: number
  readonly #checker: Checker
  readonly #random: Random
  readonly #socket: Socket
  #running = false
  #sending = 0

  constructor(port: number, sources: readonly number[], checker: Checker, random: Random) {
    this.port = port
    this.sources = sources
    this.#checker = checker
    this.#random = random
    this.#socket = createSocket('udp4')
  }

  /** Goes on until `stop`. */
  async run(): Promise<void> {
    this.#running = true
    while (this.#running) {
      if (this.idle) await this.burst(1 + this.#random.below(MOST))
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
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
    const value = `${source}-${this.#checker.next(source)}`
    const packet = join(u32(STRING), str('kills'), str(metricOf(source)), u32(0), str('%s'), str(value))
    this.#sending++
    return new Promise((resolve) => {
      this.#socket.send(packet, this.port, '127.0.0.1', () => {
        this.#sending--
        resolve()
      })
    })
  }

  /** The server listens and has read everything. */
  get idle(): boolean {
    if (this.#sending > 0) return false
    const port = this.port.toString(16).toUpperCase().padStart(4, '0')
    const lines = readFileSync('/proc/net/udp', 'utf8').split('\n')
    const fields = lines
      .find((line) => line.includes(`0100007F:${port} `))
      ?.trim()
      .split(/\s+/)
    if (fields === undefined) return false
    if (fields[12] !== '0') throw new Error(`the kernel dropped ${fields[12]} datagrams: this run proves nothing`)
    return fields[4]?.endsWith(':00000000') ?? false
  }
}
