/** `cinnabar tail` over a killed server and a Ctrl-C of its own: every stored value is printed once. */

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { CounterFeed } from '../support/counter-feed.ts'
import { freePort } from '../support/free-port.ts'
import { times } from '../support/long.ts'
import { SERVER_PROGRAM } from '../support/program.ts'
import { ledgerWhen } from '../support/records.ts'
import { ServerProcess } from '../support/server-process.ts'

const VALUES = 100
const KILLS = times({ short: 1, long: 3 })

let server: ServerProcess
let feed: CounterFeed
let tails: Tail[]

/** The command in a process of its own. */
class Tail {
  readonly #child: ChildProcess
  readonly ended: Promise<unknown[]>
  readonly lines: string[] = []
  notes = ''

  constructor(...args: readonly string[]) {
    this.#child = spawn(process.execPath, [SERVER_PROGRAM, 'tail', ...args, '--config', server.config], {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.ended = once(this.#child, 'exit')
    let rest = ''
    this.#child.stdout?.on('data', (chunk) => {
      const pieces = (rest + chunk).split('\n')
      rest = pieces.pop() ?? ''
      this.lines.push(...pieces)
    })
    this.#child.stderr?.on('data', (chunk) => {
      this.notes += chunk
    })
    tails.push(this)
  }

  kill(signal: 'SIGINT' | 'SIGKILL'): void {
    this.#child.kill(signal)
  }

  /** The channel, as soon as it is printed. */
  async channel(): Promise<number> {
    for (;;) {
      const printed = /^channel (\d+);.*\n/.exec(this.notes)
      if (printed !== null) return Number(printed[1])
      await once(this.#child.stderr as NodeJS.ReadableStream, 'data')
    }
  }

  /** What stands after the last blank of each line. */
  numbers(): number[] {
    return this.lines.map((line) => Number(line.split(' ').at(-1)))
  }
}

beforeEach(async () => {
  const udpPort = await freePort()
  const tcp = await freePort()
  server = new ServerProcess(`[gmetric]\nlisten = "127.0.0.1:${udpPort}"\n`, { tcp })
  feed = new CounterFeed(udpPort)
  tails = []
  await server.start()
})
afterEach(async () => {
  for (const tail of tails) tail.kill('SIGKILL')
  feed.close()
  await server.remove()
})

/** Until everything that was sent is on the disk, and so many values of it are committed. */
async function untilStored(channel: number, committed: number): Promise<void> {
  const { peer } = await server.login()
  await ledgerWhen(peer, channel, (ledger) => {
    return ledger.accepted >= feed.sent && ledger.unstored === 0 && ledger.committed >= committed
  })
  peer.destroy()
}

it('prints every value once', { timeout: 120_000 }, async () => {
  const first = new Tail('gmetric.counter')
  const channel = await first.channel()
  const { peer } = await server.login()
  await ledgerWhen(peer, channel, ({ bindings }) => bindings.length > 0)
  peer.destroy()
  for (let round = 0; round < KILLS; round++) {
    feed.send(VALUES)
    await untilStored(channel, 0)
    await server.end('SIGKILL')
    await server.start()
  }
  await untilStored(channel, feed.sent)
  first.kill('SIGINT')
  expect(await first.ended).toEqual([0, null])
  expect(first.notes).toContain('reconnecting')

  feed.send(VALUES)
  await untilStored(channel, 0)
  const second = new Tail('--channel', String(channel), '--count', String(VALUES))
  expect(await second.ended).toEqual([0, null])
  expect([...first.numbers(), ...second.numbers()]).toEqual(Array.from({ length: feed.sent }, (_, number) => number))
})
