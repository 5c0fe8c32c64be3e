/** `cinnabar top` without process, network and time: a screen that remembers, and a consumer that the test drives. */
import { EventEmitter } from 'node:events'
import { Command } from 'commander'
import pc from 'picocolors'
import { addTop } from '../../../cli/commands/top.ts'
import type { ReceivedValue } from '../../../cli/top/rows.ts'
import type { Screen, ScreenListener } from '../../../cli/top/screen.ts'
import { type Arguments, type Consumer, StatusError, type Value } from '../../../client/index.ts'
import type { ValueMessage } from '../../../protocol/monitor/message.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { list } from '../fake-cli.ts'

export class FakeConsumer {
  readonly followed = new Map<string, { args: Arguments; handler: (sample: ReceivedValue) => unknown }>()
  /** What QUERY gives; an empty list for everything else. */
  readonly answers = new Map<string, Value>()
  readonly refused = new Set<string>()
  isClosed = false
  readonly #events = new EventEmitter()
  #ended: { resolve(): void; reject(error: Error): void } | undefined

  follow(metric: string, args: Arguments, handler: (sample: ReceivedValue) => unknown): Promise<void> {
    if (this.refused.has(metric)) return Promise.reject(new StatusError('COLLECT', 4, `no metric ${metric}`))
    this.followed.set(metric, { args, handler })
    return Promise.resolve()
  }

  query(metric: string): Promise<ValueMessage> {
    const value = this.answers.get(metric) ?? list()
    return Promise.resolve({ kind: 'value', metric: 1, transaction: 0, time: 7, value })
  }

  on(event: string, listener: (detail: unknown) => void): () => void {
    this.#events.on(event, listener)
    return () => this.#events.off(event, listener)
  }

  run(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#ended = { resolve, reject }
    })
  }

  close(): Promise<void> {
    this.isClosed = true
    this.#ended?.resolve()
    return Promise.resolve()
  }

  emit(event: 'connected' | 'disconnected' | 'gap' | 'notice', detail: unknown): void {
    this.#events.emit(event, detail)
  }

  value(name: string, value: Value): void {
    this.followed.get(name)?.handler({ name, time: 7, value })
  }

  fail(error: Error): void {
    this.#ended?.reject(error)
  }
}

/** Keeps what a terminal would show: lines drawn at their places. */
export class FakeScreen implements Screen {
  current = { columns: 100, rows: 14 }
  lines: string[] = []
  /** How often something was drawn. */
  pictures = 0
  isOpen = false
  #listener: ScreenListener | undefined

  size() {
    return this.current
  }

  open(listener: ScreenListener): () => void {
    this.isOpen = true
    this.#listener = listener
    return () => {
      this.isOpen = false
    }
  }

  write(text: string): void {
    this.pictures++
    for (const part of text.split('\x1b[').slice(1)) {
      const place = /^(\d+);1H/.exec(part)
      if (place) this.#at = Number(place[1]) - 1
      else if (part.startsWith('2J')) this.lines = []
      else if (part.startsWith('K')) this.lines[this.#at] = part.slice(1).trimEnd()
    }
  }
  #at = 0

  type(keys: string): void {
    this.#listener?.keys(Buffer.from(keys))
  }

  resize(columns: number, rows: number): void {
    this.current = { columns, rows }
    this.#listener?.resized()
  }

  end(): void {
    this.#listener?.ended()
  }
}

export class FakeTop {
  readonly consumer = new FakeConsumer()
  readonly screen = new FakeScreen()
  readonly clock = new FakeClock()
  readonly out: string[] = []
  readonly err: string[] = []
  interrupt = () => {}
  connected: { readonly url: string; readonly options: unknown } | undefined
  /** Settles when the command has ended. */
  ended: Promise<unknown> = Promise.resolve()

  /** Begins the command and lets it connect. */
  async start(argv: readonly string[] = [], isTerminal = true, term = 'xterm'): Promise<this> {
    const program = new Command().exitOverride().configureOutput({ writeErr: (text) => void this.err.push(text) })
    const cli = {
      terminal: {
        env: { TERM: term, CINNABAR_URL: 'tcp://127.0.0.1:7650', CINNABAR_USER: 'tc', CINNABAR_PASSWORD: 's3' },
        colors: pc.createColors(false),
        screen: isTerminal ? this.screen : undefined,
        isWatched: false,
        print: async (text: string) => void this.out.push(...text.split('\n')),
        note: (text: string) => void this.err.push(text),
        onInterrupt: (callback: () => void) => {
          this.interrupt = callback
          return () => {
            this.interrupt = () => {}
          }
        },
        withProgress: (_: string, work: Promise<unknown>) => work,
      },
      connect: async (url: string, _: unknown, options: unknown) => {
        this.connected = { url, options }
        return this.consumer as unknown as Consumer
      },
    }
    addTop(program, cli as unknown as Parameters<typeof addTop>[1], this.clock)
    this.ended = program.parseAsync(['top', ...argv], { from: 'user' })
    this.ended.catch(() => {})
    await this.settle()
    return this
  }

  /** Time goes on, and what waits for it runs. */
  async pass(ms: number): Promise<void> {
    this.clock.advance(ms)
    await this.settle()
  }

  async settle(): Promise<void> {
    for (let i = 0; i < 10; i++) await new Promise((resolve) => setImmediate(resolve))
  }
}
